//! Maps tracers' names of events and fields to the kernel's: LTTng has names of its own.

use crate::identifier::identifier;
use crate::text::system_of;

/// System and name of an event; the kernel's names if the kernel has the event.
pub(super) fn event(name: &str, tracer: &str) -> (String, String) {
    // perf's names contain the system, LTTng's user-space names the provider.
    if let Some((system, name)) = name.split_once(':') {
        return (identifier(system), identifier(name));
    }
    if tracer.starts_with("lttng-ust") {
        return ("ust".to_owned(), identifier(name));
    }
    let kernel = kernel_name(name);
    let system = match kernel {
        _ if name.starts_with("x86_irq_vectors_") => "irq_vectors",
        _ if name.starts_with("x86_exceptions_") => "exceptions",
        _ if name.starts_with("lttng_") => "lttng",
        _ if tracer == "perf" => "perf",
        _ => system_of(kernel),
    };
    if let Some(call) = name.strip_prefix("syscall_entry_") {
        return ("syscalls".to_owned(), format!("sys_enter_{}", identifier(call)));
    }
    if let Some(call) = name.strip_prefix("syscall_exit_") {
        return ("syscalls".to_owned(), format!("sys_exit_{}", identifier(call)));
    }
    (system.to_owned(), identifier(kernel))
}

/// The kernel's name of an lttng-modules event (from `LTTNG_TRACEPOINT_EVENT_MAP` and similar
/// macros).
fn kernel_name(name: &str) -> &str {
    let after = |prefix: &str| name.strip_prefix(prefix);
    if name.starts_with("kvm_x86_") {
        // `kvm_x86_exit` becomes `kvm_exit`.
        return KVM_X86.iter().find(|(theirs, _)| *theirs == name).map_or(name, |(_, ours)| ours);
    }
    after("irq_softirq_")
        .and_then(|rest| {
            SOFTIRQS.iter().find(|softirq| softirq.strip_prefix("softirq_") == Some(rest))
        })
        .copied()
        .or_else(|| after("irq_").filter(|rest| rest.starts_with("tasklet_")))
        .or_else(|| {
            after("timer_").filter(|rest| {
                ["hrtimer_", "itimer_", "tick_"].iter().any(|prefix| rest.starts_with(prefix))
            })
        })
        .or_else(|| after("x86_irq_vectors_"))
        .or_else(|| after("x86_exceptions_"))
        .or_else(|| after("power_").filter(|rest| rest.starts_with("cpu_")))
        .unwrap_or(name)
}

const SOFTIRQS: &[&str] = &["softirq_entry", "softirq_exit", "softirq_raise"];

/// KVM events on x86 (`instrumentation/events/arch/x86/kvm/trace.h` of lttng-modules).
const KVM_X86: &[(&str, &str)] = &[
    ("kvm_x86_entry", "kvm_entry"),
    ("kvm_x86_exit", "kvm_exit"),
    ("kvm_x86_hypercall", "kvm_hypercall"),
    ("kvm_x86_hv_hypercall", "kvm_hv_hypercall"),
    ("kvm_x86_pio", "kvm_pio"),
    ("kvm_x86_cpuid", "kvm_cpuid"),
    ("kvm_x86_apic", "kvm_apic"),
    ("kvm_x86_inj_virq", "kvm_inj_virq"),
    ("kvm_x86_inj_exception", "kvm_inj_exception"),
    ("kvm_x86_page_fault", "kvm_page_fault"),
    ("kvm_x86_msr", "kvm_msr"),
    ("kvm_x86_cr", "kvm_cr"),
    ("kvm_x86_pic_set_irq", "kvm_pic_set_irq"),
    ("kvm_x86_apic_ipi", "kvm_apic_ipi"),
    ("kvm_x86_apic_accept_irq", "kvm_apic_accept_irq"),
    ("kvm_x86_eoi", "kvm_eoi"),
    ("kvm_x86_pv_eoi", "kvm_pv_eoi"),
    ("kvm_x86_nested_vmrun", "kvm_nested_vmrun"),
    ("kvm_x86_nested_intercepts", "kvm_nested_intercepts"),
    ("kvm_x86_nested_vmexit", "kvm_nested_vmexit"),
    ("kvm_x86_nested_vmexit_inject", "kvm_nested_vmexit_inject"),
    ("kvm_x86_nested_intr_vmexit", "kvm_nested_intr_vmexit"),
    ("kvm_x86_invlpga", "kvm_invlpga"),
    ("kvm_x86_skinit", "kvm_skinit"),
    ("kvm_x86_emulate_insn", "kvm_emulate_insn"),
    ("kvm_x86_write_tsc_offset", "kvm_write_tsc_offset"),
    ("kvm_x86_update_master_clock", "kvm_update_master_clock"),
    ("kvm_x86_track_tsc", "kvm_track_tsc"),
    ("kvm_x86_vcpu_match_mmio", "vcpu_match_mmio"),
];

/// LTTng's names of thread ids, the kernel's names, and new names for process ids: LTTng's name for
/// the process id is the kernel's name for the thread id.
const IDS: [(&str, &str, &str); 6] = [
    ("tid", "pid", "tgid"),
    ("prev_tid", "prev_pid", "prev_tgid"),
    ("next_tid", "next_pid", "next_tgid"),
    ("parent_tid", "parent_pid", "parent_tgid"),
    ("child_tid", "child_pid", "child_tgid"),
    ("old_tid", "old_pid", "old_tgid"),
];

/// The kernel's name of a field; `has` tells which other fields the event has. LTTng calls the
/// thread id `tid`, and then `pid` is the process id; perf has the kernel's `pid`.
pub(super) fn field<'n>(system: &str, name: &'n str, has: impl Fn(&str) -> bool) -> &'n str {
    let ids = IDS.iter().filter(|_| system == "sched");
    for &(thread, kernels, process) in ids {
        if name == thread {
            return kernels;
        }
        if name == kernels && has(thread) {
            return process;
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_lttng_have_the_kernels_names() {
        for (theirs, system, name) in [
            ("kvm_x86_exit", "kvm", "kvm_exit"),
            ("kvm_x86_write_tsc_offset", "kvm", "kvm_write_tsc_offset"),
            ("kvm_userspace_exit", "kvm", "kvm_userspace_exit"),
            ("sched_switch", "sched", "sched_switch"),
            ("irq_softirq_entry", "irq", "softirq_entry"),
            ("irq_handler_entry", "irq", "irq_handler_entry"),
            ("timer_hrtimer_start", "timer", "hrtimer_start"),
            ("timer_start", "timer", "timer_start"),
            ("x86_irq_vectors_local_timer_entry", "irq_vectors", "local_timer_entry"),
            ("syscall_entry_ioctl", "syscalls", "sys_enter_ioctl"),
            ("power_cpu_idle", "power", "cpu_idle"),
            ("lttng_statedump_process_state", "lttng", "lttng_statedump_process_state"),
        ] {
            let expected = (system.to_owned(), name.to_owned());
            assert_eq!(event(theirs, "lttng-modules"), expected, "{theirs}");
        }
        let kernel_event = |name, tracer| event(name, tracer);
        let names = ["tid", "pid", "parent_pid"];
        let field = |name| field("sched", name, |other| names.contains(&other));
        assert_eq!(
            [field("tid"), field("pid"), field("parent_pid")],
            ["pid", "tgid", "parent_pid"]
        );
        assert_eq!(kernel_event("kvm:kvm_exit", "perf"), ("kvm".to_owned(), "kvm_exit".to_owned()));
        assert_eq!(
            kernel_event("my app:1st", "lttng-ust"),
            ("my_app".to_owned(), "_1st".to_owned())
        );
    }
}
