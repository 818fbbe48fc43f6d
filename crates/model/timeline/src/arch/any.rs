//! KVM events that every architecture has, and scheduler events.

use super::{Access, AccessKind, Arch, Injection, Rule};
use crate::exit_span::Detail;
use crate::thread_event::Kind;

/// `KVM_RUN`, the ioctl by which a VMM enters its guest (`include/uapi/linux/kvm.h`).
const KVM_RUN: u64 = 0xae80;

/// `include/trace/events/kvm.h` and `sched.h`.
pub(super) const ARCH: Arch = Arch {
    rules: &[
        Rule::new("kvm:kvm_userspace_exit", Kind::UserExit).value("reason"),
        Rule::new("kvm:kvm_fpu", Kind::UserReturn).only_if("load", 1),
        Rule::new("syscalls:sys_enter_ioctl", Kind::UserReturn).only_if("cmd", KVM_RUN),
        Rule::new("kvm:kvm_vcpu_wakeup", Kind::VcpuWakeup).value("ns").flag("waited"),
        Rule::new("sched:sched_waking", Kind::Wake).thread("pid"),
        Rule::new("sched:sched_wakeup", Kind::Wake).thread("pid"),
        Rule::new("sched:sched_process_exit", Kind::ThreadGone).thread("pid"),
    ],
    details: &[(Detail::Gpa, Rule::detail("kvm:kvm_mmio", "gpa"))],
    accesses: &[Access::new("kvm:kvm_mmio", AccessKind::Mmio, &["type", "gpa"])],
    injections: &[Injection::new("kvm:kvm_set_irq", &["none", "level", "common_flags", "none"])],
    isas: &[],
};

/// The only event that concerns two threads.
pub const SCHED_SWITCH: &str = "sched:sched_switch";

/// Bits of `prev_state` that say why a thread sleeps; 0: it remains runnable. Higher bits are
/// markers such as "preempted" (`TASK_REPORT`, `TASK_REPORT_MAX`).
pub(crate) const SLEEP_STATES: u64 = 0xff;

/// Systems whose events, in a vCPU thread's context between entry and exit, show that the hardware
/// has left the guest.
pub(crate) const HOST_WORK_SYSTEMS: &[&str] =
    &["irq", "irq_vectors", "timer", "sched", "ipi", "workqueue", "rcu", "napi", "net", "power"];
