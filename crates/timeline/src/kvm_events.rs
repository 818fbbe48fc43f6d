//! Which kernel events concern vCPU threads, and under which names their fields go.
//!
//! Events and fields drift between kernels; every name and fallback the timeline relies on stands
//! in this one table. The first field of a list that the recording's own format has is taken.

use crate::exit_span::Detail;
use crate::thread_event::Kind;

/// What one event becomes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// `system:name`.
    pub(crate) event: &'static str,
    pub(crate) kind: Kind,
    /// Field with the id of the thread concerned; empty: the thread that ran (`common_pid`).
    pub(crate) thread: &'static str,
    /// Names of the field that becomes `value`.
    pub(crate) value: &'static [&'static str],
    /// Names of the field with the guest's program counter.
    pub(crate) guest_pc: &'static [&'static str],
    /// Names of the field that becomes `flag`.
    pub(crate) flag: &'static [&'static str],
    /// The event counts only when this field has this value.
    pub(crate) only_if: Option<(&'static str, u64)>,
}

impl Rule {
    /// Whatever the host does in a thread's context.
    pub(crate) const HOST_WORK: Self = rule("", Kind::HostWork);
}

const fn rule(event: &'static str, kind: Kind) -> Rule {
    Rule { event, kind, thread: "", value: &[], guest_pc: &[], flag: &[], only_if: None }
}

const fn detail(event: &'static str, value: &'static [&'static str]) -> Rule {
    Rule { value, ..rule(event, Kind::Detail) }
}

/// Names under which kernels give the guest's program counter.
const GUEST_PC: &[&str] = &["guest_rip", "rip", "vcpu_pc", "sepc", "pc", "addr"];

/// `KVM_RUN`, the ioctl by which a VMM enters its guest (`include/uapi/linux/kvm.h`).
const KVM_RUN: u64 = 0xae80;

/// Events that are part of a vCPU's life.
pub(crate) const RULES: &[Rule] = &[
    // x86: exit_reason (exit_code before 5.10 in nested events); riscv: scause.
    // arm64 has `ret` and `esr_ec`, which are put together: see `ARM64_EXIT`.
    Rule {
        value: &["exit_reason", "exit_code", "scause"],
        guest_pc: GUEST_PC,
        flag: &["isa"],
        ..rule("kvm:kvm_exit", Kind::Exit)
    },
    Rule {
        value: &["icptcode"],
        guest_pc: GUEST_PC,
        ..rule("kvm-s390:kvm_s390_sie_exit", Kind::Exit)
    },
    Rule { value: &["icptcode"], guest_pc: GUEST_PC, ..rule("kvm:kvm_s390_sie_exit", Kind::Exit) },
    Rule { value: &["vcpu_id"], ..rule("kvm:kvm_entry", Kind::Entry) },
    Rule { value: &["id"], ..rule("kvm-s390:kvm_s390_sie_enter", Kind::Entry) },
    Rule { value: &["id"], ..rule("kvm:kvm_s390_sie_enter", Kind::Entry) },
    Rule { value: &["reason"], ..rule("kvm:kvm_userspace_exit", Kind::UserExit) },
    Rule { only_if: Some(("load", 1)), ..rule("kvm:kvm_fpu", Kind::UserReturn) },
    rule("kvm:kvm_timer_restore_state", Kind::UserReturn),
    Rule { only_if: Some(("cmd", KVM_RUN)), ..rule("syscalls:sys_enter_ioctl", Kind::UserReturn) },
    Rule { value: &["ns"], flag: &["waited"], ..rule("kvm:kvm_vcpu_wakeup", Kind::VcpuWakeup) },
    rule("kvm:kvm_nested_vmenter", Kind::NestedEnter),
    rule("kvm:kvm_nested_vmrun", Kind::NestedEnter),
    rule("kvm:kvm_nested_vmenter_failed", Kind::NestedEnterFailed),
    rule("kvm:kvm_nested_vmexit", Kind::NestedExit),
    Rule {
        value: &["exit_reason", "exit_code"],
        ..rule("kvm:kvm_nested_vmexit_inject", Kind::NestedInject)
    },
    Rule { thread: "pid", ..rule("sched:sched_waking", Kind::Wake) },
    Rule { thread: "pid", ..rule("sched:sched_wakeup", Kind::Wake) },
    Rule { thread: "pid", ..rule("sched:sched_process_exit", Kind::ThreadGone) },
];

/// Events that tell exits of one reason apart; read only when a report asks for details.
pub(crate) const DETAIL_RULES: &[(Detail, Rule)] = &[
    (Detail::Msr, detail("kvm:kvm_msr", &["ecx"])),
    (Detail::Port, detail("kvm:kvm_pio", &["port"])),
    (Detail::Gpa, detail("kvm:kvm_page_fault", &["fault_address", "address"])),
    (Detail::Gpa, detail("kvm:kvm_guest_fault", &["ipa"])),
    (Detail::Gpa, detail("kvm:kvm_fast_mmio", &["gpa", "fast_mmio"])),
    (Detail::Gpa, detail("kvm:kvm_mmio", &["gpa"])),
    (Detail::Hypercall, detail("kvm:kvm_hypercall", &["nr"])),
    (Detail::Hypercall, detail("kvm:kvm_hv_hypercall", &["code"])),
    (Detail::Hypercall, detail("kvm:kvm_xen_hypercall", &["nr"])),
    (Detail::Hypercall, detail("kvm:kvm_hvc_arm64", &["r0"])),
    (Detail::Hypercall, detail("kvm-s390:kvm_s390_intercept_diag", &["code"])),
    (Detail::CpuidLeaf, detail("kvm:kvm_cpuid", &["function"])),
];

/// The two fields of arm64's `kvm_exit` that make up its code, high half first.
pub(crate) const ARM64_EXIT: (&str, &str) = ("ret", "esr_ec");

/// Name and fields of the event that concerns two threads.
pub(crate) const SCHED_SWITCH: &str = "sched:sched_switch";

/// Systems whose events, in a vCPU thread's context between `kvm_entry` and `kvm_exit`, show that
/// the hardware has left the guest.
pub(crate) const HOST_WORK_SYSTEMS: &[&str] =
    &["irq", "irq_vectors", "timer", "sched", "ipi", "workqueue", "rcu", "napi", "net", "power"];
