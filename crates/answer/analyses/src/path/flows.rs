//! Flows between threads, for drawing tools: hand-overs, and the steps of requests.

use parking_lot::Mutex;
use timeline::Vm;
use timeline::reading::each_trace_event;

use super::events::Events;
use super::handovers::{Handover, HandoverSink};
use super::machines::Machines;
use super::requests::{Request, RequestSink};
use super::{Actor, Place, RequestsAndHandovers};
use crate::view::View;

/// Time and place of a request's step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowEnd {
    /// Time on the host's clock.
    pub ts_ns: u64,
    pub place: Place,
    /// The kind of thread that performs it.
    pub on: Actor,
}

/// Receives flows between threads.
pub trait FlowSink: Send {
    /// One thread wakes or interrupts another.
    fn handover(&mut self, handover: &Handover);

    /// A request is finished; it has at least two steps.
    fn request(&mut self, steps: &[FlowEnd]);
}

/// Shares a sink between two followers.
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

/// Gives `sink` the hand-overs and requests in the recordings of `view`; `vms` has the VMs by recording,
/// `progress` receives the number of bytes read.
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
