//! Sets of probes that are built into the agent. A host names one (`@virtio`) where it may not write
//! probes of its own: they show that a function was called and, of virtio's queues, what they are called and how large
//! buffers are; nothing of what is in anybody's memory.

mod virtio;

use std::path::Path;

use tracefs::{FilteredEvent, Probes};

use crate::allowed::Allowed;
use crate::error::{AgentError, Result};

/// What a name of a set begins with; no function's does.
const MARK: char = '@';

/// The set whose probes have arguments: see [`virtio`].
const VIRTIO: &str = "virtio";

/// Events that belong to it, where the kernel has them: how many bytes a request to a disk has, and a packet that is in
/// several places of memory. Others have no more parts than probes see.
const VIRTIO_EVENTS: &[FilteredEvent] = &[
    FilteredEvent { event: "block:block_rq_issue", filter: "bytes != 0" },
    FilteredEvent { event: "net:net_dev_start_xmit", filter: "data_len != 0 && name != \"lo\"" },
];

/// What a guest asks its hypervisor for in place of doing it itself (arch/x86/kernel/kvm.c). Kernels have most of them,
/// under these names, since Linux 4.19; those that a kernel lacks are left out.
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

/// The probes that a host asks for, with the functions of sets in place of their names.
///
/// # Errors
/// When it asks for a probe of its own and may not, or for a set that there is none of here.
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

/// Events that belong to the sets among those probes.
pub(crate) fn events(requested: &[String]) -> &'static [FilteredEvent] {
    let has_virtio = requested.iter().any(|probe| probe.strip_prefix(MARK) == Some(VIRTIO));
    if has_virtio { VIRTIO_EVENTS } else { &[] }
}

/// What probes of this kernel can do.
pub(crate) struct KernelProbes<'k> {
    /// Whether it has a function that can be probed.
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
