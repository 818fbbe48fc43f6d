//! What a page shows over time, of one reading: who used the CPUs, the timeline of all lanes, the code that ran,
//! the paths of requests, and handlers of interrupts.

use std::collections::HashMap;

use sources::Samples;
use timeline::Vm;
use timeline::reading::{Reading, Task};

use crate::calls::RecordedCalls;
use crate::cpu::{CpuUse, CpuUseSink};
use crate::irqs::{By, IRQ_NAMES, IrqSink, Irqs, has_handlers};
use crate::lanes::{ArrowSink, Arrows, LaneMachine, LaneRoom, LaneSet, LaneSink};
use crate::path::{Events, Machines, PathTable, Paths, RequestsAndHandovers};
use crate::profile::{Profile, ProfileSums, profile_of};
use crate::states::{StateSink, states, states_for_all};
use crate::view::View;

/// What is known of recordings before they are read over time.
#[derive(Clone, Copy, Debug)]
pub struct KnownOfAll<'k> {
    /// By recording, the samples that were taken with it.
    pub samples: &'k [Option<Samples>],
    /// By recording, its VMs.
    pub vms: &'k [Vec<Vm>],
    /// By recording, the process of vCPU threads where the recorder knew it.
    pub processes: &'k [HashMap<u32, u32>],
    /// By recording, what its lanes are called.
    pub machines: &'k [LaneMachine],
}

/// What a page's answers over time may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRoom {
    /// The lanes of the timeline.
    pub lanes: LaneRoom,
    /// Bytes of memory for the places of code that ran.
    pub code_bytes: usize,
    /// Bytes of memory for arrows between lanes.
    pub arrow_bytes: usize,
    /// Requests that are listed one by one; of more, none is.
    pub requests: usize,
}

/// Answers about recordings over time.
#[derive(Debug)]
pub struct OverTime {
    /// As [`crate::cpu::cpu`] gives it.
    pub cpu: CpuUse,
    /// Lanes of CPUs, vCPUs, threads and calls.
    pub lanes: LaneSet,
    /// Arrows between them.
    pub arrows: Arrows,
    /// The calls of those recordings that have any, by their index. Those are read once more.
    pub calls: Vec<(usize, RecordedCalls)>,
    /// As [`crate::profile::profile()`] gives it, by slices of time, too.
    pub profile: Profile,
    /// As [`crate::path::paths`] gives them, between the ends that recordings have by themselves.
    pub paths: Paths,
    /// As [`crate::irqs::irqs`] gives them by handler; `None`: no recording can have any.
    pub irqs: Option<Irqs>,
}

/// Reads recordings for all of this within `room`; `progress` gets the number of bytes read.
#[must_use]
pub fn over_time(
    view: View<'_>,
    known: KnownOfAll<'_>,
    room: PageRoom,
    progress: &(dyn Fn(u64) + Sync),
) -> OverTime {
    let View { recordings, .. } = view;
    let KnownOfAll { samples, vms, processes, machines } = known;
    let mut cpu = CpuUseSink::new(recordings);
    let mut lanes = LaneSink::new(view, machines, room.lanes);
    let mut code = ProfileSums::by_slice(view, samples, room.code_bytes);
    let mut handlers = recordings.iter().any(has_handlers).then(|| IrqSink::new(view, By::Handler));
    let events = Events::by_themselves(view);
    let path_machines = Machines::with_vms(view, vms);
    let arrows = ArrowSink::new(room.arrow_bytes);
    let requests = PathTable::listing(room.requests);
    let mut requests = RequestsAndHandovers::new(&events, &path_machines, requests, arrows);

    let reading = Reading::on_one_clock(recordings);
    let mut request_task = reading.trace_events(&mut requests);
    let mut names = reading.names(IRQ_NAMES);
    let mut sinks: Vec<&mut dyn StateSink> = vec![&mut cpu, &mut lanes, &mut code];
    if let Some(handlers) = &mut handlers {
        sinks.push(handlers);
    }
    let tasks: &mut [&mut dyn Task] = &mut [&mut request_task, &mut names];
    let states = states_for_all(view, sinks, (&reading, tasks), progress);

    let pass = request_task.finish();
    let (paths, arrows) = requests.answer(&path_machines, pass);
    let irqs = handlers.map(|handlers| handlers.answer(&states, &names.finish(), view));
    let cpu = cpu.answer(view, processes, &states);
    let (lanes, arrows, calls) = lanes.answer(view, &states, arrows, progress);
    let profile = profile_of(code, states, view, samples);
    OverTime { cpu, lanes, arrows, calls, profile, paths, irqs }
}

/// Reads recordings for their lanes alone.
#[must_use]
pub fn lanes_over_time(
    view: View<'_>,
    machines: &[LaneMachine],
    room: LaneRoom,
    progress: &(dyn Fn(u64) + Sync),
) -> LaneSet {
    let mut lanes = LaneSink::new(view, machines, room);
    let states = states(view, &mut lanes, progress);
    lanes.answer(view, &states, ArrowSink::new(0), progress).0
}
