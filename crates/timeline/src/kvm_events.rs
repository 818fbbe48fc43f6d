//! Which kernel events concern vCPU threads, and under which names their fields go.
//!
//! Events and fields drift between kernels; every name and fallback the timeline relies on stands
//! in this one table. Of names with `|` between them the first that the recording's own format has
//! is taken.

use eventfmt::EventFormat;

use crate::exit_span::Detail;
use crate::thread_event::Kind;

/// What one event becomes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// `system:name`, or the name alone: of any system.
    pub(crate) event: &'static str,
    pub(crate) kind: Kind,
    /// Names of its fields, empty where it needs none: see the places below.
    pub(crate) fields: [&'static str; 4],
    /// Names of the field with the guest's program counter.
    pub(crate) guest_pc: &'static str,
    /// The event counts only when the field at [`ONLY_IF`] has this value.
    pub(crate) only_if: u64,
}

/// Place of the field that becomes `value`.
pub(crate) const VALUE: usize = 0;
/// Place of the field that becomes `flag`.
pub(crate) const FLAG: usize = 1;
/// Place of the field with the id of the thread concerned; none: the thread that ran
/// (`common_pid`).
pub(crate) const THREAD: usize = 2;
/// Place of the field that decides whether the event counts.
pub(crate) const ONLY_IF: usize = 3;

impl Rule {
    /// Whatever the host does in a thread's context.
    pub(crate) const HOST_WORK: Self = rule("", Kind::HostWork);

    /// Whether events of this format are what it is about.
    pub(crate) fn is_for(&self, format: &EventFormat) -> bool {
        match self.event.split_once(':') {
            Some((system, name)) => system == format.system() && name == format.name(),
            None => self.event == format.name(),
        }
    }
}

const fn rule(event: &'static str, kind: Kind) -> Rule {
    with(event, kind, ["", "", "", ""])
}

const fn with(event: &'static str, kind: Kind, fields: [&'static str; 4]) -> Rule {
    Rule { event, kind, fields, guest_pc: "", only_if: 0 }
}

const fn exit(event: &'static str, fields: [&'static str; 4]) -> Rule {
    Rule { guest_pc: GUEST_PC, ..with(event, Kind::Exit, fields) }
}

const fn detail(event: &'static str, value: &'static str) -> Rule {
    with(event, Kind::Detail, [value, "", "", ""])
}

/// Names under which kernels give the guest's program counter.
const GUEST_PC: &str = "guest_rip|rip|vcpu_pc|sepc|pc|addr";

/// `KVM_RUN`, the ioctl by which a VMM enters its guest (`include/uapi/linux/kvm.h`).
const KVM_RUN: u64 = 0xae80;

/// Events that are part of a vCPU's life.
pub(crate) const RULES: &[Rule] = &[
    // x86: exit_reason (exit_code before 5.10 in nested events); riscv: scause.
    // arm64 has `ret` and `esr_ec`, which are put together: see `ARM64_EXIT`.
    exit("kvm:kvm_exit", ["exit_reason|exit_code|scause", "isa", "", ""]),
    exit("kvm-s390:kvm_s390_sie_exit", ["icptcode", "", "", ""]),
    exit("kvm:kvm_s390_sie_exit", ["icptcode", "", "", ""]),
    with("kvm:kvm_entry", Kind::Entry, ["vcpu_id", "", "", ""]),
    with("kvm-s390:kvm_s390_sie_enter", Kind::Entry, ["id", "", "", ""]),
    with("kvm:kvm_s390_sie_enter", Kind::Entry, ["id", "", "", ""]),
    with("kvm:kvm_userspace_exit", Kind::UserExit, ["reason", "", "", ""]),
    Rule { only_if: 1, ..with("kvm:kvm_fpu", Kind::UserReturn, ["", "", "", "load"]) },
    rule("kvm:kvm_timer_restore_state", Kind::UserReturn),
    Rule {
        only_if: KVM_RUN,
        ..with("syscalls:sys_enter_ioctl", Kind::UserReturn, ["", "", "", "cmd"])
    },
    with("kvm:kvm_vcpu_wakeup", Kind::VcpuWakeup, ["ns", "waited", "", ""]),
    rule("kvm:kvm_nested_vmenter", Kind::NestedEnter),
    rule("kvm:kvm_nested_vmrun", Kind::NestedEnter),
    rule("kvm:kvm_nested_vmenter_failed", Kind::NestedEnterFailed),
    rule("kvm:kvm_nested_vmexit", Kind::NestedExit),
    with("kvm:kvm_nested_vmexit_inject", Kind::NestedInject, ["exit_reason|exit_code", "", "", ""]),
    with("sched:sched_waking", Kind::Wake, ["", "", "pid", ""]),
    with("sched:sched_wakeup", Kind::Wake, ["", "", "pid", ""]),
    with("sched:sched_process_exit", Kind::ThreadGone, ["", "", "pid", ""]),
];

/// Events that tell exits of one reason apart; read only when a report asks for details.
pub(crate) const DETAIL_RULES: &[(Detail, Rule)] = &[
    (Detail::Msr, detail("kvm:kvm_msr", "ecx")),
    (Detail::Port, detail("kvm:kvm_pio", "port")),
    (Detail::Gpa, detail("kvm:kvm_page_fault", "fault_address|address")),
    (Detail::Gpa, detail("kvm:kvm_guest_fault", "ipa")),
    (Detail::Gpa, detail("kvm:kvm_fast_mmio", "gpa|fast_mmio")),
    (Detail::Gpa, detail("kvm:kvm_mmio", "gpa")),
    (Detail::Hypercall, detail("kvm:kvm_hypercall", "nr")),
    (Detail::Hypercall, detail("kvm:kvm_hv_hypercall", "code")),
    (Detail::Hypercall, detail("kvm:kvm_xen_hypercall", "nr")),
    (Detail::Hypercall, detail("kvm:kvm_hvc_arm64", "r0")),
    (Detail::Hypercall, detail("kvm-s390:kvm_s390_intercept_diag", "code")),
    (Detail::CpuidLeaf, detail("kvm:kvm_cpuid", "function")),
    // A probe, whose system is the group that whoever set it gave it.
    (Detail::VmcbClean, detail("enter_svm_guest_mode", "clean")),
];

/// The two fields of arm64's `kvm_exit` that make up its code, high half first.
pub(crate) const ARM64_EXIT: (&str, &str) = ("ret", "esr_ec");

/// The event that concerns two threads.
pub(crate) const SCHED_SWITCH: &str = "sched:sched_switch";

/// Bits of `prev_state` that say why a thread sleeps; none set: it stays runnable. Above them
/// kernels put markers such as "preempted" (`TASK_REPORT`, `TASK_REPORT_MAX`).
pub(crate) const SLEEP_STATES: u64 = 0xff;

/// Systems whose events, in a vCPU thread's context between `kvm_entry` and `kvm_exit`, show that
/// the hardware has left the guest.
pub(crate) const HOST_WORK_SYSTEMS: &[&str] =
    &["irq", "irq_vectors", "timer", "sched", "ipi", "workqueue", "rcu", "napi", "net", "power"];
