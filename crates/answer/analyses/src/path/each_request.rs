//! Single requests, for callers that store them.

use super::events::Events;
use super::machines::Machines;
use super::requests::{Request, RequestSink};
use super::table::actors;
use super::{Actor, Place, follow};
use crate::view::View;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestStep<'r> {
    /// Time on the host's clock.
    pub ts_ns: u64,
    pub what: &'r str,
    /// The kind of thread that performed it.
    pub on: Actor,
    pub place: Place,
}

#[derive(Debug)]
pub struct DoneRequest<'r> {
    /// The VM's name in the exits report; `None` if the request has no VM.
    pub vm: Option<&'r str>,
    /// Whether the guest continues because of it; otherwise it ended on the host.
    pub returns: bool,
    /// First step and actors: requests with the same steps have the same value.
    pub path: String,
    /// At least two steps, in order.
    pub steps: Vec<RequestStep<'r>>,
}

/// Receives requests one by one, as they finish.
pub trait DoneRequestSink: Send {
    fn request(&mut self, request: &DoneRequest<'_>);
}

struct Named<'m, 's, S> {
    machines: &'m Machines<'m>,
    sink: &'s mut S,
}

impl<S: DoneRequestSink> RequestSink for Named<'_, '_, S> {
    fn request(&mut self, request: &Request<'_>) {
        let step = |step: &super::requests::Step| RequestStep {
            ts_ns: step.stamp_ns,
            what: request.labels.text(step.label),
            on: step.on,
            place: step.place,
        };
        let steps: Vec<RequestStep<'_>> = request.steps.iter().map(step).collect();
        let start = steps.first().map_or("", |first| first.what);
        let one_way = if request.returns { "" } else { ", one way" };
        let path = format!("{start}: {}{one_way}", actors(steps.iter().map(|step| step.on)));
        let vm = request.vm.and_then(|vm| self.machines.vm_name(vm));
        self.sink.request(&DoneRequest { vm, returns: request.returns, path, steps });
    }
}

/// Gives `sink` every request with default ends. `view` has the recordings and the applied alignments of guests;
/// `progress` receives the number of bytes read.
pub fn done_requests<S: DoneRequestSink>(
    view: View<'_>,
    sink: &mut S,
    progress: &(dyn Fn(u64) + Sync),
) {
    let View { recordings, .. } = view;
    let events = Events::by_themselves(view);
    let machines = Machines::new(view);
    let sink = Named { machines: &machines, sink };
    follow(recordings, &events, &machines, sink, progress);
}
