//! One reading of recordings for several tasks: each block is read and unpacked once, and every task decodes it in its
//! own way.
//!
//! ```text
//!            ┌ decoder of task 1 ─ batch ─ consumer of task 1
//!   block ───┼ decoder of task 2 ─ batch ─ consumer of task 2      a round of blocks is decoded while the one
//!            └ decoder of task 3 ─ batch ─ consumer of task 3      before it is consumed
//! ```
//!
//! Tasks have different types, so they are called through pointers: once per block and once per
//! round. The loop over records is compiled for each task separately.

mod names;
mod task;
mod trace_events;
mod vcpus;

use std::slice::from_ref;

use sources::Recording;

use crate::numbered_names::NamedNumber;
use crate::rounds::{self, Input};
use crate::trace_events::WantsTraceEvents;
use crate::vcpu::ExitSink;

use self::task::{Consumers, Decoders};

pub use names::NameTask;
pub use task::{BlockTask, Task};
pub use trace_events::{TraceEventTask, each_trace_event};
pub use vcpus::{ExitTask, VcpuTask};

/// The streams of recordings that tasks read.
#[derive(Debug)]
pub struct Reading<'r> {
    recordings: &'r [Recording],
    inputs: Vec<Input<'r>>,
    /// By input, the index of its recording.
    owners: Vec<u16>,
}

impl<'r> Reading<'r> {
    /// The streams whose times are on the clocks of their recordings, so that their events can be
    /// ordered.
    #[must_use]
    pub fn on_one_clock(recordings: &'r [Recording]) -> Self {
        Self::new(recordings, Input::on_clock_of)
    }

    /// All streams of a recording. Exits need no order of CPUs, so streams may have different
    /// clocks.
    #[must_use]
    pub fn of_all_streams(recording: &'r Recording) -> Self {
        Self::new(from_ref(recording), Input::all_of)
    }

    fn new(recordings: &'r [Recording], streams: fn(&'r Recording) -> Vec<Input<'r>>) -> Self {
        let (mut inputs, mut owners) = (Vec::new(), Vec::new());
        for (owner, recording) in (0u16..).zip(recordings) {
            for input in streams(recording) {
                inputs.push(input);
                owners.push(owner);
            }
        }
        Self { recordings, inputs, owners }
    }

    /// A task that passes a sink its wanted events of all recordings in time order.
    pub fn trace_events<'t, S: WantsTraceEvents>(
        &'t self,
        sink: &'t mut S,
    ) -> TraceEventTask<'t, S> {
        TraceEventTask::new(self, sink)
    }

    /// A task that collects the names that events give to numbers.
    #[must_use]
    pub fn names(&self, named: NamedNumber) -> NameTask<'_> {
        NameTask::new(self, named)
    }

    /// A task that passes a sink every exit. The reading must have exactly one recording. Details
    /// are read if requested.
    pub fn exits<'t, S: ExitSink + Send>(
        &'t self,
        recording: &'t Recording,
        details: bool,
        sink: S,
    ) -> ExitTask<'t, S> {
        ExitTask::new(self, recording, details, sink)
    }

    /// A task that finds the vCPU threads, and ends the reading at the first unexpected one. The
    /// reading must have exactly one recording.
    #[must_use]
    pub fn expected_vcpus<'t>(
        &'t self,
        recording: &'t Recording,
        is_expected: &'t (dyn Fn(u32) -> bool + Sync),
    ) -> VcpuTask<'t> {
        VcpuTask::new(self, recording, is_expected)
    }

    /// Reads everything for all tasks, or until a task ends the reading; `progress` receives the
    /// number of bytes read since its last call.
    pub fn run(&self, tasks: &mut [&mut dyn Task], progress: &(dyn Fn(u64) + Sync)) {
        let (decoders, consumers) = tasks.iter_mut().map(|task| task.split()).unzip();
        let mut consumers = Consumers::new(consumers);
        rounds::run(&self.inputs, &Decoders(decoders), &mut consumers, progress);
    }
}
