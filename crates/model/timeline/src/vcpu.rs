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

use crate::exit_span::{Detail, ExitSpan, Handler, Outcome};
use crate::poll::KernelIntervals;
use crate::thread_event::{Kind, ThreadEvent};

pub use activity::VcpuActivity;

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

/// Where the thread is while an exit is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handling {
    Kernel,
    User,
}

/// Whether the thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cpu {
    Running,
    OffRunnable,
    OffBlocked,
}

/// What comes after an interval of time that is accounted for.
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
    /// The exit being handled, while `open`; kept in place, for it is large and exits are many.
    span: ExitSpan,
    open: bool,
    /// Up to here the open exit's time has been given to its parts.
    accounted_ns: u64,
    handling: Handling,
    cpu: Cpu,
    /// It is off its CPU, and was woken since it went to sleep.
    woken: bool,
    intervals: KernelIntervals,
    /// From when to when it polled, by the last `kvm_vcpu_wakeup` of the open exit.
    polled_ns: Option<(u64, u64)>,
    /// The scheduler's switches of this thread are in the recording.
    switches_recorded: bool,
    /// No loss leaves open whether the thread runs.
    cpu_known: bool,
    /// Switches of this thread that must have happened, and are not in the recording though no event was lost.
    pub(crate) switches_unseen: u64,
    /// The thread was off its CPU at some time during the open exit.
    was_off: bool,
    /// Streams that held the open exit's own events: one, unless the thread moved.
    stream: u16,
    moved: bool,
    /// Level 2 runs, or did when the open exit began and nothing has changed that.
    in_l2: bool,
    /// Time of `kvm_entry` while the guest runs.
    guest_since_ns: Option<u64>,
    /// First sign of the host in that window.
    host_since_ns: Option<u64>,
    gaps: Vec<Gap>,
    /// Time of the latest event: what is accounted for up to here is not accounted for again.
    latest_ns: u64,
}

impl VcpuThread {
    pub(crate) fn new(index: usize) -> Self {
        Self {
            index,
            vcpu_id: None,
            span: ExitSpan::new(0, 0, 0),
            open: false,
            accounted_ns: 0,
            handling: Handling::Kernel,
            cpu: Cpu::Running,
            woken: false,
            intervals: KernelIntervals::default(),
            polled_ns: None,
            switches_recorded: false,
            cpu_known: true,
            switches_unseen: 0,
            was_off: false,
            stream: 0,
            moved: false,
            in_l2: false,
            guest_since_ns: None,
            host_since_ns: None,
            gaps: Vec::new(),
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
        self.close_unpaired(sink);
        self.guest_since_ns = None;
    }

    fn exit(&mut self, event: &ThreadEvent, sink: &mut impl ExitSink) {
        // Two exits in a row: KVM re-entered the guest on a fast path without kvm_entry.
        self.close_unpaired(sink);
        self.span = ExitSpan::new(event.stamp_ns, event.value, event.flag);
        self.open = true;
        self.close_guest_window();
        self.accounted_ns = event.stamp_ns;
        self.handling = Handling::Kernel;
        self.has_cpu();
        self.was_off = false;
        self.stream = event.stream;
        self.moved = false;
        self.intervals.clear();
        // Some exits of level 2 are dealt with before kvm_nested_vmexit is reached.
        self.span.level = if self.in_l2 { 2 } else { 1 };
        self.forget_gaps_before(event.stamp_ns);
    }

    fn close_guest_window(&mut self) {
        let exit_ns = self.span.start_ns;
        if let Some(entry_ns) = self.guest_since_ns.take() {
            let host_ns = self.host_since_ns.take().unwrap_or(exit_ns);
            if !self.lost_since() {
                self.span.before_exit_ns = exit_ns.saturating_sub(host_ns);
                self.span.guest_ns = host_ns.saturating_sub(entry_ns);
            }
        }
        self.host_since_ns = None;
    }

    fn entry(&mut self, event: &ThreadEvent, sink: &mut impl ExitSink) {
        self.has_cpu();
        self.account_until(event.stamp_ns, SliceEnd::Entry);
        if self.open {
            self.moved |= event.stream != self.stream;
            self.span.end_ns = event.stamp_ns.max(self.span.start_ns);
            let lost = self.lost_since();
            self.span.outcome = if lost { Outcome::LostIn } else { Outcome::Paired };
            self.span.user_return_unseen |= self.handling == Handling::User;
            self.close(sink);
        }
        self.guest_since_ns = Some(event.stamp_ns);
        self.host_since_ns = None;
        self.forget_gaps_before(event.stamp_ns);
        if let Some(id) = event.value.checked_sub(1) {
            self.vcpu_id = u32::try_from(id).ok();
        }
    }

    fn close_unpaired(&mut self, sink: &mut impl ExitSink) {
        if self.open {
            self.close(sink);
        }
    }

    fn close(&mut self, sink: &mut impl ExitSink) {
        self.open = false;
        sink.exit(self.index, &self.span);
    }

    fn nested_enter(&mut self) {
        self.span.entered_l2 = self.open;
        self.in_l2 = true;
    }

    fn nested_enter_failed(&mut self) {
        self.span.entered_l2 = false;
        self.in_l2 = false;
    }

    /// The open exit is one of level 2.
    fn nested_exit(&mut self) {
        self.span.level = 2;
        self.in_l2 = true;
    }

    /// Level 1 runs next. After `kvm_nested_vmenter` this takes an enter back that the hardware has
    /// not seen: the state of level 2 did not load, or it halted at once.
    fn nested_inject(&mut self, code: u64) {
        self.in_l2 = false;
        if self.open && !self.span.entered_l2 {
            self.span.level = 2;
            self.claim(Handler::L1);
            self.span.injected_as = code;
        }
    }

    /// Events that mean something only while an exit is handled.
    fn during_exit(&mut self, event: &ThreadEvent) {
        if !self.open {
            return;
        }
        match event.kind {
            Kind::UserExit => {
                self.account(event.stamp_ns);
                self.handling = Handling::User;
                self.claim(Handler::User);
            }
            Kind::UserReturn if self.handling == Handling::User => {
                self.account(event.stamp_ns);
                self.handling = Handling::Kernel;
            }
            Kind::VcpuWakeup => self.wakeup(event),
            Kind::Detail => self.detail(event),
            Kind::GuestPc => self.span.guest_pc = event.value,
            Kind::FinerReason => self.span.code = event.value,
            _ => {}
        }
    }

    /// Level 1 outranks user space, user space the kernel.
    fn claim(&mut self, handler: Handler) {
        self.span.handler = self.span.handler.max(handler);
    }

    fn detail(&mut self, event: &ThreadEvent) {
        if let Some(detail) = Detail::from_number(event.flag) {
            detail.note(&mut self.span.detail, event.value);
        }
    }

    fn host_work(&mut self, stamp_ns: u64) {
        if self.guest_since_ns.is_some() && self.host_since_ns.is_none() {
            self.host_since_ns = Some(stamp_ns);
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
        let runnable = event.flag == 1;
        self.account_until(
            event.stamp_ns,
            if runnable { SliceEnd::GoesOn } else { SliceEnd::Sleeps },
        );
        self.cpu = if runnable { Cpu::OffRunnable } else { Cpu::OffBlocked };
        self.woken = false;
        self.was_off = true;
    }

    fn sched_in(&mut self, event: &ThreadEvent) {
        self.cpu_shows(self.cpu == Cpu::Running && self.switches_recorded);
        if self.cpu == Cpu::Running {
            // The switch away was not seen: the time since belongs where the thread was last.
            self.host_work(event.stamp_ns);
        }
        self.account(event.stamp_ns);
        self.cpu = Cpu::Running;
        self.moved |= event.stream != self.stream;
    }

    fn wake(&mut self, stamp_ns: u64) {
        if self.cpu == Cpu::OffBlocked {
            self.account(stamp_ns);
            self.cpu = Cpu::OffRunnable;
            self.woken = true;
        }
    }

    /// Gives the time since the last accounted moment to the part it belongs to.
    fn account(&mut self, now_ns: u64) {
        self.account_until(now_ns, SliceEnd::GoesOn);
    }

    #[inline]
    fn account_until(&mut self, now_ns: u64, then: SliceEnd) {
        if !self.open {
            return;
        }
        let parts = &mut self.span.parts;
        let from_ns = self.accounted_ns;
        let took_ns = now_ns.saturating_sub(from_ns);
        self.accounted_ns = from_ns.max(now_ns);
        match (self.cpu, self.handling) {
            (Cpu::OffRunnable, _) => parts.runnable_ns += took_ns,
            (Cpu::OffBlocked, _) => parts.blocked_ns += took_ns,
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

    /// `kvm_vcpu_wakeup` looks back: the polling it reports was accounted to the kernel so far.
    fn wakeup(&mut self, event: &ThreadEvent) {
        self.account(event.stamp_ns);
        let span = &mut self.span;
        let from_ns = event.stamp_ns.saturating_sub(event.value);
        let waited = event.flag != 0;
        let until_ns =
            if waited { self.intervals.fell_asleep(from_ns) } else { Some(event.stamp_ns) };
        match until_ns {
            Some(until_ns) => {
                let polled_ns = self.intervals.within(from_ns, until_ns);
                span.parts.kernel_ns -= polled_ns.min(span.parts.kernel_ns);
                span.parts.halt_poll_ns += polled_ns;
            }
            None => span.poll_unknown = true,
        }
        self.polled_ns = until_ns.map(|until_ns| (from_ns, until_ns));
        self.intervals.clear();
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
        let stayed = || self.switches_recorded && !self.was_off && !self.moved;
        self.gaps.iter().any(|gap| gap.stream == self.stream || !stayed())
    }

    fn forget_gaps_before(&mut self, stamp_ns: u64) {
        if !self.gaps.is_empty() {
            self.gaps.retain(|gap| gap.to_ns > stamp_ns);
        }
    }
}
