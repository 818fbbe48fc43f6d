//! Which guest is meant, and how its agent is reached.

use channel::{AddressError, HostAddress};

use crate::Vm;
use crate::meant::{Ambiguous, called, reached};

/// A guest, and the channel to its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestAddress {
    /// What it is called here; it can be part of a file's name.
    pub name: String,
    pub channel: HostAddress,
    /// The VM that it is, as far as that is known.
    pub vm: Option<Vm>,
}

/// Why it is not known which guest is meant, or how it is reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoGuest {
    /// Several VMs say that it is they.
    #[error(transparent)]
    Ambiguous(#[from] Ambiguous),
    /// A guest that no channel leads to.
    #[error(
        "the VM {name} has no visible channel: add a vsock device, or virtio-serial ports named hyperscope.control and hyperscope.cpu0, ..."
    )]
    NoChannel {
        /// Its name.
        name: String,
    },
    /// Neither a VM's name nor a channel.
    #[error("{0}, or the name of a running VM")]
    Address(#[from] AddressError),
}

impl GuestAddress {
    /// What `[NAME=]CHANNEL` or the name of a VM means.
    ///
    /// # Errors
    /// When it is neither, or the VM has no channel that can be seen from here.
    pub fn find(spec: &str, vms: &[Vm]) -> Result<Self, NoGuest> {
        Self::find_by(spec, vms, |_| true)
    }

    /// The same, with the other channels of a VM that is named without one: an agent may wait on any of them. Those
    /// where it shows at once that there is none come first.
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

    /// The same; of a VM with several channels, the best of those that `fits`, or the best where none does.
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
            // Another VM's command line may say that it is its own.
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

/// A name that can be part of a file's.
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
        // Two processes claim a name, or a number for vsock: the process id says which is meant.
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
