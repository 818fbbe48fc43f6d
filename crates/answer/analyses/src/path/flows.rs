//! What leads from thread to thread, for tools that draw it: hand-overs, and requests from step to step.

use parking_lot::Mutex;
use timeline::Vm;
use timeline::reading::each_trace_event;

use super::events::Events;
use super::handovers::{Handover, HandoverSink};
use super::machines::Machines;
use super::requests::{Request, RequestSink};
use super::{Actor, Place, RequestsAndHandovers};
use crate::view::View;

/// Where and when a request takes a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowEnd {
    /// When, on the host's clock.
    pub ts_ns: u64,
    pub place: Place,
    /// What performs it.
    pub on: Actor,
}

/// Takes what leads from thread to thread.
pub trait FlowSink: Send {
    /// One thread makes another go on.
    fn handover(&mut self, handover: &Handover);

    /// A request is done: two steps at least, in order.
    fn request(&mut self, steps: &[FlowEnd]);
}

/// Lets two followers give to the same sink.
struct Shared<'m, 's, F> {
    sink: &'m Mutex<&'s mut F>,
    steps: Vec<FlowEnd>,
}

impl<F: FlowSink> HandoverSink for Shared<'_, '_, F> {
    fn handover(&mut self, handover: &Handover) {
        self.sink.lock().handover(handover);
    }
}

impl<F: FlowSink> RequestSink for Shared<'_, '_, F> {
    fn request(&mut self, request: &Request<'_>) {
        self.steps.clear();
        self.steps.extend(request.steps.iter().map(|step| FlowEnd {
            ts_ns: step.stamp_ns,
            place: step.place,
            on: step.on,
        }));
        self.sink.lock().request(&self.steps);
    }
}

/// Gives `sink` the hand-overs and requests of a view's recordings, whose VMs are known; `tick` receives the number of bytes read.
pub fn flows<F: FlowSink>(
    view: View<'_>,
    vms: &[Vec<Vm>],
    sink: &mut F,
    progress: &(dyn Fn(u64) + Sync),
) {
    let events = Events::by_themselves(view);
    let machines = Machines::with_vms(view, vms);
    let sink = Mutex::new(sink);
    let shared = || Shared { sink: &sink, steps: Vec::new() };
    let mut both = RequestsAndHandovers::new(&events, &machines, shared(), shared());
    each_trace_event(view.recordings, &mut both, progress);
}
