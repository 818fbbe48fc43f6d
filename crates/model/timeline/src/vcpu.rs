//! The state machine of a vCPU thread: converts its events, in time order, to exits with parts.
//!
//! ```text
//!   kvm_entry        kvm_exit      kvm_userspace_exit    kvm_fpu load   kvm_entry
//!  ─────┬───────────────┬──────────────────┬────────────────┬───────────────┬────
//!       │  guest │ host │      kernel      │      user      │    kernel     │
//!                 └ first host event: interrupts taken before kvm_exit
//! ```
//! A `sched_switch` away starts an off-CPU part, whatever the thread was doing; the switch back
//! ends it.

mod activity;
mod phase;

use crate::exit_span::{ExitSpan, Handler, Outcome};
use crate::poll::KernelIntervals;
use crate::thread_event::{Kind, ThreadEvent};

pub use activity::VcpuActivity;
use phase::{Cpu, Handling, OpenExit, Phase, Stay};

/// Receives the exits of a recording, in time order per vCPU.
pub trait ExitSink {
    /// An exit has ended or was cut off: see its outcome. `vcpu` is the index in
    /// [`crate::ExitPass::vcpus`].
    fn exit(&mut self, vcpu: usize, span: &ExitSpan);
}

/// Ignores exits, for passes with other results.
impl ExitSink for () {
    #[inline]
    fn exit(&mut self, _: usize, _: &ExitSpan) {}
}

/// Passes every exit to both sinks.
impl<A: ExitSink, B: ExitSink> ExitSink for (A, B) {
    #[inline]
    fn exit(&mut self, vcpu: usize, span: &ExitSpan) {
        self.0.exit(vcpu, span);
        self.1.exit(vcpu, span);
    }
}

impl<S: ExitSink> ExitSink for Option<S> {
    #[inline]
    fn exit(&mut self, vcpu: usize, span: &ExitSpan) {
        if let Some(sink) = self {
            sink.exit(vcpu, span);
        }
    }
}

/// The state after an accounted interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SliceEnd {
    GoesOn,
    Sleeps,
    Entry,
}

/// Events of a CPU were lost up to a time.
#[derive(Clone, Copy, Debug)]
struct Gap {
    to_ns: u64,
    stream: u16,
}

/// The state of a vCPU thread during reading.
#[derive(Debug)]
pub(crate) struct VcpuThread {
    /// Index of the vCPU in calls to the sink.
    pub(crate) index: usize,
    /// The vCPU id of `kvm_entry`, once seen.
    pub(crate) vcpu_id: Option<u32>,
    phase: Phase,
    cpu: Cpu,
    /// Intervals of the open exit; here, so that exits reuse the memory.
    intervals: KernelIntervals,
    /// Whether the recording has scheduler switches of this thread.
    switches_recorded: bool,
    /// Whether it is known, despite losses, if the thread is on CPU.
    cpu_known: bool,
    /// Switches of this thread that must have happened but were not recorded, although no event was
    /// lost.
    pub(crate) switches_unseen: u64,
    stay: Stay,
    /// Level 2 runs, or ran when the open exit began and nothing has changed that since.
    in_l2: bool,
    gaps: Vec<Gap>,
    /// Number of the recording's losses that it has processed.
    pub(crate) losses_seen: u64,
    /// Time of the latest event: time before it is already accounted for.
    latest_ns: u64,
}

impl VcpuThread {
    pub(crate) fn new(index: usize) -> Self {
        Self {
            index,
            vcpu_id: None,
            phase: Phase::Unknown,
            cpu: Cpu::Running,
            intervals: KernelIntervals::default(),
            switches_recorded: false,
            cpu_known: true,
            switches_unseen: 0,
            stay: Stay::default(),
            in_l2: false,
            gaps: Vec::new(),
            losses_seen: 0,
            latest_ns: 0,
        }
    }

    /// Processes the thread's next event.
    #[inline]
    pub(crate) fn feed(&mut self, event: &ThreadEvent, sink: &mut impl ExitSink) {
        if event.stamp_ns < self.latest_ns {
            self.late(event, sink);
            return;
        }
        if event.kind != Kind::Lost {
            self.latest_ns = event.stamp_ns;
        }
        match event.kind {
            Kind::Exit => self.exit(event, sink),
            Kind::Entry => self.entry(event, sink),
            Kind::HostWork => self.host_work(event.stamp_ns),
            Kind::SchedOut => self.sched_out(event),
            Kind::SchedIn => self.sched_in(event),
            Kind::Wake => self.wake(event.stamp_ns),
            Kind::Lost => self.lost(event),
            Kind::NestedEnter => self.nested_enter(),
            Kind::NestedEnterFailed => self.nested_enter_failed(),
            Kind::NestedExit => self.nested_exit(),
            Kind::NestedInject => self.nested_inject(event.value),
            _ => self.during_exit(event),
        }
    }

    /// An event with an earlier time than its predecessor, because the clocks of two CPUs or the
    /// segments of a corrected clock disagree: its real time is unknown.
    #[cold]
    fn late(&mut self, event: &ThreadEvent, sink: &mut impl ExitSink) {
        if event.kind == Kind::Lost {
            self.lost(event);
            return;
        }
        let now_ns = self.latest_ns;
        self.lost(&ThreadEvent::lost(event.stream, now_ns, now_ns.saturating_add(1)));
        self.feed(&ThreadEvent { stamp_ns: now_ns, ..*event }, sink);
    }

    /// Whether the thread has ended before this event, or its id belongs to another vCPU thread
    /// from here on.
    #[inline]
    pub(crate) fn ends_before(&self, event: &ThreadEvent) -> bool {
        match event.kind {
            Kind::ThreadGone => true,
            Kind::Entry => {
                let id = event.value.checked_sub(1);
                id.is_some_and(|id| self.vcpu_id.is_some_and(|known| u64::from(known) != id))
            }
            _ => false,
        }
    }

    /// The recording or the thread has ended.
    pub(crate) fn finish(&mut self, sink: &mut impl ExitSink) {
        self.close_exit(sink);
        self.phase = Phase::Unknown;
    }

    fn exit(&mut self, event: &ThreadEvent, sink: &mut impl ExitSink) {
        // Two consecutive exits: KVM re-entered the guest on a fast path without `kvm_entry`.
        self.close_exit(sink);
        let mut span = ExitSpan::new(event.stamp_ns, event.value, event.flag);
        self.note_guest_time(&mut span);
        // Some exits of level 2 are handled before `kvm_nested_vmexit`.
        span.level = if self.in_l2 { 2 } else { 1 };
        self.phase = Phase::Exit(OpenExit {
            span,
            accounted_ns: event.stamp_ns,
            handling: Handling::Kernel,
            polled_ns: None,
        });
        self.has_cpu();
        self.stay = Stay { stream: event.stream, moved: false, was_off: false };
        self.intervals.clear();
        self.forget_gaps_before(event.stamp_ns);
    }

    /// Sets the time between the guest's entry and this exit.
    fn note_guest_time(&self, span: &mut ExitSpan) {
        let Phase::Guest { since_ns, host_since_ns } = self.phase else { return };
        let host_ns = host_since_ns.unwrap_or(span.start_ns);
        if !self.lost_since() {
            span.before_exit_ns = span.start_ns.saturating_sub(host_ns);
            span.guest_ns = host_ns.saturating_sub(since_ns);
        }
    }

    fn entry(&mut self, event: &ThreadEvent, sink: &mut impl ExitSink) {
        self.has_cpu();
        self.account_until(event.stamp_ns, SliceEnd::Entry);
        self.stay.moved |= self.open_exit().is_some() && event.stream != self.stay.stream;
        let lost = self.lost_since();
        if let Phase::Exit(open) = &mut self.phase {
            open.span.end_ns = event.stamp_ns.max(open.span.start_ns);
            open.span.outcome = if lost { Outcome::LostIn } else { Outcome::Paired };
            open.span.user_return_unseen |= open.handling == Handling::User;
            sink.exit(self.index, &open.span);
        }
        self.phase = Phase::Guest { since_ns: event.stamp_ns, host_since_ns: None };
        self.forget_gaps_before(event.stamp_ns);
        if let Some(id) = event.value.checked_sub(1) {
            self.vcpu_id = u32::try_from(id).ok();
        }
    }

    /// The open exit ends without an entry.
    fn close_exit(&mut self, sink: &mut impl ExitSink) {
        if let Phase::Exit(open) = &self.phase {
            sink.exit(self.index, &open.span);
            self.phase = Phase::Unknown;
        }
    }

    fn nested_enter(&mut self) {
        self.in_l2 = true;
        if let Phase::Exit(open) = &mut self.phase {
            open.span.entered_l2 = true;
        }
    }

    fn nested_enter_failed(&mut self) {
        self.in_l2 = false;
        if let Phase::Exit(open) = &mut self.phase {
            open.span.entered_l2 = false;
        }
    }

    /// The open exit is an exit of level 2.
    fn nested_exit(&mut self) {
        self.in_l2 = true;
        if let Phase::Exit(open) = &mut self.phase {
            open.span.level = 2;
        }
    }

    /// Level 1 runs next. After `kvm_nested_vmenter`, this cancels a nested entry before the
    /// hardware entered level 2: the state of level 2 did not load, or it halted at once.
    fn nested_inject(&mut self, code: u64) {
        self.in_l2 = false;
        match &mut self.phase {
            Phase::Exit(open) if !open.span.entered_l2 => {
                open.span.level = 2;
                open.claim(Handler::L1);
                open.span.injected_as = code;
            }
            _ => {}
        }
    }

    /// Events that matter only while an exit is handled.
    fn during_exit(&mut self, event: &ThreadEvent) {
        let returns = event.kind == Kind::UserReturn && self.is_in_user_space();
        if returns || matches!(event.kind, Kind::UserExit | Kind::VcpuWakeup) {
            self.account(event.stamp_ns);
        }
        let Phase::Exit(open) = &mut self.phase else { return };
        match event.kind {
            Kind::UserExit => {
                open.handling = Handling::User;
                open.claim(Handler::User);
            }
            Kind::UserReturn => open.handling = Handling::Kernel,
            Kind::VcpuWakeup => open.wakeup(event, &mut self.intervals),
            Kind::Detail => open.detail(event),
            Kind::GuestPc => open.span.guest_pc = event.value,
            Kind::FinerReason => open.span.code = event.value,
            _ => {}
        }
    }

    fn host_work(&mut self, stamp_ns: u64) {
        if let Phase::Guest { host_since_ns, .. } = &mut self.phase {
            host_since_ns.get_or_insert(stamp_ns);
        }
    }

    /// An event shows whether the thread is on CPU; if `unseen`, a switch is missing, unless events
    /// were lost.
    fn cpu_shows(&mut self, unseen: bool) {
        self.switches_unseen += u64::from(self.cpu_known && unseen);
        self.cpu_known = true;
    }

    /// The thread emitted an event, so it is on CPU, even if scheduler events are missing.
    fn has_cpu(&mut self) {
        self.cpu_shows(self.cpu != Cpu::Running);
        self.cpu = Cpu::Running;
    }

    fn sched_out(&mut self, event: &ThreadEvent) {
        self.cpu_shows(self.cpu != Cpu::Running);
        self.switches_recorded = true;
        self.host_work(event.stamp_ns);
        let (slice_end, cpu) = if event.flag == 1 {
            (SliceEnd::GoesOn, Cpu::Preempted)
        } else {
            (SliceEnd::Sleeps, Cpu::Blocked)
        };
        self.account_until(event.stamp_ns, slice_end);
        self.cpu = cpu;
        self.stay.was_off = true;
    }

    fn sched_in(&mut self, event: &ThreadEvent) {
        self.cpu_shows(self.cpu == Cpu::Running && self.switches_recorded);
        if self.cpu == Cpu::Running {
            // The switch away was not seen: the time since belongs to the thread's last state.
            self.host_work(event.stamp_ns);
        }
        self.account(event.stamp_ns);
        self.cpu = Cpu::Running;
        self.stay.moved |= event.stream != self.stay.stream;
    }

    fn wake(&mut self, stamp_ns: u64) {
        if self.cpu == Cpu::Blocked {
            self.account(stamp_ns);
            self.cpu = Cpu::Woken;
        }
    }

    /// Assigns the time since the last accounted moment to a part.
    fn account(&mut self, now_ns: u64) {
        self.account_until(now_ns, SliceEnd::GoesOn);
    }

    #[inline]
    fn account_until(&mut self, now_ns: u64, then: SliceEnd) {
        let Phase::Exit(open) = &mut self.phase else { return };
        let parts = &mut open.span.parts;
        let from_ns = open.accounted_ns;
        let took_ns = now_ns.saturating_sub(from_ns);
        open.accounted_ns = from_ns.max(now_ns);
        match (self.cpu, open.handling) {
            (Cpu::Preempted | Cpu::Woken, _) => parts.runnable_ns += took_ns,
            (Cpu::Blocked, _) => parts.blocked_ns += took_ns,
            (Cpu::Running, Handling::User) => parts.user_ns += took_ns,
            (Cpu::Running, Handling::Kernel) => {
                parts.kernel_ns += took_ns;
                // Time before an entry can no longer turn out to be halt polling.
                if then != SliceEnd::Entry {
                    self.intervals.push(from_ns, now_ns, then == SliceEnd::Sleeps);
                }
            }
        }
    }

    /// Events were lost from this time to another.
    pub(crate) fn lost(&mut self, event: &ThreadEvent) {
        // The gap of a stream that ends last covers all: earlier gaps expire before it.
        match self.gaps.iter_mut().find(|gap| gap.stream == event.stream) {
            Some(gap) => gap.to_ns = gap.to_ns.max(event.value),
            None => self.gaps.push(Gap { to_ns: event.value, stream: event.stream }),
        }
        // After the gap, which guest runs and whether the thread is on CPU is unknown until an
        // event shows it.
        (self.in_l2, self.cpu_known) = (false, false);
    }

    /// Whether events of this thread may have been lost since its open exit began, or since its
    /// guest was entered: gaps that ended before have expired. A thread that was never switched
    /// away, with all events from one CPU without losses, has lost none.
    pub(crate) fn lost_since(&self) -> bool {
        let stayed = || self.switches_recorded && !self.stay.was_off && !self.stay.moved;
        self.gaps.iter().any(|gap| gap.stream == self.stay.stream || !stayed())
    }

    fn forget_gaps_before(&mut self, stamp_ns: u64) {
        if !self.gaps.is_empty() {
            self.gaps.retain(|gap| gap.to_ns > stamp_ns);
        }
    }
}
