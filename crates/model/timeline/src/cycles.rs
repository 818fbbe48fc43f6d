//! What vCPU threads did over time, to the nanosecond: from trace events in the order of their times to the
//! cycles that each vCPU takes, into its guest and back.
//!
//! The state machine is that of the exits (`vcpu`), so that the intervals of all cycles add up to
//! what the exits report has. A cycle ends with the next `kvm_entry`: only then is known whether
//! events were lost in it, and which of its time was spent polling.

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

/// An interval in which a vCPU's thread did one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Its beginning.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
    /// What the thread did.
    pub activity: VcpuActivity,
    /// The exit was in the hands of the VMM.
    pub in_vmm: bool,
    /// It belongs to the exit of the cycle, not to what came before `kvm_exit`.
    pub in_exit: bool,
    /// The CPU the thread ran on, or ran on last.
    pub cpu: u16,
}

/// How a cycle ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CycleEnd {
    /// With the entry that begins the next one.
    Entry,
    /// With an entry too, but events of its exit were lost: what happened in it is unknown.
    Lost,
    /// With another exit: the guest was entered meanwhile, and no event says when.
    Again,
    /// The recording or the thread ended.
    Ended,
    /// It is not over: what is known so far is given in pieces.
    Partial,
}

/// What a vCPU did from the entry to its guest to the next one.
#[derive(Clone, Copy, Debug)]
pub struct VcpuCycle<'t> {
    /// Index of the vCPU among those of its recording: see [`VcpuCycles::finish`].
    pub vcpu: usize,
    /// Its thread.
    pub thread: u32,
    /// The level that ran: 1, or 2 for any deeper one.
    pub level: u8,
    /// What it did, without gaps.
    pub intervals: &'t [Interval],
    /// The exit of the cycle, if there was one.
    pub exit: Option<&'t ExitSpan>,
    /// The vCPU gave up its CPU until it was woken (`waited` of `kvm_vcpu_wakeup`).
    pub halted: bool,
    /// How it ended.
    pub end: CycleEnd,
}

/// Takes cycles, in order per vCPU and without gaps between them.
pub trait CycleSink {
    /// A cycle has ended, or a piece of it.
    fn cycle(&mut self, cycle: &VcpuCycle<'_>);
}

/// Exits that an event has brought to their ends: two at most.
#[derive(Debug, Default)]
struct Closed(Vec<ExitSpan>);

impl ExitSink for Closed {
    fn exit(&mut self, _: usize, span: &ExitSpan) {
        self.0.push(*span);
    }
}

/// Follows the vCPU threads of one recording.
#[derive(Debug, Default)]
pub struct VcpuCycles {
    vcpus: Vcpus,
    /// By index of the vCPU.
    journals: Vec<Journal>,
    closed: Closed,
    seen: KindSet,
}

impl VcpuCycles {
    /// What is wanted of an event of a machine whose times are nanoseconds, or ticks, if it matters to
    /// vCPUs. Its tags are below [`OWN_TAGS`].
    #[must_use]
    pub fn wanted(format: &EventFormat, is_nanoseconds: bool) -> Option<EventRequest> {
        events::wanted(format, is_nanoseconds, false)
    }

    /// [`VcpuCycles::wanted`] where [`ExitSpan::guest_pc`] is asked for, too: else it is 0.
    #[must_use]
    pub fn wanted_with_pc(format: &EventFormat, is_nanoseconds: bool) -> Option<EventRequest> {
        events::wanted(format, is_nanoseconds, true)
    }

    /// Takes the next event of the recording. One that a caller has wanted under a tag of its own is
    /// the host's work: give only those of which [`is_host_work`] says so.
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

    /// Emits what a thread did up to `now_ns`, if it is in its guest: for callers that can't wait
    /// for the exit. Returns whether it is.
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

    /// Emits what every vCPU did up to `now_ns`, for callers that can't wait for exits to end: no
    /// event before that time may follow. Which of this time was lost or spent polling is judged by
    /// what was seen until now.
    pub fn emit_all(&mut self, now_ns: u64, sink: &mut impl CycleSink) {
        for thread in self.vcpus.threads() {
            self.emit_thread(thread, now_ns, sink);
        }
    }

    /// [`VcpuCycles::emit_all`] of the vCPU that a thread is, if it is one.
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

    /// Ends the recording: the vCPUs in the order of their indices.
    pub fn finish(mut self, sink: &mut impl CycleSink) -> Vec<VcpuInfo> {
        for thread in self.vcpus.threads() {
            self.end(thread, sink);
        }
        self.vcpus.finish(&mut self.closed)
    }

    /// Takes the next events of a thread, losses of which it has to hear among them; `cpu_of` says where
    /// an event was recorded.
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

    /// Follows the vCPU that a thread is at the moment. Returns how many events that was: with the next one the thread
    /// becomes a vCPU, or is none, or another's.
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

    /// A thread becomes a vCPU with this event, or is none, or another's, from then on.
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
        // An exit that ends here is one of the vCPU that the thread was before.
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

    /// Notes what an event says of a vCPU that has taken it; `closed` is the exit that it ended.
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
            // From one entry to another without an exit between: when the guest was left is unknown.
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

    /// The vCPU that a thread was is no more.
    fn end(&mut self, thread: u32, sink: &mut impl CycleSink) {
        let Some(vcpu) = self.vcpus.of_thread(thread) else { return };
        let Some(journal) = self.journals.get_mut(vcpu.index) else { return };
        if vcpu.lost_since() {
            journal.forget_last();
        }
        journal.emit(thread, vcpu.level(), vcpu.open_exit(), CycleEnd::Ended, sink);
    }
}

/// Whether the thread that it is of enters or leaves a guest.
fn is_edge(event: &ThreadEvent) -> bool {
    matches!(event.kind, Kind::Exit | Kind::Entry)
}

/// Whether events were lost since the vCPU's last entry or exit.
fn activity(vcpu: &VcpuThread) -> VcpuActivity {
    if vcpu.lost_since() { VcpuActivity::Unknown } else { vcpu.activity() }
}
