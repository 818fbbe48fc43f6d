//! What happened to one thread: the compact form in which events reach the vCPU state machine.
//!
//! Decoding turns every relevant event into zero, one or two of these (a `sched_switch` concerns
//! two threads), so that the rest of the timeline sees neither formats nor byte orders.

/// What a [`ThreadEvent`] says; the comment on each names its source events and what `value` and
/// `flag` hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// `kvm_exit` and its like ([`crate::arch`]): `value` the raw code, `flag` the `isa` field.
    Exit,
    /// The exit just seen has a finer reason (LoongArch: `kvm_exit_idle`): `value` its code.
    FinerReason,
    /// `kvm_entry` and its like: `value` the vCPU id plus one (0: not in the event).
    Entry,
    /// `kvm_userspace_exit`: the thread is about to return to the VMM; `value` the exit reason.
    UserExit,
    /// The thread is in the kernel again: `kvm_fpu` load, `kvm_timer_restore_state`, `KVM_RUN`.
    UserReturn,
    /// `kvm_vcpu_wakeup`: `value` is `ns`, `flag` is `waited`.
    VcpuWakeup,
    /// `kvm_nested_vmenter`, `kvm_nested_vmrun`.
    NestedEnter,
    /// `kvm_nested_vmenter_failed`.
    NestedEnterFailed,
    /// `kvm_nested_vmexit`: the exit just seen was one of a level-2 guest.
    NestedExit,
    /// `kvm_nested_vmexit_inject`: that exit goes to the parent; `value` the injected code.
    NestedInject,
    /// `sched_switch` away from the thread; `flag` 1 when it stays runnable.
    SchedOut,
    /// `sched_switch` to the thread.
    SchedIn,
    /// `sched_waking`, `sched_wakeup` of the thread.
    Wake,
    /// `sched_process_exit` of the thread.
    ThreadGone,
    /// Host work in the thread's context (interrupts, timers, scheduler).
    HostWork,
    /// An address, number or register that tells exits of one reason apart; `value` is it and
    /// `flag` the [`Detail`](crate::Detail) kind.
    Detail,
    /// Guest program counter of the exit just seen: `value`; there only if asked for.
    GuestPc,
    /// Events were lost: `stamp_ns` is the last moment known before, `value` the first after.
    /// Concerns every thread.
    Lost,
}

impl Kind {
    /// How many kinds there are.
    pub(crate) const COUNT: usize = Self::Lost as usize + 1;
}

/// One event that concerns one thread, in 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadEvent {
    /// Time, in the recording's corrected clock.
    pub stamp_ns: u64,
    /// See [`Kind`].
    pub value: u64,
    /// Thread id (the kernel's `pid`) of the thread concerned; not always the one that ran.
    pub thread: u32,
    /// Index of the stream (per-CPU buffer) that holds the event.
    pub stream: u16,
    /// What happened.
    pub kind: Kind,
    /// See [`Kind`].
    pub flag: u8,
}

const _: () = assert!(size_of::<ThreadEvent>() == 24);

/// A set of kinds of events: a part of an exit whose events never occur was not recorded.
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

    /// Whether an event of that kind was seen.
    #[must_use]
    pub fn contains(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}
