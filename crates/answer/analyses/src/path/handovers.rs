//! Wake-ups between threads, and interrupts injected into guests.
//!
//! Each hand-over has two events: the wake-up and the following switch, or the injection and the following entry.
//! Nothing is matched by proximity in time, or across a loss.

use rustc_hash::FxHashMap;
use timeline::trace_events::{Gap, TraceEvent, TraceEventSink};

use super::Place;
use super::chain::At;
use super::events::{Events, Meaning};
use super::follow::in_hardirq;
use super::machines::{Machines, Thread};

/// Max woken threads that have not run yet.
const MAX_WOKEN: usize = 1 << 16;

/// Max interrupts per vCPU before its next entry.
const MAX_INJECTED: usize = 4;

/// Kind of a hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HandoverKind {
    /// A thread is woken and runs.
    Wake,
    /// A vCPU's interrupt is raised, and the vCPU enters its guest.
    Inject,
}

impl HandoverKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 2] = [Self::Wake, Self::Inject];

    /// Name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wake => "wake",
            Self::Inject => "inject",
        }
    }
}

/// One thread makes another continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    pub kind: HandoverKind,
    /// The source.
    pub from: Place,
    /// The source is an interrupt on the CPU, not the thread.
    pub in_interrupt: bool,
    pub from_ns: u64,
    /// The thread that continued.
    pub to: Place,
    pub to_ns: u64,
}

/// Receives hand-overs, ordered by their ends.
pub(crate) trait HandoverSink: Send {
    fn handover(&mut self, handover: &Handover);
}

/// Start of a hand-over.
#[derive(Clone, Copy, Debug)]
struct OpenHandover {
    at: At,
    in_interrupt: bool,
}

impl OpenHandover {
    /// Starts at `event`; `flags` are its `common_flags`.
    fn by(event: &TraceEvent, flags: Option<u64>) -> Self {
        let in_interrupt = event.thread == 0 || in_hardirq(flags.unwrap_or(0));
        Self { at: At::of_event(event), in_interrupt }
    }

    fn ends(self, kind: HandoverKind, to: At) -> Handover {
        let Self { at, in_interrupt } = self;
        // Clocks of guests have an error bound.
        let to_ns = to.stamp_ns.max(at.stamp_ns);
        Handover { kind, from: at.place, in_interrupt, from_ns: at.stamp_ns, to: to.place, to_ns }
    }
}

/// Follows hand-overs from event to event.
#[derive(Debug)]
pub(super) struct Handovers<'e, S> {
    events: &'e Events,
    machines: &'e Machines<'e>,
    woken: FxHashMap<Thread, OpenHandover>,
    /// VMs by worker thread: a vCPU woke the worker, so it may raise interrupts for that VM.
    works_for: FxHashMap<Thread, u16>,
    /// Pending interrupts by vCPU.
    injected: FxHashMap<usize, Vec<OpenHandover>>,
    pub(super) sink: S,
}

impl<'e, S: HandoverSink> Handovers<'e, S> {
    pub(super) fn new(events: &'e Events, machines: &'e Machines<'e>, sink: S) -> Self {
        let (woken, works_for) = (FxHashMap::default(), FxHashMap::default());
        Self { events, machines, woken, works_for, injected: FxHashMap::default(), sink }
    }

    fn switch(&mut self, event: &TraceEvent) {
        if let Some(prev) = event.thread_value(0) {
            // It was already running, so this wake-up had no effect.
            self.woken.remove(&(event.recording, prev));
        }
        let Some(next) = event.thread_value(2) else { return };
        if let Some(beginning) = self.woken.remove(&(event.recording, next)) {
            let to = At::of_thread(event, next);
            self.sink.handover(&beginning.ends(HandoverKind::Wake, to));
        }
    }

    fn waking(&mut self, event: &TraceEvent) {
        let Some(woken) = event.thread_value(0).filter(|&woken| woken != 0) else { return };
        let is_itself = woken == event.thread;
        let waker = self.machines.vcpu_of((event.recording, event.thread));
        if let Some(vcpu) = waker.filter(|_| self.works_for.len() < MAX_WOKEN) {
            self.works_for.insert((event.recording, woken), vcpu.vm);
        }
        if !is_itself && self.woken.len() < MAX_WOKEN {
            let beginning = OpenHandover::by(event, event.value(1));
            self.woken.entry((event.recording, woken)).or_insert(beginning);
        }
    }

    fn inject(&mut self, event: &TraceEvent) {
        if event.value(1) == Some(0) {
            // The interrupt line is lowered.
            return;
        }
        let who = (event.recording, event.thread);
        let own_vcpu = self.machines.vcpu_of(who);
        let only = || self.machines.only_vm(event.recording);
        let vm = own_vcpu.map(|vcpu| vcpu.vm).or_else(only);
        let vm = vm.or_else(|| self.works_for.get(&who).copied());
        let target = vm.and_then(|vm| self.machines.vcpu_by_id(vm, event.value(0)));
        let beginning = OpenHandover::by(event, event.value(2));
        let is_own = own_vcpu.map(|vcpu| vcpu.index) == target && !beginning.in_interrupt;
        let Some(target) = target.filter(|_| !is_own) else { return };
        let injected = self.injected.entry(target).or_default();
        // Several events can record the same interrupt on its way; the first one counts.
        let is_known = |other: &OpenHandover| other.at.place.thread == beginning.at.place.thread;
        if injected.len() < MAX_INJECTED && !injected.iter().any(is_known) {
            injected.push(beginning);
        }
    }

    fn entry(&mut self, event: &TraceEvent) {
        let Some(vcpu) = self.machines.vcpu_of((event.recording, event.thread)) else { return };
        for beginning in self.injected.remove(&vcpu.index).unwrap_or_default() {
            self.sink.handover(&beginning.ends(HandoverKind::Inject, At::of_event(event)));
        }
    }
}

impl<S: HandoverSink> TraceEventSink for Handovers<'_, S> {
    const WITH_NAMES: bool = false;

    fn event(&mut self, event: &TraceEvent) {
        let events = self.events;
        match events.by_tag(event.tag).map(|event_kind| event_kind.meaning) {
            Some(Meaning::Switch) => self.switch(event),
            Some(Meaning::Waking | Meaning::Wakeup) => self.waking(event),
            Some(Meaning::Inject) => self.inject(event),
            Some(Meaning::Entry) => self.entry(event),
            _ => (),
        }
    }

    fn gap(&mut self, _: &Gap) {
        // Clearing a map takes time proportional to its largest size ever, so it is replaced.
        (self.woken, self.injected) = Default::default();
    }
}
