//! Which ways requests take across guest, vCPU threads, the VMM's threads, vhost workers and back.
//!
//! A request is followed forwards, by cause: a guest accesses a device, its vCPU's thread wakes
//! another one, that runs, works, raises an interrupt or wakes the vCPU, the guest goes on. Who
//! caused what is decided by who was on the CPU when it happened; nothing is matched by being near in
//! time. Requests that took the same steps are one path, and each step's times a distribution.

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

/// What performs a step.
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
    /// An interrupt on the host.
    Interrupt,
    /// Any other thread of the host.
    Host,
    /// A thread that is the recording itself: see [`crate::recorders`].
    Recorder,
}

impl Actor {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Guest,
        Self::Vcpu,
        Self::Iothread,
        Self::Vhost,
        Self::Interrupt,
        Self::Host,
        Self::Recorder,
    ];

    /// Its name in reports.
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

    /// Whether its threads are told apart by their names: those of the others are called by what they are.
    const fn has_name(self) -> bool {
        matches!(self, Self::Host | Self::Recorder)
    }
}

/// Events at which a user wants paths to begin and to end, as patterns (`SYSTEM:NAME` or `NAME`,
/// with `*` and `?`); `None`: where requests begin and end by themselves.
#[derive(Clone, Debug, Default)]
pub struct PathEnds {
    /// Where paths begin.
    pub start: Option<String>,
    /// Where they end.
    pub end: Option<String>,
}

/// A step of a path, and how long it took from the one before: the one that the request took before it,
/// where some are optional.
#[derive(Clone, Debug)]
pub struct Hop {
    /// What it begins with, in most of the requests that took it.
    pub from: String,
    /// What it ends with.
    pub to: String,
    /// What performs its last step.
    pub on: Actor,
    /// How long it took, each time: fewer times than there are requests where it is optional.
    pub times: Distribution,
}

/// Where something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Index of the recording.
    pub recording: u16,
    /// The CPU, of the guest in a guest's recording.
    pub cpu: u16,
    /// Id of the thread that does it, or that an interrupt interrupts.
    pub thread: u32,
}

/// Which request of a path an example is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExampleOf {
    /// One of a usual length: near the median of the way that most requests took.
    Median,
    /// One near the 99th percentile of the whole path.
    P99,
    /// The one that took longest.
    Worst,
}

impl ExampleOf {
    /// Its name in documents.
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
    /// Its steps, in order.
    pub steps: Vec<ExampleStep>,
    /// For each of its steps but the first, the place of the hop that ends with it.
    pub hops: Vec<usize>,
}

impl Example {
    /// From its first step to its last, in nanoseconds.
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
    /// When, on the host's clock.
    pub ts_ns: u64,
    /// What happened.
    pub what: String,
    /// What performed it.
    pub on: Actor,
    pub place: Place,
}

/// Requests that took the same steps, but for some that are optional. The times of its hops add up to its
/// requests' times.
#[derive(Clone, Debug)]
pub struct Path {
    /// The first step, and what performs the other steps in most of its requests.
    pub name: String,
    /// What it begins with: `mmio write 0xfeb02e50`.
    pub start: String,
    /// Whether the guest goes on because of it; else it ended on the host.
    pub returns: bool,
    /// The VM, as the exits report calls it; `None` where the request is no VM's.
    pub vm: Option<String>,
    /// From beginning to end.
    pub total: Distribution,
    /// Ways that differ by optional steps.
    pub variants: u64,
    /// It has less than a hundredth of all requests and of their time.
    pub is_rare: bool,
    /// The steps, in order.
    pub hops: Vec<Hop>,
    /// A usual request, a slow one, and the slowest: see [`ExampleOf`].
    pub examples: Vec<Example>,
    /// All of its requests in the order in which they began, if [`Paths::are_listed`].
    pub listed: Vec<ListedRequest>,
}

impl Path {
    #[must_use]
    pub fn example(&self, kind: ExampleOf) -> Option<&Example> {
        self.examples.iter().find(|example| example.kind == kind)
    }
}

/// All paths of recordings on one clock.
#[derive(Debug)]
pub struct Paths {
    /// Those that took longest, all their requests together, first.
    pub paths: Vec<Path>,
    /// Requests that are done: those of all paths, and `others`.
    pub requests: u64,
    /// Requests that were handed on, and whose end was not seen.
    pub unfinished: u64,
    /// Requests that were under way when events were lost.
    pub interrupted: u64,
    /// Requests whose way was one too many to be kept apart.
    pub others: u64,
    /// Whether each path has a list of its requests; they were asked for, and not too many.
    pub are_listed: bool,
    /// From the first event of all recordings to the last.
    pub span_ns: u64,
    /// Whether times are nanoseconds; else they are ticks.
    pub nanoseconds: bool,
    /// By recording, what was lost.
    pub losses: Vec<Losses>,
}

/// An end that no event matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchEvent(
    /// The pattern.
    pub String,
);

/// The paths of requests in `recordings`, of which guests have been aligned as `guests` says;
/// `tick` receives the number of bytes read.
///
/// # Errors
/// When no event of any recording matches an end that was asked for.
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

/// Takes requests between the ends that recordings have by themselves, and hand-overs.
pub(crate) struct RequestsAndHandovers<'e, S, H> {
    requests: Follower<'e, S>,
    handovers: Handovers<'e, H>,
}

impl<'e, S: RequestSink, H: HandoverSink> RequestsAndHandovers<'e, S, H> {
    /// For the events and machines of a view.
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
    /// The paths of all requests, and the sink of hand-overs; `pass` is what the reading left.
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
    /// Threads are called as the kernel saved their names.
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

/// Gives `sink` every request of a host's recording, between the ends that it has by itself; and
/// the VMs, as requests number them.
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
