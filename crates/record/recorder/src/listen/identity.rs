//! The identity of a connected guest: from the kernel or its key. The guest's own name is only a label.

use channel::{HostAddress, Peer};
use vms::{GuestAddress, Vm, file_name};

/// Prefixes of identity names: a VM with such a name is not called by it.
const OWN_NAMES: [&str; 4] = ["cid-", "tls-", "tcp-", "unix"];

/// A guest that has connected.
#[derive(Debug)]
pub(super) struct Identity {
    /// Its identity, for its quota and its share of places.
    pub(super) party: Peer,
    /// The name of its recording, and its VM if known to this host.
    pub(super) address: GuestAddress,
    /// Why it does not get the name of a VM that claims to be this guest.
    pub(super) doubt: Option<String>,
}

impl Identity {
    /// The guest at the other end of a connection, looked up among the running VMs.
    pub(super) fn for_peer(peer: &Peer, vms: &[Vm]) -> Self {
        let (channel, own_name) = match peer {
            Peer::Vsock(cid) => {
                (HostAddress::Vsock { cid: *cid, port: channel::PORT }, format!("cid-{cid}"))
            }
            Peer::Tcp(address) => {
                (HostAddress::Tcp { to: address.to_string() }, format!("tcp-{address}"))
            }
            Peer::Tls(fingerprint) => {
                (HostAddress::Tcp { to: peer.to_string() }, format!("tls-{}", fingerprint.short()))
            }
            Peer::Unix => (HostAddress::Unix { path: "agent".into() }, "unix".to_owned()),
        };
        let (vm, unsure) = match vms::reached(vms, &channel) {
            Ok(vm) => (vm, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let named = vm.map(|vm| name_of(vm, vms));
        let (name, doubt) = match named {
            Some(Ok(name)) => (name, unsure),
            Some(Err(why)) => (file_name(&own_name), Some(why)),
            None => (file_name(&own_name), unsure),
        };
        let address = GuestAddress { name, channel, vm: vm.cloned() };
        Self { party: peer.party(), address, doubt }
    }
}

/// The name of a VM, if no other VM claims it and it is not an identity name.
fn name_of(vm: &Vm, vms: &[Vm]) -> Result<String, String> {
    vms::called(vms, &vm.name).map_err(|error| error.to_string())?;
    let name = file_name(&vm.name);
    if OWN_NAMES.iter().any(|prefix| name.starts_with(prefix)) {
        return Err(format!(
            "the VM of process {} has the name {name}, which others here also have",
            vm.pid
        ));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use channel::Fingerprint;

    fn vm(name: &str, pid: u32, cid: u32) -> Vm {
        let channels = vec![format!("vsock:{cid}")];
        let (program, vcpus, vsock_cid) = ("qemu".into(), Vec::new(), Some(cid));
        Vm { name: name.into(), pid, program, vcpus, threads: Vec::new(), vsock_cid, channels }
    }

    #[test]
    fn a_guest_is_called_what_the_host_knows_of_it() {
        let vms = [vm("web", 70, 3), vm("db", 71, 4), vm("spy", 72, 4), vm("cid-3", 73, 5)];
        let identity_of = |peer: Peer| Identity::for_peer(&peer, &vms);
        let name = |peer: Peer| identity_of(peer).address.name;
        assert_eq!(name(Peer::Vsock(3)), "web");
        assert_eq!(identity_of(Peer::Vsock(3)).address.vm.unwrap().pid, 70);
        assert_eq!(name(Peer::Vsock(9)), "cid-9");
        // Two VMs claim this CID: neither is believed.
        let two = identity_of(Peer::Vsock(4));
        assert_eq!((two.address.name.as_str(), two.address.vm.is_some()), ("cid-4", false));
        let doubt = two.doubt.unwrap();
        assert!(doubt.contains("process 71") && doubt.contains("process 72"), "{doubt}");
        // A VM does not get another's identity name, either.
        assert_eq!(name(Peer::Vsock(5)), "cid-5");
        assert_eq!(name(Peer::Tls(Fingerprint([0x1f; 32]))), "tls-1f1f1f1f1f1f1f1f");
        assert_eq!(name(Peer::Tcp("10.0.0.7".parse().unwrap())), "tcp-10.0.0.7");
        assert_eq!(name(Peer::Tcp("2001:db8::1".parse().unwrap())), "tcp-2001-db8--1");
        assert_eq!(name(Peer::Unix), "unix");
    }

    #[test]
    fn a_name_that_two_vms_have_is_given_to_no_guest() {
        let vms = [vm("web", 70, 3), vm("web", 71, 4)];
        for cid in [3, 4] {
            let identity = Identity::for_peer(&Peer::Vsock(cid), &vms);
            assert_eq!(identity.address.name, format!("cid-{cid}"));
            assert!(identity.doubt.unwrap().contains("the name web"));
        }
    }
}
