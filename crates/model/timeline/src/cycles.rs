//! The activity of vCPU threads over time, to the nanosecond: trace events in time order become
//! cycles, each from an entry to the next entry.
//!
//! The state machine is the one for exits (`vcpu`), so that the intervals of all cycles add up to
//! the times in the exits report. A cycle ends with the next `kvm_entry`: only then is it known
//! whether events were lost in it, and how much of its time was halt polling.

mod by_thread;
mod events;
mod journal;

use ftrace::eventfmt::EventFormat;

use crate::exit_span::{ExitSpan, Outcome};
use crate::thread_event::{Kind, KindSet, ThreadEvent};
use crate::trace_events::{EventRequest, Gap, TraceEvent};
use crate::vcpu::{ExitSink, VcpuActivity, VcpuThread};
use crate::vcpus::{VcpuInfo, Vcpus};

use self::journal::Journal;

pub use by_thread::{CyclePass, each_cycle};
pub use events::{HOST_WORK_TAG, OWN_TAGS, SWITCH_FIELDS, SWITCH_TAG, exit_code, is_host_work};

/// An interval in which a vCPU's thread had one activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Start of the interval.
    pub from_ns: u64,
    /// End of the interval.
    pub to_ns: u64,
    /// The thread's activity.
    pub activity: VcpuActivity,
    /// The VMM handled the exit.
    pub in_vmm: bool,
    /// The interval belongs to the exit of the cycle, not to the time before `kvm_exit`.
    pub in_exit: bool,
    /// The CPU that the thread ran on, or ran on last.
    pub cpu: u16,
}

/// How a cycle ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CycleEnd {
    /// With the entry that begins the next cycle.
    Entry,
    /// With an entry, but events of its exit were lost: its parts are unknown.
    Lost,
    /// With another exit: the guest was entered in between, but no event has the time.
    Again,
    /// The recording or the thread ended.
    Ended,
    /// It continues: this is a part of it.
    Partial,
}

/// A vCPU's activity from one entry of its guest to the next.
#[derive(Clone, Copy, Debug)]
pub struct VcpuCycle<'t> {
    /// Index of the vCPU among those of its recording: see [`VcpuCycles::finish`].
    pub vcpu: usize,
    /// Its thread.
    pub thread: u32,
    /// The level that ran: 1, or 2 for all deeper levels.
    pub level: u8,
    /// Its activities, without gaps.
    pub intervals: &'t [Interval],
    /// The exit of the cycle, if there was one.
    pub exit: Option<&'t ExitSpan>,
    /// The vCPU gave up its CPU until it was woken (`waited` of `kvm_vcpu_wakeup`).
    pub halted: bool,
    /// How it ended.
    pub end: CycleEnd,
}

/// Receives cycles, in order and without gaps for each vCPU.
pub trait CycleSink {
    /// A cycle or a part of it has ended.
    fn cycle(&mut self, cycle: &VcpuCycle<'_>);
}

/// Exits that an event has ended: at most two.
#[derive(Debug, Default)]
struct Closed(Vec<ExitSpan>);

impl ExitSink for Closed {
    fn exit(&mut self, _: usize, span: &ExitSpan) {
        self.0.push(*span);
    }
}

/// Follows the vCPU threads of a recording.
#[derive(Debug, Default)]
pub struct VcpuCycles {
    vcpus: Vcpus,
    /// By vCPU index.
    journals: Vec<Journal>,
    closed: Closed,
    seen: KindSet,
}

impl VcpuCycles {
    /// The request for an event if it matters to vCPUs. `is_nanoseconds`: the machine's times are
    /// nanoseconds, not ticks. Its tags are below [`OWN_TAGS`].
    #[must_use]
    pub fn wanted(format: &EventFormat, is_nanoseconds: bool) -> Option<EventRequest> {
        events::wanted(format, is_nanoseconds, false)
    }

    /// [`VcpuCycles::wanted`] with [`ExitSpan::guest_pc`], which is 0 otherwise.
    #[must_use]
    pub fn wanted_with_pc(format: &EventFormat, is_nanoseconds: bool) -> Option<EventRequest> {
        events::wanted(format, is_nanoseconds, true)
    }

    /// Processes the next event of the recording. An event with a caller's own tag counts as host
    /// work: pass only events for which [`is_host_work`] is true.
    #[inline]
    pub fn event(&mut self, trace_event: &TraceEvent, sink: &mut impl CycleSink) {
        for event in events::thread_events(trace_event).into_iter().flatten() {
            self.seen.insert(event.kind);
            self.feed(event.thread, std::slice::from_ref(&event), |_| trace_event.cpu, sink);
        }
    }

    /// Events were lost.
    pub fn gap(&mut self, gap: &Gap) {
        self.vcpus.forget_gaps_before(gap.from_ns);
        self.vcpus.lost(&ThreadEvent::lost(gap.cpu, gap.from_ns, gap.to_ns));
    }

    /// Emits a thread's activity up to `now_ns` if it is in its guest, for callers that cannot wait
    /// for the exit. Returns whether it is in its guest.
    pub fn emit_guest(&mut self, thread: u32, now_ns: u64, sink: &mut impl CycleSink) -> bool {
        let Some(vcpu) = self.vcpus.of_thread(thread) else { return false };
        if !vcpu.is_in_guest() || vcpu.activity() != VcpuActivity::Guest {
            return false;
        }
        if let Some(journal) = self.journals.get_mut(vcpu.index) {
            journal.continue_to(vcpu, now_ns);
            journal.emit(thread, vcpu.level(), None, CycleEnd::Partial, sink);
        }
        true
    }

    /// Emits the activity of every vCPU up to `now_ns`, for callers that cannot wait for exits to
    /// end: no event before that time may follow. Losses and halt polling are judged by the events
    /// so far.
    pub fn emit_all(&mut self, now_ns: u64, sink: &mut impl CycleSink) {
        for thread in self.vcpus.threads() {
            self.emit_thread(thread, now_ns, sink);
        }
    }

    /// [`VcpuCycles::emit_all`] for the vCPU that a thread runs, if any.
    pub fn emit_thread(&mut self, thread: u32, now_ns: u64, sink: &mut impl CycleSink) {
        let Some(vcpu) = self.vcpus.of_thread(thread) else { return };
        if let Some(journal) = self.journals.get_mut(vcpu.index) {
            journal.continue_to(vcpu, now_ns);
            journal.emit_part(vcpu, thread, sink);
        }
    }

    /// The kinds of events seen so far.
    #[must_use]
    pub fn seen(&self) -> KindSet {
        self.seen
    }

    /// Ends the recording; returns the vCPUs in the order of their indices.
    pub fn finish(mut self, sink: &mut impl CycleSink) -> Vec<VcpuInfo> {
        for thread in self.vcpus.threads() {
            self.end(thread, sink);
        }
        self.vcpus.finish(&mut self.closed)
    }

    /// Processes the next events of a thread, including losses that concern it; `cpu_of` returns
    /// the CPU of an event.
    #[inline]
    fn feed(
        &mut self,
        thread: u32,
        events: &[ThreadEvent],
        cpu_of: impl Fn(&ThreadEvent) -> u16,
        sink: &mut impl CycleSink,
    ) {
        let mut rest = events;
        while !rest.is_empty() {
            let count = self.follow(thread, rest, &cpu_of, sink);
            rest = rest.get(count..).unwrap_or_default();
            if let Some((event, later)) = rest.split_first() {
                self.begin_or_end(event, cpu_of(event), sink);
                rest = later;
            }
        }
    }

    /// Follows the vCPU that a thread runs. Returns the number of events processed: with the next
    /// event the thread becomes a vCPU, stops being one, or becomes another vCPU.
    #[inline]
    fn follow(
        &mut self,
        thread: u32,
        events: &[ThreadEvent],
        cpu_of: impl Fn(&ThreadEvent) -> u16,
        sink: &mut impl CycleSink,
    ) -> usize {
        let Some(vcpu) = self.vcpus.of_thread_mut(thread) else {
            return events.iter().position(is_edge).unwrap_or(events.len());
        };
        let Some(journal) = self.journals.get_mut(vcpu.index) else { return events.len() };
        for (at, event) in events.iter().enumerate() {
            if vcpu.ends_before(event) {
                return at;
            }
            if event.kind == Kind::Lost {
                vcpu.lost(event);
                continue;
            }
            let window_lost = is_edge(event) && vcpu.is_in_guest() && vcpu.lost_since();
            journal.continue_to(vcpu, event.stamp_ns);
            self.closed.0.clear();
            vcpu.feed(event, &mut self.closed);
            let closed = self.closed.0.first();
            Self::note(journal, vcpu, (event, cpu_of(event)), window_lost, closed, sink);
        }
        events.len()
    }

    /// With this event, a thread becomes a vCPU, stops being one, or becomes another vCPU.
    #[cold]
    fn begin_or_end(&mut self, event: &ThreadEvent, cpu: u16, sink: &mut impl CycleSink) {
        let thread = event.thread;
        if let Some(vcpu) = self.vcpus.of_thread(thread) {
            if event.kind == Kind::ThreadGone
                && let Some(journal) = self.journals.get_mut(vcpu.index)
            {
                journal.continue_to(vcpu, event.stamp_ns);
            }
            self.end(thread, sink);
        }
        // An exit that ends here belongs to the thread's previous vCPU.
        self.vcpus.feed(thread, std::slice::from_ref(event), &mut Closed::default());
        let Some(vcpu) = self.vcpus.of_thread(thread) else { return };
        if self.journals.len() <= vcpu.index {
            self.journals.resize_with(vcpu.index + 1, Journal::default);
        }
        let Some(journal) = self.journals.get_mut(vcpu.index) else { return };
        journal.index = vcpu.index;
        journal.begin(event.stamp_ns);
        Self::note(journal, vcpu, (event, cpu), false, None, sink);
    }

    /// Updates the journal after an event of a vCPU; `closed` is the exit that the event ended.
    #[inline]
    fn note(
        journal: &mut Journal,
        vcpu: &VcpuThread,
        (event, cpu): (&ThreadEvent, u16),
        window_lost: bool,
        closed: Option<&ExitSpan>,
        sink: &mut impl CycleSink,
    ) {
        let thread = event.thread;
        match event.kind {
            Kind::Exit => {
                if let Some(span) = closed {
                    journal.forget_exit();
                    journal.emit(thread, span.level, Some(span), CycleEnd::Again, sink);
                }
                journal.exits(window_lost);
            }
            Kind::Entry => Self::entered(journal, thread, closed, sink),
            Kind::VcpuWakeup if vcpu.open_exit().is_some() => {
                journal.woke_up(vcpu.polled_ns(), event.flag != 0);
            }
            _ => {}
        }
        if !matches!(event.kind, Kind::Wake) {
            journal.cpu = cpu;
        }
        if journal.is_long() {
            journal.emit_part(vcpu, thread, sink);
        }
    }

    fn entered(
        journal: &mut Journal,
        thread: u32,
        closed: Option<&ExitSpan>,
        sink: &mut impl CycleSink,
    ) {
        let Some(span) = closed else {
            // Two entries without an exit between them: the time at which the guest exited is
            // unknown.
            journal.forget_all();
            journal.emit(thread, 1, None, CycleEnd::Lost, sink);
            return;
        };
        let end = match span.outcome {
            Outcome::Paired => CycleEnd::Entry,
            Outcome::Unpaired | Outcome::LostIn => {
                journal.forget_exit();
                CycleEnd::Lost
            }
        };
        journal.emit(thread, span.level, Some(span), end, sink);
    }

    /// The thread's previous vCPU has ended.
    fn end(&mut self, thread: u32, sink: &mut impl CycleSink) {
        let Some(vcpu) = self.vcpus.of_thread(thread) else { return };
        let Some(journal) = self.journals.get_mut(vcpu.index) else { return };
        if vcpu.lost_since() {
            journal.forget_last();
        }
        journal.emit(thread, vcpu.level(), vcpu.open_exit(), CycleEnd::Ended, sink);
    }
}

/// Whether the event is an entry or an exit.
fn is_edge(event: &ThreadEvent) -> bool {
    matches!(event.kind, Kind::Exit | Kind::Entry)
}

/// The vCPU's activity; unknown if events were lost since its last entry or exit.
fn activity(vcpu: &VcpuThread) -> VcpuActivity {
    if vcpu.lost_since() { VcpuActivity::Unknown } else { vcpu.activity() }
}
