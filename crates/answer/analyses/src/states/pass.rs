//! Receives the events of all recordings in one order, and dispatches them by machine.

use ftrace::eventfmt::EventFormat;
use rustc_hash::FxHashMap;
use sources::Recording;
use timeline::cycles::{CyclePass, CycleSink, VcpuCycle, VcpuCycles};
use timeline::reasons::ReasonNames;
use timeline::trace_events::{
    EventRequest, Gap, TraceEvent, TraceEventPass, TraceEventSink, WantsTraceEvents,
};
use timeline::{KindSet, VcpuInfo};

use super::guest::{Context, GuestContexts, GuestEventKinds};
use super::occupancy::Occupancy;
use super::span::{GuestCpu, StateSink, StateSpan, VcpuRef};
use super::wanted::{FORK_TAG, concerns_cycles, wanted, wanted_of_cpus};
use super::weave::{GuestFit, GuestOverlay};
use crate::align::GuestAlignment;
use crate::recorded::{can_split, has_switches};
use crate::view::View;

/// vCPUs of one recording, with the guests' states that overlay them.
#[derive(Debug)]
struct Host {
    cycles: VcpuCycles,
    overlays: GuestOverlays,
    /// vCPUs and kinds of events, if the recording was read thread by thread.
    found: Option<(Vec<VcpuInfo>, KindSet)>,
}

/// Overlays by vCPU thread.
#[derive(Debug)]
struct GuestOverlays {
    number: u16,
    reasons: ReasonNames,
    by_thread: FxHashMap<u32, GuestOverlay>,
    /// See [`GuestOverlay::new`].
    can_split: bool,
    has_switches: bool,
}

impl GuestOverlays {
    fn get_or_insert(&mut self, thread: u32) -> &mut GuestOverlay {
        let (can_split, has_switches) = (self.can_split, self.has_switches);
        self.by_thread.entry(thread).or_insert_with(|| GuestOverlay::new(can_split, has_switches))
    }
}

/// A guest's recording.
#[derive(Debug, Default)]
struct Guest {
    contexts: GuestContexts,
    /// Host's recording and vCPU thread by guest CPU.
    vcpus: FxHashMap<u16, (usize, u32)>,
    /// Contexts of CPUs without a host's recording, with their start.
    alone: FxHashMap<u16, (u64, Context)>,
    last_ns: u64,
}

/// Max stored creators of threads per recording.
const MAX_FORKS: usize = 1 << 20;

/// State of all machines.
pub(super) struct Pass<'s, S> {
    recordings: &'s [Recording],
    sink: &'s mut S,
    hosts: Vec<Host>,
    occupancies: Vec<Occupancy>,
    guests: Vec<Option<Guest>>,
    /// Creators by recording and thread.
    makers: Vec<FxHashMap<u32, u32>>,
}

/// Results of the pass.
pub(super) struct PassResult {
    pub(super) vcpus: Vec<Vec<VcpuInfo>>,
    pub(super) placed: Vec<(usize, GuestFit)>,
    pub(super) makers: Vec<FxHashMap<u32, u32>>,
    pub(super) seen: Vec<KindSet>,
    pub(super) guest_events: Vec<Option<GuestEventKinds>>,
}

/// Passes cycles to the overlays of one host.
struct CycleWeaver<'p, S> {
    weaves: &'p mut GuestOverlays,
    sink: &'p mut S,
}

impl<S: StateSink> CycleSink for CycleWeaver<'_, S> {
    fn cycle(&mut self, cycle: &VcpuCycle<'_>) {
        let isa = self.weaves.reasons.isa(cycle.exit.map_or(0, |exit| exit.isa));
        let index = u32::try_from(cycle.vcpu).unwrap_or(u32::MAX);
        let vcpu = VcpuRef { recording: self.weaves.number, index };
        self.sink.runs_in(vcpu, cycle.thread);
        self.weaves.get_or_insert(cycle.thread).cycle(cycle, isa, vcpu, self.sink);
    }
}

impl<'s, S: StateSink> Pass<'s, S> {
    pub(super) fn new(view: View<'s>, sink: &'s mut S) -> Self {
        let View { recordings, guests: alignments } = view;
        let host = |(number, recording): (u16, &Recording)| Host {
            cycles: VcpuCycles::default(),
            overlays: GuestOverlays {
                number,
                reasons: ReasonNames::new(recording),
                by_thread: FxHashMap::default(),
                can_split: can_split(recording),
                has_switches: has_switches(recording),
            },
            found: None,
        };
        let mut pass = Self {
            recordings,
            sink,
            hosts: (0..).zip(recordings).map(host).collect(),
            occupancies: recordings.iter().map(|_| Occupancy::default()).collect(),
            guests: recordings
                .iter()
                .map(|recording| recording.peer().map(|_| Guest::default()))
                .collect(),
            makers: recordings.iter().map(|_| FxHashMap::default()).collect(),
        };
        alignments.iter().for_each(|alignment| pass.attach(alignment));
        pass
    }

    /// Connects the CPUs of a guest with vCPUs.
    fn attach(&mut self, alignment: &GuestAlignment) {
        let Some(place) = self.guests.get_mut(alignment.guest) else { return };
        let guest = place.get_or_insert_default();
        let Some(host) = self.hosts.get_mut(alignment.host) else { return };
        let Ok(recording) = u16::try_from(alignment.guest) else { return };
        let rows = alignment.result().map_or(&[][..], |result| &result.rows);
        let until_ns = rows.iter().filter_map(|row| u64::try_from(row.to_ns).ok()).max();
        for row in rows {
            let Ok(cpu) = u16::try_from(row.guest_cpu) else { continue };
            guest.vcpus.insert(cpu, (alignment.host, row.thread));
            let weave = host.overlays.get_or_insert(row.thread);
            let known_ns = weave.guest.map_or(0, |(_, bound_ns)| bound_ns);
            let bound_ns = row.bound_ns.unwrap_or(0).max(known_ns);
            weave.guest = Some((GuestCpu { recording, cpu }, bound_ns));
            weave.until_ns = until_ns;
        }
    }

    /// Ends all recordings; `spans_ns` has their first and last times.
    pub(super) fn finish(self, spans_ns: &[Option<(u64, u64)>]) -> PassResult {
        let sink = self.sink;
        for ((recording, occupancy), span_ns) in (0..).zip(self.occupancies).zip(spans_ns) {
            let end_ns = span_ns.map_or(0, |(_, end_ns)| end_ns);
            occupancy.finish(end_ns, |cpu, span| sink.cpu(GuestCpu { recording, cpu }, span));
        }
        let mut placed: Vec<(usize, GuestFit)> = Vec::new();
        let (mut vcpus, mut seen) = (Vec::new(), Vec::new());
        for Host { cycles, overlays: mut weaves, found } in self.hosts {
            let kinds = cycles.seen();
            let mut weaver = CycleWeaver { weaves: &mut weaves, sink };
            let (of_it, kinds) = found.unwrap_or_else(|| (cycles.finish(&mut weaver), kinds));
            seen.push(kinds);
            vcpus.push(of_it);
            for weave in weaves.by_thread.values() {
                let Some((guest, _)) = weave.guest else { continue };
                let at = usize::from(guest.recording);
                match placed.iter_mut().find(|(known, _)| *known == at) {
                    Some((_, sum)) => sum.add(&weave.placed),
                    None => placed.push((at, weave.placed)),
                }
            }
        }
        placed.sort_by_key(|(at, _)| *at);
        let mut guest_events = Vec::new();
        for (recording, guest) in (0..).zip(self.guests) {
            guest_events.push(guest.as_ref().map(|guest| guest.contexts.event_kinds()));
            let Some(guest) = guest else { continue };
            let mut cpus: Vec<_> = guest.alone.into_iter().collect();
            cpus.sort_by_key(|(cpu, _)| *cpu);
            for (cpu, since) in cpus {
                emit_alone(GuestCpu { recording, cpu }, since, guest.last_ns, sink);
            }
        }
        PassResult { vcpus, placed, makers: self.makers, seen, guest_events }
    }

    /// A sink for a recording that is read thread by thread: it receives cycles, and the events of CPUs.
    pub(super) fn by_thread(&mut self, at: usize) -> ByThread<'_, 's, S> {
        ByThread { pass: self, at }
    }

    /// Updates the current thread of a CPU, and creators of threads.
    #[inline]
    fn cpu_event(&mut self, at: usize, event: &TraceEvent) {
        if let Some(occupancy) = self.occupancies.get_mut(at) {
            let (sink, recording) = (&mut *self.sink, number(at));
            occupancy.event(event, |cpu, span| sink.cpu(GuestCpu { recording, cpu }, span));
        }
        if event.tag == FORK_TAG
            && let (Some(parent), Some(child)) = (event.thread_value(0), event.thread_value(1))
            && let Some(makers) = self.makers.get_mut(at).filter(|makers| makers.len() < MAX_FORKS)
        {
            makers.insert(child, parent);
        }
    }

    /// Handles a loss on a CPU.
    fn cpu_gap(&mut self, at: usize, gap: &Gap) {
        if let Some(occupancy) = self.occupancies.get_mut(at) {
            let (sink, recording) = (&mut *self.sink, number(at));
            occupancy.gap(gap, |cpu, span| sink.cpu(GuestCpu { recording, cpu }, span));
        }
    }

    /// The context of a guest's CPU changes at `now_ns`.
    fn change(&mut self, at: GuestCpu, now_ns: u64, context: Context) {
        let Some(Some(guest)) = self.guests.get_mut(usize::from(at.recording)) else { return };
        let Some(&(host, thread)) = guest.vcpus.get(&at.cpu) else {
            if let Some(since) = guest.alone.insert(at.cpu, (now_ns, context)) {
                emit_alone(at, since, now_ns, self.sink);
            }
            return;
        };
        let Some(Host { cycles, overlays: weaves, .. }) = self.hosts.get_mut(host) else { return };
        let weave = weaves.get_or_insert(thread);
        if weave.change(now_ns, context) {
            let mut telling = CycleWeaver { weaves, sink: self.sink };
            if !cycles.emit_guest(thread, now_ns, &mut telling) {
                weaves.get_or_insert(thread).give_up();
            }
        }
    }
}

/// Index of a recording as `u16`.
fn number(at: usize) -> u16 {
    u16::try_from(at).unwrap_or(u16::MAX)
}

/// A recording of a pass that is read thread by thread.
pub(super) struct ByThread<'p, 's, S> {
    pass: &'p mut Pass<'s, S>,
    at: usize,
}

impl<S: StateSink> ByThread<'_, '_, S> {
    /// Ends the recording; returns the remaining results.
    pub(super) fn finish(self, CyclePass { vcpus, seen, events }: CyclePass) -> TraceEventPass {
        if let Some(host) = self.pass.hosts.get_mut(self.at) {
            host.found = Some((vcpus, seen));
        }
        events
    }
}

impl<S: StateSink> CycleSink for ByThread<'_, '_, S> {
    fn cycle(&mut self, cycle: &VcpuCycle<'_>) {
        if let Some(Host { overlays: weaves, .. }) = self.pass.hosts.get_mut(self.at) {
            CycleWeaver { weaves, sink: self.pass.sink }.cycle(cycle);
        }
    }
}

impl<S: StateSink> TraceEventSink for ByThread<'_, '_, S> {
    fn event(&mut self, event: &TraceEvent) {
        self.pass.cpu_event(self.at, event);
    }

    fn gap(&mut self, gap: &Gap) {
        self.pass.cpu_gap(self.at, gap);
    }
}

/// Most events only need their thread.
impl<S: StateSink> WantsTraceEvents for ByThread<'_, '_, S> {
    fn wanted(&self, _: usize, format: &EventFormat) -> Option<EventRequest> {
        wanted_of_cpus(self.pass.recordings.get(self.at)?, format)
    }
}

/// Emits a span of a guest CPU without a host's recording.
fn emit_alone(
    at: GuestCpu,
    (from_ns, context): (u64, Context),
    to_ns: u64,
    sink: &mut impl StateSink,
) {
    let Context { task: Some(task), state } = context else { return };
    if from_ns < to_ns {
        let span = StateSpan {
            from_ns,
            to_ns,
            state,
            level: 1,
            cpu: at.cpu,
            exit: None,
            task: Some(task),
        };
        sink.task(at, task, &span);
    }
}

impl<S: StateSink> WantsTraceEvents for Pass<'_, S> {
    fn wanted(&self, at: usize, format: &EventFormat) -> Option<EventRequest> {
        let is_guest = matches!(self.guests.get(at), Some(Some(_)));
        wanted(self.recordings.get(at)?, format, is_guest, self.sink.needs())
    }
}

impl<S: StateSink> TraceEventSink for Pass<'_, S> {
    fn event(&mut self, event: &TraceEvent) {
        let recording = event.recording;
        let at = usize::from(recording);
        self.sink.event(event);
        self.cpu_event(at, event);
        if let Some(Some(guest)) = self.guests.get_mut(at) {
            guest.last_ns = guest.last_ns.max(event.stamp_ns);
            if let Some(context) = guest.contexts.event(event) {
                let cpu = GuestCpu { recording, cpu: event.cpu };
                self.change(cpu, event.stamp_ns, context);
            }
        }
        if concerns_cycles(event.tag)
            && let Some(Host { cycles, overlays: weaves, .. }) = self.hosts.get_mut(at)
        {
            cycles.event(event, &mut CycleWeaver { weaves, sink: self.sink });
        }
    }

    fn gap(&mut self, gap: &Gap) {
        let recording = gap.recording;
        let at = usize::from(recording);
        self.sink.gap(gap);
        self.cpu_gap(at, gap);
        if let Some(Some(guest)) = self.guests.get_mut(at) {
            let context = guest.contexts.lost(gap.cpu);
            self.change(GuestCpu { recording, cpu: gap.cpu }, gap.from_ns, context);
        }
        if let Some(host) = self.hosts.get_mut(at) {
            host.cycles.gap(gap);
        }
    }
}
