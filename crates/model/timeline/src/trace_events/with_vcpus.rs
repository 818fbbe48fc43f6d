//! Events in the order of their times, and the vCPU threads of their recording, of one reading.

use std::ops::ControlFlow;

use eventfmt::EventFormat;
use sources::Recording;

use super::batch::TraceEventBatch;
use super::decode::Decoder;
use super::merge::Merger;
use super::{Asked, TraceEventPass, TraceEventSink, inputs, nothing_yet};
use crate::exits::VcpuFinder;
use crate::extract::{Extractor, OnlyVcpus};
use crate::rounds::{self, Consume, pair_up};
use crate::thread_batch::ThreadBatch;
use crate::vcpus::VcpuInfo;

/// [`each_trace_event`](super::each_trace_event) of a recording all of whose streams are on its clock, and the vCPUs
/// that [`find_vcpus`](crate::find_vcpus) finds in it. `None`, with events given to the sink by then, when a vCPU's thread
/// is not expected.
pub fn each_trace_event_and_vcpus<S: TraceEventSink>(
    recording: &Recording,
    asked: Asked<'_, S>,
    is_expected: &(dyn Fn(u32) -> bool + Sync),
    tick: &(dyn Fn(u64) + Sync),
) -> Option<(TraceEventPass, Vec<VcpuInfo>)> {
    let recordings = std::slice::from_ref(recording);
    let (inputs, owners) = inputs(recordings);
    let wanted = |at: usize, format: &EventFormat| (asked.wanted)(at, format);
    let decoder = Decoder::new::<S>(recordings, &owners, &wanted);
    let extractor = Extractor::of_vcpus(recording);
    let mut both = Both {
        finder: VcpuFinder::new(recording, &inputs),
        merger: Merger::new(&inputs, &owners, nothing_yet(recordings), asked.sink),
        is_expected,
        is_broken: false,
    };
    rounds::run(&inputs, &(&OnlyVcpus(&extractor), &decoder), &mut both, tick);
    let Both { finder, merger, is_broken, .. } = both;
    let pass = TraceEventPass { event_ids: decoder.seen(), ..merger.finish() };
    (!is_broken).then(|| (pass, finder.finish()))
}

/// Takes events, as long as nothing unexpected is found.
struct Both<'c, S> {
    finder: VcpuFinder<'c>,
    merger: Merger<'c, S>,
    is_expected: &'c (dyn Fn(u32) -> bool + Sync),
    is_broken: bool,
}

impl<S: TraceEventSink> Consume<(ThreadBatch, TraceEventBatch)> for Both<'_, S> {
    fn take(&mut self, input: usize, batch: (ThreadBatch, TraceEventBatch)) {
        self.finder.take(input, batch.0);
        self.merger.take(input, batch.1);
    }

    fn advance(
        &mut self,
        horizon_ns: u64,
        spent: &mut Vec<(ThreadBatch, TraceEventBatch)>,
    ) -> ControlFlow<()> {
        let (mut of_vcpus, mut of_events) = (Vec::new(), Vec::new());
        let flow = self.finder.advance(horizon_ns, self.is_expected, &mut of_vcpus);
        self.is_broken |= flow.is_break();
        if self.is_broken {
            return ControlFlow::Break(());
        }
        let flow = self.merger.advance(horizon_ns, &mut of_events);
        pair_up(of_vcpus, of_events, spent);
        flow
    }
}
