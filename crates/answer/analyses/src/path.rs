//! Paths of requests through guests, vCPU threads, the VMM's threads, and vhost workers.
//!
//! Requests are followed forwards by causality: a guest accesses a device, its vCPU's thread wakes another thread,
//! which runs, works, raises an interrupt or wakes the vCPU, and the guest continues. The thread on the CPU at an
//! event is its cause; nothing is matched by proximity in time. Requests with the same steps form one path, and
//! each hop has a distribution of times.

mod chain;
mod each_request;
mod events;
mod examples;
mod flows;
mod follow;
mod guessed;
mod guest;
mod handovers;
mod io;
mod labels;
mod listed;
mod machines;
mod places;
mod requests;
mod sched;
mod table;
mod threads;
mod variants;
mod vcpu_states;
mod vcpus;
mod work;

use ftrace::eventfmt::EventFormat;
use sources::Recording;
use timeline::reading::each_trace_event;
use timeline::trace_events::{
    EventRequest, Gap, TraceEvent, TraceEventPass, TraceEventSink, WantsTraceEvents,
};
use timeline::{Losses, Vm};

use crate::distribution::Distribution;
use crate::view::View;

use self::follow::Follower;
use self::handovers::Handovers;

pub use self::each_request::{DoneRequest, DoneRequestSink, RequestStep, done_requests};
pub(crate) use self::events::Events;
pub use self::flows::{FlowEnd, FlowSink, flows};
pub(crate) use self::follow::in_hardirq;
pub(crate) use self::handovers::HandoverSink;
pub use self::handovers::{Handover, HandoverKind};
pub(crate) use self::labels::Label;
pub use self::listed::ListedRequest;
pub(crate) use self::machines::{Machines, Thread};
pub(crate) use self::requests::{Request, RequestPass, RequestSink};
pub(crate) use self::table::PathTable;

/// The kind of thread that performs a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Actor {
    /// The guest's own code.
    Guest,
    /// The host's thread that runs a vCPU.
    Vcpu,
    /// Another thread of a VMM.
    Iothread,
    /// A vhost worker.
    Vhost,
    /// An interrupt handler on the host.
    Interrupt,
    /// Any other thread of the host.
    Host,
    /// A thread of the recording itself: see [`crate::recorders`].
    Recorder,
}

impl Actor {
    pub const ALL: [Self; 7] = [
        Self::Guest,
        Self::Vcpu,
        Self::Iothread,
        Self::Vhost,
        Self::Interrupt,
        Self::Host,
        Self::Recorder,
    ];

    /// Name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Guest => "guest",
            Self::Vcpu => "vcpu",
            Self::Iothread => "iothread",
            Self::Vhost => "vhost",
            Self::Interrupt => "interrupt",
            Self::Host => "host",
            Self::Recorder => "recorder",
        }
    }

    /// Whether rows have the thread's name. Other threads only have the name of their kind.
    const fn has_name(self) -> bool {
        matches!(self, Self::Host | Self::Recorder)
    }
}

/// Events that begin and end paths, as patterns (`SYSTEM:NAME` or `NAME`, with `*` and `?`); `None`: the default
/// ends of requests.
#[derive(Clone, Debug, Default)]
pub struct PathEnds {
    /// Pattern of the first event.
    pub start: Option<String>,
    /// Pattern of the last event.
    pub end: Option<String>,
}

/// A step of a path, with the time since the previous step of the request. Steps can be optional.
#[derive(Clone, Debug)]
pub struct Hop {
    /// The step at its start, in most requests.
    pub from: String,
    /// The step at its end.
    pub to: String,
    /// The thread that performs the end step.
    pub on: Actor,
    /// Times of all requests with this hop; optional hops have fewer times than the path has requests.
    pub times: Distribution,
}

/// Where an event happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Index of the recording.
    pub recording: u16,
    /// The CPU; in a guest's recording, the guest's CPU.
    pub cpu: u16,
    /// Id of the current thread; for an interrupt, of the interrupted thread.
    pub thread: u32,
}

/// The position of an example among the requests of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExampleOf {
    /// A typical request: near the median of the most frequent variant.
    Median,
    /// A request near the 99th percentile of the path.
    P99,
    /// The longest request.
    Worst,
}

impl ExampleOf {
    /// Name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Median => "p50",
            Self::P99 => "p99",
            Self::Worst => "worst",
        }
    }
}

/// One request of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    pub kind: ExampleOf,
    /// Steps in order.
    pub steps: Vec<ExampleStep>,
    /// For each step except the first, the index of the hop that ends with it.
    pub hops: Vec<usize>,
}

impl Example {
    /// Time from the first step to the last.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        match (self.steps.first(), self.steps.last()) {
            (Some(first), Some(last)) => last.ts_ns.saturating_sub(first.ts_ns),
            _ => 0,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExampleStep {
    /// Time on the host's clock.
    pub ts_ns: u64,
    pub what: String,
    /// The thread that performed it.
    pub on: Actor,
    pub place: Place,
}

/// Requests with the same steps, except for optional ones. The times of all hops add up to the times of all
/// requests.
#[derive(Clone, Debug)]
pub struct Path {
    /// The first step, and the threads that perform the other steps in most requests.
    pub name: String,
    /// The first step: `mmio write 0xfeb02e50`.
    pub start: String,
    /// Whether the guest continues because of it; otherwise it ended on the host.
    pub returns: bool,
    /// The VM's name in the exits report; `None` if the request has no VM.
    pub vm: Option<String>,
    /// Times from the first step to the last.
    pub total: Distribution,
    /// Number of variants, which differ by optional steps.
    pub variants: u64,
    /// Whether it has less than a hundredth of all requests and of their time.
    pub is_rare: bool,
    /// The steps, in order.
    pub hops: Vec<Hop>,
    /// A typical request, a slow one, and the slowest: see [`ExampleOf`].
    pub examples: Vec<Example>,
    /// All requests by start time, if [`Paths::are_listed`].
    pub listed: Vec<ListedRequest>,
}

impl Path {
    #[must_use]
    pub fn example(&self, kind: ExampleOf) -> Option<&Example> {
        self.examples.iter().find(|example| example.kind == kind)
    }
}

/// All paths of recordings on the same clock.
#[derive(Debug)]
pub struct Paths {
    /// Paths by total time, descending.
    pub paths: Vec<Path>,
    /// Finished requests: those of all paths, and `others`.
    pub requests: u64,
    /// Requests that were handed on and whose end was not seen.
    pub unfinished: u64,
    /// Requests that a loss interrupted.
    pub interrupted: u64,
    /// Requests without a path, because there were too many different ones.
    pub others: u64,
    /// Whether paths list their requests: the caller wanted it, and there were not too many.
    pub are_listed: bool,
    /// From the first event of all recordings to the last.
    pub span_ns: u64,
    /// Whether times are nanoseconds; else they are ticks.
    pub nanoseconds: bool,
    /// Losses by recording.
    pub losses: Vec<Losses>,
}

/// No event matches a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchEvent(
    /// The pattern.
    pub String,
);

/// The paths of requests. `view` has the recordings and the applied alignments of guests; `progress` receives the
/// number of bytes read.
///
/// # Errors
///
/// If no event of any recording matches a pattern of `ends`.
pub fn paths(
    view: View<'_>,
    ends: &PathEnds,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Paths, NoSuchEvent> {
    let View { recordings, .. } = view;
    let events = Events::new(view, ends)?;
    if let Some(paths) = guessed::paths(recordings, &events, progress) {
        return Ok(paths);
    }
    let machines = Machines::new(view);
    let found = follow(recordings, &events, &machines, PathTable::default(), progress);
    Ok(table::paths(found, &machines))
}

/// Follows requests with default ends, and hand-overs, in one pass.
pub(crate) struct RequestsAndHandovers<'e, S, H> {
    requests: Follower<'e, S>,
    handovers: Handovers<'e, H>,
}

impl<'e, S: RequestSink, H: HandoverSink> RequestsAndHandovers<'e, S, H> {
    pub(crate) fn new(
        events: &'e Events,
        machines: &'e Machines<'e>,
        requests: S,
        handovers: H,
    ) -> Self {
        Self {
            requests: Follower::new(events, machines, requests),
            handovers: Handovers::new(events, machines, handovers),
        }
    }
}

impl<'e, H: HandoverSink> RequestsAndHandovers<'e, PathTable, H> {
    /// The paths of all requests, and the sink of hand-overs; `pass` has the results of the reading.
    pub(crate) fn answer(self, machines: &Machines<'_>, pass: TraceEventPass) -> (Paths, H) {
        let nanoseconds = machines.recordings.iter().all(Recording::is_nanoseconds);
        let found = self.requests.finish(nanoseconds, pass.losses);
        (table::paths(found, machines), self.handovers.sink)
    }
}

impl<S: RequestSink, H: HandoverSink> WantsTraceEvents for RequestsAndHandovers<'_, S, H> {
    fn wanted(&self, at: usize, format: &EventFormat) -> Option<EventRequest> {
        self.requests.wanted(at, format)
    }
}

impl<S: RequestSink, H: HandoverSink> TraceEventSink for RequestsAndHandovers<'_, S, H> {
    /// Uses the thread names that the kernel saved.
    const WITH_NAMES: bool = false;

    fn event(&mut self, event: &TraceEvent) {
        self.requests.event(event);
        self.handovers.event(event);
    }

    fn gap(&mut self, gap: &Gap) {
        self.requests.gap(gap);
        self.handovers.gap(gap);
    }
}

/// Gives `sink` every request of a host's recording, with default ends. Returns the VMs in the order of their
/// indexes in requests.
pub(crate) fn each_request<S: RequestSink>(
    host: &Recording,
    sink: S,
    progress: &(dyn Fn(u64) + Sync),
) -> (RequestPass<S>, Vec<Vm>) {
    let recordings = std::slice::from_ref(host);
    let events = Events::of_hosts(recordings);
    let machines = Machines::new(View::on_own_clocks(recordings));
    let found = follow(recordings, &events, &machines, sink, progress);
    (found, machines.into_vms())
}

fn follow<S: RequestSink>(
    recordings: &[Recording],
    events: &Events,
    machines: &Machines<'_>,
    sink: S,
    progress: &(dyn Fn(u64) + Sync),
) -> RequestPass<S> {
    let mut follower = Follower::new(events, machines, sink);
    let pass = each_trace_event(recordings, &mut follower, progress);
    let nanoseconds = recordings.iter().all(Recording::is_nanoseconds);
    follower.finish(nanoseconds, pass.losses)
}
