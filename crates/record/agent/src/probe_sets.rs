//! Built-in sets of probes. A host requests one by name (`@virtio`) if it may not define probes of its own. The probes
//! show that a function was called and, for virtio queues, their names and buffer sizes; they show no content of
//! memory.

mod virtio;

use std::path::Path;

use tracefs::{FilteredEvent, Probes};

use crate::allowed::Allowed;
use crate::error::{AgentError, Result};

/// Prefix of a set's name; no function has it.
const MARK: char = '@';

/// The set whose probes have arguments: see [`virtio`].
const VIRTIO: &str = "virtio";

/// Events that belong to the set, if the kernel has them: the size of a disk request, and of a packet in several
/// fragments. Other buffers have no more parts than the probes read.
const VIRTIO_EVENTS: &[FilteredEvent] = &[
    FilteredEvent { event: "block:block_rq_issue", filter: "bytes != 0" },
    FilteredEvent { event: "net:net_dev_start_xmit", filter: "data_len != 0 && name != \"lo\"" },
];

/// Guest functions that call the hypervisor (arch/x86/kernel/kvm.c). Most exist under these names since Linux 4.19;
/// missing ones are skipped.
const KVM_GUEST: &[&str] = &[
    "kvm_send_ipi_mask",
    "kvm_send_ipi_mask_allbutself",
    "kvm_smp_send_call_func_ipi",
    "kvm_flush_tlb_multi",
    "kvm_flush_tlb_others",
    "kvm_kick_cpu",
    "kvm_wait",
    "kvm_async_pf_task_wait_schedule",
    "kvm_async_pf_task_wake",
];

const SETS: [&str; 2] = [VIRTIO, "kvm-guest"];

/// Expands sets to their probes.
///
/// # Errors
/// When the host requests its own probes without permission, or an unknown set.
pub(crate) fn chosen(
    requested: &[String],
    tracefs: &Path,
    allowed: Allowed,
) -> Result<Vec<String>> {
    let kernel = KernelProbes {
        can_probe: &|function| Probes::can_probe(tracefs, function),
        have_arguments_at_return: Probes::have_arguments_at_return(tracefs),
    };
    chosen_by(requested, &kernel, allowed)
}

/// Events that belong to the requested sets.
pub(crate) fn events(requested: &[String]) -> &'static [FilteredEvent] {
    let has_virtio = requested.iter().any(|probe| probe.strip_prefix(MARK) == Some(VIRTIO));
    if has_virtio { VIRTIO_EVENTS } else { &[] }
}

/// Probe features of this kernel.
pub(crate) struct KernelProbes<'k> {
    /// Whether the kernel has this function and can probe it.
    pub(crate) can_probe: &'k dyn Fn(&str) -> bool,
    pub(crate) have_arguments_at_return: bool,
}

fn chosen_by(
    requested: &[String],
    kernel: &KernelProbes<'_>,
    allowed: Allowed,
) -> Result<Vec<String>> {
    let mut probes = Vec::new();
    for probe in requested {
        match probe.strip_prefix(MARK) {
            Some(name) => probes.extend(set(name, kernel)?),
            None if allowed.kprobes => probes.push(probe.clone()),
            None => return Err(AgentError::Refused(not_allowed())),
        }
    }
    Ok(probes)
}

fn set(name: &str, kernel: &KernelProbes<'_>) -> Result<Vec<String>> {
    let there: Vec<String> = match SETS.iter().find(|known| **known == name) {
        Some(&VIRTIO) => virtio::probes(&virtio::layouts(), kernel),
        Some(_) => {
            let found = KVM_GUEST.iter().filter(|function| (kernel.can_probe)(function));
            found.map(|&function| function.to_owned()).collect()
        }
        None => {
            let text = format!("unknown probe set: this agent has {}", names());
            return Err(AgentError::Refused(text));
        }
    };
    if there.is_empty() {
        let text = format!("this kernel has none of the functions of {MARK}{name}");
        return Err(AgentError::Refused(text));
    }
    Ok(there)
}

fn not_allowed() -> String {
    format!(
        "this guest does not allow arbitrary probes, which can read any of its memory: start hyperscope-agent with --allow-kprobes, or choose a set of probes: {}",
        names()
    )
}

fn names() -> String {
    let names: Vec<String> = SETS.iter().map(|name| format!("{MARK}{name}")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: Allowed = Allowed { unprivileged_port: false, kprobes: false };

    fn chosen(requested: &[&str], allowed: Allowed) -> std::result::Result<Vec<String>, String> {
        let requested: Vec<String> = requested.iter().map(|&probe| probe.to_owned()).collect();
        let can_probe = |function: &str| function.starts_with("virtqueue_");
        let kernel = KernelProbes { can_probe: &can_probe, have_arguments_at_return: false };
        chosen_by(&requested, &kernel, allowed).map_err(|error| error.to_string())
    }

    #[test]
    fn probes_of_the_hosts_own_need_the_owners_leave() {
        for probe in ["vfs_read", "vfs_read x=@jiffies"] {
            let why = chosen(&["@virtio", probe], DEFAULT).unwrap_err();
            assert!(why.contains("--allow-kprobes") && why.contains("@virtio"), "{why}");
            let allowed = Allowed { kprobes: true, ..DEFAULT };
            assert_eq!(chosen(&[probe], allowed).unwrap(), [probe]);
        }
        assert_eq!(chosen(&[], DEFAULT).unwrap(), [""; 0]);
    }

    #[test]
    fn sets_have_the_functions_that_this_kernel_has() {
        let probes = chosen(&["@virtio"], DEFAULT).unwrap();
        assert!(probes.len() > 3, "{probes:?}");
        assert!(!probes.iter().any(|probe| probe.starts_with("vring_interrupt")), "{probes:?}");
        assert!(chosen(&["@kvm-guest"], DEFAULT).unwrap_err().contains("none of the functions"));
        assert_eq!(events(&["@kvm-guest".into(), "virtio".into()]), []);
        assert_eq!(events(&["@virtio".into()]), VIRTIO_EVENTS);
        assert!(chosen(&["@virtio\n"], DEFAULT).unwrap_err().contains("unknown probe set"));
    }
}
