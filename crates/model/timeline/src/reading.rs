//! One reading of recordings for several tasks: each block is read and unpacked once, and every task decodes it in its
//! own way.
//!
//! ```text
//!            ┌ decoder of task 1 ─ batch ─ consumer of task 1
//!   block ───┼ decoder of task 2 ─ batch ─ consumer of task 2      a round of blocks is decoded while the one
//!            └ decoder of task 3 ─ batch ─ consumer of task 3      before it is consumed
//! ```
//!
//! Tasks differ in type, so they are called through pointers: once for a block and once for a round. What a task does with
//! each record is compiled for it alone.

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
    /// The streams whose times are on the clocks of their recordings: those whose events have an order.
    #[must_use]
    pub fn on_one_clock(recordings: &'r [Recording]) -> Self {
        Self::new(recordings, Input::on_clock_of)
    }

    /// All streams of a recording. Exits need no order of CPUs, so the clocks of streams may differ.
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

    /// A task that gives a sink the events that it wants, of all recordings in the order of their times.
    pub fn trace_events<'t, S: WantsTraceEvents>(
        &'t self,
        sink: &'t mut S,
    ) -> TraceEventTask<'t, S> {
        TraceEventTask::new(self, sink)
    }

    /// A task that gathers the names that events have for numbers.
    #[must_use]
    pub fn names(&self, named: NamedNumber) -> NameTask<'_> {
        NameTask::new(self, named)
    }

    /// A task that gives a sink every exit of the recording, which is the only one read; details are read if they are
    /// wanted.
    pub fn exits<'t, S: ExitSink + Send>(
        &'t self,
        recording: &'t Recording,
        details: bool,
        sink: S,
    ) -> ExitTask<'t, S> {
        ExitTask::new(self, recording, details, sink)
    }

    /// A task that finds the vCPU threads of the recording, which is the only one read, and ends the reading at one
    /// that is not expected.
    #[must_use]
    pub fn expected_vcpus<'t>(
        &'t self,
        recording: &'t Recording,
        is_expected: &'t (dyn Fn(u32) -> bool + Sync),
    ) -> VcpuTask<'t> {
        VcpuTask::new(self, recording, is_expected)
    }

    /// Reads everything for all tasks, or up to where one of them ends the reading; `progress` gets the number of bytes
    /// read since it was called last.
    pub fn run(&self, tasks: &mut [&mut dyn Task], progress: &(dyn Fn(u64) + Sync)) {
        let (decoders, consumers) = tasks.iter_mut().map(|task| task.split()).unzip();
        let mut consumers = Consumers::new(consumers);
        rounds::run(&self.inputs, &Decoders(decoders), &mut consumers, progress);
    }
}
