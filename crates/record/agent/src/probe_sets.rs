//! Sets of probes that are built into the agent. A host names one (`@virtio`) where it may not write
//! probes of its own: they show that a function was called, and nothing of anybody's memory.

use std::path::Path;

use tracefs::Probes;

use crate::allowed::Allowed;
use crate::error::{AgentError, Result};

/// What a name of a set begins with; no function's does.
const MARK: char = '@';

/// Functions of each set. Kernels have most of them, under these names, since Linux 4.19; those that a
/// kernel lacks are left out.
const SETS: &[(&str, &[&str])] = &[
    // drivers/virtio/virtio_ring.c: buffers given to the host, kicks, interrupts, buffers that came back.
    (
        "virtio",
        &[
            "virtqueue_add_sgs",
            "virtqueue_add_inbuf",
            "virtqueue_add_outbuf",
            "virtqueue_kick_prepare",
            "virtqueue_notify",
            "vring_interrupt",
            "virtqueue_get_buf_ctx",
        ],
    ),
    // arch/x86/kernel/kvm.c: what a guest asks its hypervisor for in place of doing it itself.
    (
        "kvm-guest",
        &[
            "kvm_send_ipi_mask",
            "kvm_send_ipi_mask_allbutself",
            "kvm_smp_send_call_func_ipi",
            "kvm_flush_tlb_multi",
            "kvm_flush_tlb_others",
            "kvm_kick_cpu",
            "kvm_wait",
            "kvm_async_pf_task_wait_schedule",
            "kvm_async_pf_task_wake",
        ],
    ),
];

/// The probes that a host asks for, with the functions of sets in place of their names.
///
/// # Errors
/// When it asks for a probe of its own and may not, or for a set that there is none of here.
pub(crate) fn chosen(asked: &[String], tracefs: &Path, allowed: Allowed) -> Result<Vec<String>> {
    chosen_by(asked, |function| Probes::can_probe(tracefs, function), allowed)
}

fn chosen_by(
    asked: &[String],
    can_probe: impl Fn(&str) -> bool,
    allowed: Allowed,
) -> Result<Vec<String>> {
    let mut probes = Vec::new();
    for probe in asked {
        match probe.strip_prefix(MARK) {
            Some(name) => probes.extend(set(name, &can_probe)?),
            None if allowed.kprobes => probes.push(probe.clone()),
            None => return Err(AgentError::Refused(not_allowed())),
        }
    }
    Ok(probes)
}

fn set(name: &str, can_probe: impl Fn(&str) -> bool) -> Result<Vec<String>> {
    let found = SETS.iter().find(|(known, _)| *known == name);
    let (_, functions) = found.ok_or_else(|| {
        AgentError::Refused(format!("this agent has no such set of probes: it has {}", names()))
    })?;
    let there: Vec<String> =
        functions.iter().filter(|one| can_probe(one)).map(|&one| one.to_owned()).collect();
    if there.is_empty() {
        let text = format!("this kernel has none of the functions of {MARK}{name}");
        return Err(AgentError::Refused(text));
    }
    Ok(there)
}

fn not_allowed() -> String {
    format!(
        "the owner of this guest does not allow probes of the host's own, which can read any of its \
         memory: start hyperscope-agent with --allow-kprobes, or choose a set of probes: {}",
        names()
    )
}

fn names() -> String {
    let names: Vec<String> = SETS.iter().map(|(name, _)| format!("{MARK}{name}")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Allowed = Allowed { unprivileged_port: false, kprobes: false };

    fn chosen(asked: &[&str], allowed: Allowed) -> std::result::Result<Vec<String>, String> {
        let asked: Vec<String> = asked.iter().map(|&one| one.to_owned()).collect();
        let can_probe = |function: &str| function.starts_with("virtqueue_");
        chosen_by(&asked, can_probe, allowed).map_err(|error| error.to_string())
    }

    #[test]
    fn probes_of_the_hosts_own_need_the_owners_leave() {
        for asked in ["vfs_read", "vfs_read x=@jiffies"] {
            let why = chosen(&["@virtio", asked], USUAL).unwrap_err();
            assert!(why.contains("--allow-kprobes") && why.contains("@virtio"), "{why}");
            let allowed = Allowed { kprobes: true, ..USUAL };
            assert_eq!(chosen(&[asked], allowed).unwrap(), [asked]);
        }
        assert_eq!(chosen(&[], USUAL).unwrap(), [""; 0]);
    }

    #[test]
    fn sets_have_the_functions_that_this_kernel_has() {
        let probes = chosen(&["@virtio"], USUAL).unwrap();
        assert!(probes.len() > 3 && probes.iter().all(|probe| !probe.contains(' ')), "{probes:?}");
        assert!(!probes.contains(&"vring_interrupt".to_owned()));
        assert!(chosen(&["@kvm-guest"], USUAL).unwrap_err().contains("none of the functions"));
        assert!(chosen(&["@virtio\n"], USUAL).unwrap_err().contains("no such set"));
    }
}
