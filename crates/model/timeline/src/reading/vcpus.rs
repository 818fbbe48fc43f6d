//! Tasks for the vCPU threads of one recording: one for their exits, one to find the threads.

use std::ops::ControlFlow;

use sources::Recording;

use super::Reading;
use super::task::{AnyConsumer, AnyDecoder, BlockTask, Task};
use crate::exits::{ExitFollower, ExitPass, VcpuFinder, finish};
use crate::extract::{Extractor, OnlyVcpus};
use crate::lanes::Lanes;
use crate::losses::Losses;
use crate::rounds::Consume;
use crate::thread_batch::ThreadBatch;
use crate::vcpu::ExitSink;
use crate::vcpus::VcpuInfo;

/// Passes a sink every exit: see [`Reading::exits`].
#[derive(Debug)]
pub struct ExitTask<'t, S> {
    recording: &'t Recording,
    task: BlockTask<Extractor, Lanes<ExitFollower<S>>>,
}

impl<'t, S: ExitSink + Send> ExitTask<'t, S> {
    pub(super) fn new(
        reading: &'t Reading<'_>,
        recording: &'t Recording,
        details: bool,
        sink: S,
    ) -> Self {
        let losses = Losses::of_container(recording);
        let consumer = Lanes::new(&reading.inputs, ExitFollower::new(sink), losses);
        let decoder = Extractor::new(recording, details);
        Self { recording, task: BlockTask { decoder, consumer } }
    }

    /// The sink, and the other results of the reading.
    #[must_use]
    pub fn finish(self) -> ExitPass<S> {
        finish(self.task.consumer, self.recording)
    }
}

impl<S: ExitSink + Send> Task for ExitTask<'_, S> {
    fn split(&mut self) -> (&dyn AnyDecoder, Box<dyn AnyConsumer + '_>) {
        self.task.split()
    }
}

/// Checks for unexpected vCPU threads: see [`Reading::expected_vcpus`].
#[derive(Debug)]
pub struct VcpuTask<'t>(BlockTask<OnlyVcpus, Expected<'t>>);

impl<'t> VcpuTask<'t> {
    pub(super) fn new(
        reading: &'t Reading<'_>,
        recording: &'t Recording,
        is_expected: &'t (dyn Fn(u32) -> bool + Sync),
    ) -> Self {
        let finder = VcpuFinder::new(recording, &reading.inputs);
        let decoder = OnlyVcpus(Extractor::of_vcpus(recording));
        let consumer = Expected { finder, is_expected, is_surprised: false };
        Self(BlockTask { decoder, consumer })
    }

    /// All vCPUs; `None` if the reading ended at an unexpected one.
    #[must_use]
    pub fn finish(self) -> Option<Vec<VcpuInfo>> {
        let Expected { finder, is_surprised, .. } = self.0.consumer;
        (!is_surprised).then(|| finder.finish())
    }
}

impl Task for VcpuTask<'_> {
    fn split(&mut self) -> (&dyn AnyDecoder, Box<dyn AnyConsumer + '_>) {
        self.0.split()
    }
}

/// Finds vCPUs up to the first unexpected one.
struct Expected<'t> {
    finder: VcpuFinder<'t>,
    is_expected: &'t (dyn Fn(u32) -> bool + Sync),
    is_surprised: bool,
}

impl std::fmt::Debug for Expected<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Expected").finish_non_exhaustive()
    }
}

impl Consume<ThreadBatch> for Expected<'_> {
    fn take(&mut self, input: usize, batch: ThreadBatch) {
        self.finder.take(input, batch);
    }

    fn advance(&mut self, horizon_ns: u64, spent: &mut Vec<ThreadBatch>) -> ControlFlow<()> {
        let flow = self.finder.advance(horizon_ns, self.is_expected, spent);
        self.is_surprised |= flow.is_break();
        flow
    }
}
