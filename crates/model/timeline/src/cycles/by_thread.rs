//! Reads the cycles of a recording thread by thread, as exits are read: without a global order of
//! all CPUs.

use std::ops::ControlFlow;

use sources::Recording;

use super::{CycleSink, VcpuCycles};
use crate::lanes::{Fed, Follow, Lanes};
use crate::losses::Losses;
use crate::rounds::{self, Consume, Input};
use crate::thread_batch::ThreadBatch;
use crate::thread_event::{KindSet, ThreadEvent};
use crate::trace_events::{
    SightingBatch, StreamQueues, TraceEventBatch, TraceEventPass, TraceEventSink, WantsTraceEvents,
    WithSightings, nothing_yet,
};
use crate::vcpus::{VcpuInfo, Vcpus};

/// The result of a pass over cycles, besides what its sink collected.
#[derive(Debug)]
pub struct CyclePass {
    /// The vCPUs, in the order of [`super::VcpuCycle::vcpu`].
    pub vcpus: Vec<VcpuInfo>,
    /// Event kinds in the recording.
    pub seen: KindSet,
    /// The result of the pass over trace events, for this recording.
    pub events: TraceEventPass,
}

/// Converts the events of vCPU threads to cycles.
#[derive(Debug)]
struct CycleFollower<'s, S> {
    cycles: VcpuCycles,
    /// By stream.
    cpus: Vec<u16>,
    sink: &'s mut S,
}

impl<S: CycleSink> Follow for CycleFollower<'_, S> {
    fn feed(&mut self, thread: u32, events: &[ThreadEvent]) {
        let cpus = self.cpus.as_slice();
        let cpu_of =
            |event: &ThreadEvent| cpus.get(usize::from(event.stream)).copied().unwrap_or(u16::MAX);
        self.cycles.feed(thread, events, cpu_of, self.sink);
    }

    fn vcpus(&mut self) -> &mut Vcpus {
        &mut self.cycles.vcpus
    }
}

/// Emits per round first the cycles of all threads, then the trace events of all CPUs.
struct ByThread<'s, S> {
    lanes: Lanes<CycleFollower<'s, S>>,
    queues: StreamQueues,
}

impl<S> Consume<SightingBatch> for ByThread<'_, S>
where
    S: CycleSink + TraceEventSink,
{
    fn take(&mut self, input: usize, batch: SightingBatch) {
        let SightingBatch { threads, events } = batch;
        self.lanes.take(input, threads);
        self.queues.take(input, events);
    }

    fn advance(&mut self, horizon_ns: u64, spent: &mut Vec<SightingBatch>) -> ControlFlow<()> {
        let (mut threads, mut events) = (Vec::new(), Vec::new());
        let flow = self.lanes.advance(horizon_ns, &mut threads);
        self.queues.give_by_stream(horizon_ns, &mut events, self.lanes.follower.sink);
        // The shorter list is padded with empty batches.
        let pairs = threads.len().max(events.len());
        threads.resize_with(pairs, ThreadBatch::default);
        events.resize_with(pairs, TraceEventBatch::default);
        let pairs = threads.into_iter().zip(events);
        spent.extend(pairs.map(|(threads, events)| SightingBatch { threads, events }));
        flow
    }
}

/// Passes a sink the cycles of the vCPU threads of a recording with one buffer, in order for each
/// thread, and the wanted events, in order for each CPU. There is no order across vCPUs or CPUs.
/// Wanted events without fields and without thread names are passed only if the CPU's thread has
/// changed since the previous event. `tick` is called with the number of bytes done.
pub fn each_cycle<S: CycleSink + WantsTraceEvents>(
    recording: &Recording,
    sink: &mut S,
    progress: &(dyn Fn(u64) + Sync),
) -> CyclePass {
    let inputs = Input::on_clock_of(recording);
    let decoder = WithSightings::new(recording, |format| sink.wanted(0, format));
    let cpu = |input: &Input<'_>| u16::try_from(input.stream.cpu()).unwrap_or(u16::MAX);
    let cpus = inputs.iter().map(cpu).collect();
    let follower = CycleFollower { cycles: VcpuCycles::default(), cpus, sink };
    let lanes = Lanes::new(&inputs, follower, Losses::of_container(recording));
    let owners = vec![0; inputs.len()];
    let queues = StreamQueues::new(&inputs, &owners, nothing_yet(std::slice::from_ref(recording)));
    let mut both = ByThread { lanes, queues };
    rounds::run(&inputs, &decoder, &mut both, progress);
    let ByThread { lanes, queues } = both;
    let Fed { follower, seen, losses, .. } = lanes.finish(recording);
    let CycleFollower { cycles, sink, .. } = follower;
    let vcpus = cycles.finish(sink);
    let events = queues.finish(sink);
    let events = TraceEventPass { losses: vec![losses], event_ids: vec![decoder.seen()], ..events };
    CyclePass { vcpus, seen, events }
}
