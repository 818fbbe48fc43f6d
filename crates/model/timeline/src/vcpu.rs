//! The state machine of one vCPU thread: from its events, in time order, to exits with parts.
//!
//! ```text
//!   kvm_entry        kvm_exit      kvm_userspace_exit    kvm_fpu load   kvm_entry
//!  ─────┬───────────────┬──────────────────┬────────────────┬───────────────┬────
//!       │  guest │ host │      kernel      │      user      │    kernel     │
//!                 └ first host event: interrupts taken before kvm_exit
//! ```
//! A `sched_switch` away opens an off-CPU part whatever the thread was doing; the switch back
//! closes it.

mod activity;
mod phase;

use crate::exit_span::{ExitSpan, Handler, Outcome};
use crate::poll::KernelIntervals;
use crate::thread_event::{Kind, ThreadEvent};

pub use activity::VcpuActivity;
use phase::{Cpu, Handling, OpenExit, Phase, Stay};

/// Receives the exits of a recording, in time order per vCPU.
pub trait ExitSink {
    /// An exit has ended (or was cut off: see its outcome). `vcpu` is the index in
    /// [`crate::ExitPass::vcpus`].
    fn exit(&mut self, vcpu: usize, span: &ExitSpan);
}

/// Exits don't matter: what a pass finds besides does.
impl ExitSink for () {
    #[inline]
    fn exit(&mut self, _: usize, _: &ExitSpan) {}
}

/// Both get every exit.
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

/// The state after an interval whose time is accounted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SliceEnd {
    GoesOn,
    Sleeps,
    Entry,
}

/// Events of one CPU were lost up to a moment.
#[derive(Clone, Copy, Debug)]
struct Gap {
    to_ns: u64,
    stream: u16,
}

/// One vCPU thread while the recording is read.
#[derive(Debug)]
pub(crate) struct VcpuThread {
    /// Index under which the sink knows the vCPU.
    pub(crate) index: usize,
    /// The vCPU id of `kvm_entry`, once seen.
    pub(crate) vcpu_id: Option<u32>,
    phase: Phase,
    cpu: Cpu,
    /// Those of the open exit; here, so that their memory serves every exit.
    intervals: KernelIntervals,
    /// The scheduler's switches of this thread are in the recording.
    switches_recorded: bool,
    /// No loss leaves open whether the thread runs.
    cpu_known: bool,
    /// Switches of this thread that must have happened, and are not in the recording though no event was lost.
    pub(crate) switches_unseen: u64,
    stay: Stay,
    /// Level 2 runs, or did when the open exit began and nothing has changed that.
    in_l2: bool,
    gaps: Vec<Gap>,
    /// How many losses of the recording it has seen.
    pub(crate) losses_seen: u64,
    /// Time of the latest event: what is accounted for up to here is not accounted for again.
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

    /// Takes the thread's next event.
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

    /// An event that comes after one that it was before, as when the clocks of two CPUs, or the pieces
    /// of a corrected clock, don't agree: when it happened is not known.
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

    /// Whether the thread has gone before this event, or its id belongs to another vCPU's thread
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
        // Two exits in a row: KVM re-entered the guest on a fast path without kvm_entry.
        self.close_exit(sink);
        let mut span = ExitSpan::new(event.stamp_ns, event.value, event.flag);
        self.note_guest_time(&mut span);
        // Some exits of level 2 are dealt with before kvm_nested_vmexit is reached.
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

    /// The time between the guest's entry and this exit from it.
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

    /// The open exit is one of level 2.
    fn nested_exit(&mut self) {
        self.in_l2 = true;
        if let Phase::Exit(open) = &mut self.phase {
            open.span.level = 2;
        }
    }

    /// Level 1 runs next. After `kvm_nested_vmenter` this takes an enter back that the hardware has
    /// not seen: the state of level 2 did not load, or it halted at once.
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

    /// Events that mean something only while an exit is handled.
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

    /// An event says whether the thread runs; a switch before it was `unseen`, unless events were lost.
    fn cpu_shows(&mut self, unseen: bool) {
        self.switches_unseen += u64::from(self.cpu_known && unseen);
        self.cpu_known = true;
    }

    /// The thread emitted an event: it runs, whatever events of the scheduler are missing.
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
            // The switch away was not seen: the time since belongs where the thread was last.
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

    /// Gives the time since the last accounted moment to the part it belongs to.
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
                // What came before the entry can't be found to have been polling any more.
                if then != SliceEnd::Entry {
                    self.intervals.push(from_ns, now_ns, then == SliceEnd::Sleeps);
                }
            }
        }
    }

    /// Events were lost from this moment on, up to another.
    pub(crate) fn lost(&mut self, event: &ThreadEvent) {
        // Of a stream's gaps the one that ends last covers all: others are forgotten before it is.
        match self.gaps.iter_mut().find(|gap| gap.stream == event.stream) {
            Some(gap) => gap.to_ns = gap.to_ns.max(event.value),
            None => self.gaps.push(Gap { to_ns: event.value, stream: event.stream }),
        }
        // Which guest ran after the gap is unknown until an event says so, and whether the thread runs.
        (self.in_l2, self.cpu_known) = (false, false);
    }

    /// Whether events of this thread may have been lost since its open exit began, or since its
    /// guest was entered: gaps that had ended by then are forgotten. A thread that was never
    /// switched away and whose events all came from one intact CPU has lost none.
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
