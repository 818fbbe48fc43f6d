//! Events of one thread: the compact form in which events reach the vCPU state machine.
//!
//! Decoding converts each relevant event to zero, one or two of these (a `sched_switch` concerns
//! two threads), so that the rest of the timeline sees neither formats nor byte orders.

/// The meaning of a [`ThreadEvent`]. The comment on each kind names its source events and the
/// content of `value` and `flag`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// `kvm_exit` and equivalents ([`crate::arch`]): `value` is the raw code, `flag` the `isa`
    /// field.
    Exit,
    /// A finer reason for the preceding exit (LoongArch: `kvm_exit_idle`): `value` is its code.
    FinerReason,
    /// `kvm_entry` and equivalents: `value` is the vCPU id plus one (0: not in the event).
    Entry,
    /// `kvm_userspace_exit`: the thread returns to the VMM; `value` is the exit reason.
    UserExit,
    /// The thread is back in the kernel: `kvm_fpu` load, `kvm_timer_restore_state`, `KVM_RUN`.
    UserReturn,
    /// `kvm_vcpu_wakeup`: `value` is `ns`, `flag` is `waited`.
    VcpuWakeup,
    /// `kvm_nested_vmenter`, `kvm_nested_vmrun`.
    NestedEnter,
    /// `kvm_nested_vmenter_failed`.
    NestedEnterFailed,
    /// `kvm_nested_vmexit`: the preceding exit was an exit of level 2.
    NestedExit,
    /// `kvm_nested_vmexit_inject`: that exit goes to level 1; `value` is the injected code.
    NestedInject,
    /// `sched_switch` away from the thread; `flag` is 1 if it stays runnable.
    SchedOut,
    /// `sched_switch` to the thread.
    SchedIn,
    /// `sched_waking`, `sched_wakeup` of the thread.
    Wake,
    /// `sched_process_exit` of the thread.
    ThreadGone,
    /// Host work in the thread's context (interrupts, timers, scheduler).
    HostWork,
    /// An address, number or register that distinguishes exits with the same reason; `value` has it
    /// and `flag` the [`Detail`](crate::Detail) kind.
    Detail,
    /// Guest program counter of the preceding exit, in `value`; only if requested.
    GuestPc,
    /// Events were lost: `stamp_ns` is the last known time before, `value` the first after.
    /// Concerns every thread.
    Lost,
}

impl Kind {
    /// The number of kinds.
    pub(crate) const COUNT: usize = Self::Lost as usize + 1;
}

/// An event that concerns one thread, in 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadEvent {
    /// Time on the recording's corrected clock.
    pub stamp_ns: u64,
    /// See [`Kind`].
    pub value: u64,
    /// Id (the kernel's `pid`) of the thread that the event concerns, which is not always the
    /// thread that ran.
    pub thread: u32,
    /// Index of the stream (per-CPU buffer) that holds the event.
    pub stream: u16,
    /// Meaning of the event.
    pub kind: Kind,
    /// See [`Kind`].
    pub flag: u8,
}

const _: () = assert!(size_of::<ThreadEvent>() == 24);

/// A set of event kinds: a part of an exit whose events never occur was not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindSet(u32);

impl KindSet {
    #[inline(always)]
    pub(crate) fn insert(&mut self, kind: Kind) {
        self.0 |= 1 << kind as u8;
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Whether an event of this kind was seen.
    #[must_use]
    pub fn contains(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}
