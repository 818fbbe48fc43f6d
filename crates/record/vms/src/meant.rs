//! Finds the running VM that a name or a channel means. A process can fake its command line: if two VMs claim a name or
//! channel, neither gets it until the user gives the process id.

use channel::HostAddress;

use crate::{Vm, memory, process};

/// Several VMs claim the same name or channel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("several VMs claim {what} ({}): give the process id of one{}", vms.join(" and "), with_channel(what))]
pub struct Ambiguous {
    /// The name or channel.
    pub what: String,
    /// The VMs that claim it.
    pub vms: Vec<String>,
}

/// How to give a channel to one of the VMs that claim it.
fn with_channel(what: &str) -> String {
    if what.contains(':') { format!(", as in PID={what}") } else { String::new() }
}

/// The VM with that process id, else the VM with that name.
///
/// # Errors
/// When several VMs have the name.
pub fn called<'v>(vms: &'v [Vm], name: &str) -> Result<Option<&'v Vm>, Ambiguous> {
    if let Some(vm) = vms.iter().find(|vm| vm.pid.to_string() == name) {
        return Ok(Some(vm));
    }
    only_one(vms.iter().filter(|vm| vm.name == name), || {
        format!("the name {}", printable::label(name))
    })
}

/// The VM that a channel leads to, if known.
///
/// # Errors
/// When several VMs claim it.
pub fn reached<'v>(vms: &'v [Vm], channel: &HostAddress) -> Result<Option<&'v Vm>, Ambiguous> {
    let is_reached = |vm: &&Vm| match channel {
        HostAddress::Vsock { cid, .. } | HostAddress::TlsVsock { cid, .. } => {
            vm.vsock_cid == Some(*cid)
        }
        HostAddress::SharedMemory { path } => memory::is_mapped_by(vm.pid, path),
        other => vm.channels.contains(&other.to_string()),
    };
    only_one(vms.iter().filter(is_reached), || channel.to_string())
}

fn only_one<'v>(
    mut found: impl Iterator<Item = &'v Vm>,
    what: impl Fn() -> String,
) -> Result<Option<&'v Vm>, Ambiguous> {
    let first = found.next();
    let others: Vec<&Vm> = found.collect();
    match first {
        Some(first) if !others.is_empty() => {
            let vms = std::iter::once(first).chain(others).map(described).collect();
            Err(Ambiguous { what: what(), vms })
        }
        first => Ok(first),
    }
}

/// Describes a VM: process id and user, which it can't choose, and name.
fn described(vm: &Vm) -> String {
    let user = process::user(vm.pid).map(|user| format!(" of user {user}")).unwrap_or_default();
    format!("{} (process {}{user})", printable::label(&vm.name), vm.pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vm(name: &str, pid: u32, cid: Option<u32>) -> Vm {
        let channels = cid.map(|cid| format!("vsock:{cid}")).into_iter().collect();
        let (program, vcpus) = ("qemu".into(), Vec::new());
        Vm { name: name.into(), pid, program, vcpus, threads: Vec::new(), vsock_cid: cid, channels }
    }

    #[test]
    fn a_name_that_two_claim_is_nobodys_but_each_has_its_process() {
        let vms = [vm("web", 70, Some(3)), vm("db", 71, None), vm("web", 72, None)];
        let error = called(&vms, "web").unwrap_err().to_string();
        for word in ["the name web", "process 70", "process 72", "process id"] {
            assert!(error.contains(word), "{error}");
        }
        for pid in [70, 71, 72] {
            assert_eq!(called(&vms, &pid.to_string()).unwrap().unwrap().pid, pid);
        }
        assert_eq!(called(&vms, "db").unwrap().unwrap().pid, 71);
        assert!(called(&vms, "cache").unwrap().is_none());
        // A VM's name can't hide the process with that id, either.
        let vms = [vm("71", 70, None), vm("db", 71, None)];
        assert_eq!(called(&vms, "71").unwrap().unwrap().name, "db");
    }

    #[test]
    fn a_number_for_vsock_that_two_claim_leads_to_neither() {
        let vms = [vm("web", 70, Some(3)), vm("db", 71, Some(3)), vm("l2", 72, Some(4))];
        let error = reached(&vms, &"vsock:3".parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains("process 70") && error.contains("process 71"), "{error}");
        let found = |channel: &str| reached(&vms, &channel.parse().unwrap()).unwrap();
        assert_eq!(found("vsock:4:99").unwrap().pid, 72);
        assert!(found("vsock:5").is_none() && found("tcp-plain:h:1").is_none());
    }
}
