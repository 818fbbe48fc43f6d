//! Finds the guest that a name or channel means, and the channel to its agent.

use channel::{AddressError, HostAddress};

use crate::Vm;
use crate::meant::{Ambiguous, called, reached};

/// A guest, and the channel to its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestAddress {
    /// Its name in this recording; valid as part of a file name.
    pub name: String,
    pub channel: HostAddress,
    /// The guest's VM, if known.
    pub vm: Option<Vm>,
}

/// Why no guest or channel was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoGuest {
    /// Several VMs claim the name or channel.
    #[error(transparent)]
    Ambiguous(#[from] Ambiguous),
    /// The VM has no visible channel.
    #[error(
        "the VM {name} has no visible channel: add a vsock device, or virtio-serial ports named hyperscope.control and hyperscope.cpu0, ..."
    )]
    NoChannel { name: String },
    /// Neither a VM's name nor a channel.
    #[error("{0}, or the name of a running VM")]
    Address(#[from] AddressError),
}

impl GuestAddress {
    /// Finds the guest for `[NAME=]CHANNEL` or a VM's name.
    ///
    /// # Errors
    /// When the text is neither, or the VM has no visible channel.
    pub fn find(spec: &str, vms: &[Vm]) -> Result<Self, NoGuest> {
        Self::find_by(spec, vms, |_| true)
    }

    /// [`GuestAddress::find`], with all other channels of a VM that is named without one: its agent may listen on any
    /// of them. Channels on which a missing agent shows at once come first.
    ///
    /// # Errors
    /// As [`GuestAddress::find`].
    pub fn find_all(spec: &str, vms: &[Vm]) -> Result<(Self, Vec<HostAddress>), NoGuest> {
        let found = Self::find(spec, vms)?;
        let Some(vm) = called(vms, spec)? else { return Ok((found, Vec::new())) };
        let is_slow = |channel: &HostAddress| matches!(channel, HostAddress::VirtioSerial { .. });
        let channels = vm.channels.iter().filter_map(|channel| channel.parse().ok());
        let mut channels: Vec<HostAddress> = channels
            .filter(|channel| *channel == found.channel || reached(vms, channel).is_ok())
            .collect();
        channels.sort_by_key(is_slow);
        channels.dedup();
        if channels.is_empty() {
            return Ok((found, channels));
        }
        let channel = channels.remove(0);
        Ok((Self { channel, ..found }, channels))
    }

    /// [`GuestAddress::find`], but prefers channels that satisfy `fits`.
    ///
    /// # Errors
    /// As [`GuestAddress::find`].
    pub fn find_by(
        spec: &str,
        vms: &[Vm],
        fits: impl Fn(&HostAddress) -> bool,
    ) -> Result<Self, NoGuest> {
        if let Some(vm) = called(vms, spec)? {
            let channels = vm.channels.iter().map(|channel| channel.parse());
            let channels = channels.collect::<Result<Vec<HostAddress>, _>>()?;
            let Some(best) = channels.first() else {
                return Err(NoGuest::NoChannel { name: vm.name.clone() });
            };
            let channel = channels.iter().find(|channel| fits(channel)).unwrap_or(best);
            // Another VM's command line may claim the same channel.
            reached(vms, channel)?;
            let channel = channel.clone();
            return Ok(Self { name: file_name(&vm.name), channel, vm: Some(vm.clone()) });
        }
        let (name, channel) = match spec.split_once('=') {
            Some((name, channel)) if !name.contains(':') => (Some(name), channel),
            _ => (None, spec),
        };
        let channel: HostAddress = channel.parse()?;
        let named = name.map(|name| called(vms, name)).transpose()?.flatten();
        let vm = match named {
            Some(vm) => Some(vm),
            None => reached(vms, &channel)?,
        };
        let vm = vm.cloned();
        let name = name.map(str::to_owned).or(vm.as_ref().map(|vm| vm.name.clone()));
        let name = file_name(&name.unwrap_or_else(|| channel.to_string()));
        Ok(Self { name, channel, vm })
    }
}

/// Makes a name valid as part of a file name.
#[must_use]
pub fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).take(64).collect();
    let name = name.trim_matches(['.', '-']);
    if name.is_empty() { "guest".into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vm(name: &str, cid: Option<u32>) -> Vm {
        let channels = cid.map(|cid| format!("vsock:{cid}")).into_iter().collect();
        let (program, vcpus) = ("qemu".into(), Vec::new());
        Vm {
            name: name.into(),
            pid: 77,
            program,
            vcpus,
            threads: Vec::new(),
            vsock_cid: cid,
            channels,
        }
    }

    fn found(spec: &str) -> Result<(String, String, bool), NoGuest> {
        let vms = [vm("web", Some(3)), vm("db", None)];
        let found = GuestAddress::find(spec, &vms)?;
        Ok((found.name, found.channel.to_string(), found.vm.is_some()))
    }

    #[test]
    fn all_channels_of_a_vm_that_is_named_alone_are_tried() {
        let mut web = vm("web", Some(3));
        web.channels =
            ["virtio-serial:/run/web", "shm:/dev/shm/web", "vsock:3"].map(str::to_owned).to_vec();
        let vms = [web];
        let all = |spec: &str| {
            let (first, others) = GuestAddress::find_all(spec, &vms).unwrap();
            let others = others.iter().map(ToString::to_string);
            std::iter::once(first.channel.to_string()).chain(others).collect::<Vec<_>>()
        };
        assert_eq!(all("web"), ["shm:/dev/shm/web", "vsock:3:8823", "virtio-serial:/run/web"]);
        assert_eq!(all("web=vsock:3"), ["vsock:3:8823"]);
        assert_eq!(all("virtio-serial:/run/web"), ["virtio-serial:/run/web"]);
    }

    #[test]
    fn vms_are_found_by_name_process_and_channel() {
        let web = |name: &str| (name.to_owned(), "vsock:3:8823".to_owned(), true);
        for spec in ["web", "vsock:3"] {
            assert_eq!(found(spec).unwrap(), web("web"), "{spec}");
        }
        assert_eq!(found("a/b=vsock:3").unwrap(), web("a-b"));
        let other = ("virtio-serial--run-x".into(), "virtio-serial:/run/x".into(), false);
        assert_eq!(found("virtio-serial:/run/x").unwrap(), other);
        // Two processes claim a name or a vsock CID: the process id selects one.
        let mut vms = [vm("web", Some(3)), vm("db", Some(3))];
        vms[1].pid = 78;
        for spec in ["web", "vsock:3", "g=vsock:3", "78"] {
            let error = GuestAddress::find(spec, &vms).unwrap_err().to_string();
            assert!(error.contains("process 77") && error.contains("process 78"), "{error}");
        }
        let found_pid = |spec: &str| GuestAddress::find(spec, &vms).unwrap().vm.unwrap().pid;
        assert_eq!(found_pid("78=vsock:3"), 78);
        assert_eq!(found_pid("web=vsock:3"), 77);
        assert!(found("db").unwrap_err().to_string().contains("no visible channel"));
        assert!(found("cache").unwrap_err().to_string().contains("vsock:CID"));
    }
}
