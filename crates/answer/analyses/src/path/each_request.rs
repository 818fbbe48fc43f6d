//! Every single request, for callers that store requests.

use super::events::Events;
use super::machines::Machines;
use super::requests::{Request, RequestSink};
use super::table::actors;
use super::{Actor, Place, follow};
use crate::view::View;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestStep<'r> {
    /// When, on the host's clock.
    pub ts_ns: u64,
    /// What happened.
    pub what: &'r str,
    /// What performed it.
    pub on: Actor,
    pub place: Place,
}

#[derive(Debug)]
pub struct DoneRequest<'r> {
    /// The VM, as the exits report calls it; `None` where the request is no VM's.
    pub vm: Option<&'r str>,
    /// Whether the guest goes on because of it; else it ended on the host.
    pub returns: bool,
    /// What it begins with and who it goes over: requests of the same steps have it in common.
    pub path: String,
    /// Its steps: two at least, in order.
    pub steps: Vec<RequestStep<'r>>,
}

/// Takes requests one by one, each when it is done.
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

/// Gives `sink` every request of `recordings`, between the ends that it has by itself; guests have been aligned
/// as `guests` says, and `tick` receives the number of bytes read.
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
