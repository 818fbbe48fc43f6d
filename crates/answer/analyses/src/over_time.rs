//! A page's analyses over time, in one pass: CPU usage, lanes, profile, paths of requests, and interrupt handlers.

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

/// Inputs by recording, from earlier passes.
#[derive(Clone, Copy, Debug)]
pub struct KnownOfAll<'k> {
    /// By recording: its samples.
    pub samples: &'k [Option<Samples>],
    /// By recording: its VMs.
    pub vms: &'k [Vec<Vm>],
    /// By recording: the processes of vCPU threads, as far as the recorder knows them.
    pub processes: &'k [HashMap<u32, u32>],
    /// By recording: the machine that its lanes belong to.
    pub machines: &'k [LaneMachine],
}

/// Limits for a page's data over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRoom {
    /// Limits for the lanes of the timeline.
    pub lanes: LaneRoom,
    /// Max bytes of memory for code locations.
    pub code_bytes: usize,
    /// Max bytes of memory for arrows between lanes.
    pub arrow_bytes: usize,
    /// Max listed requests; beyond that, none is listed.
    pub requests: usize,
}

/// Results over time.
#[derive(Debug)]
pub struct OverTime {
    /// Result of [`crate::cpu::cpu`].
    pub cpu: CpuUse,
    /// Lanes of CPUs, vCPUs, threads and calls.
    pub lanes: LaneSet,
    /// Arrows between the lanes.
    pub arrows: Arrows,
    /// Calls by index of the recording, if it has any. A second pass reads these recordings.
    pub calls: Vec<(usize, RecordedCalls)>,
    /// Result of [`crate::profile::profile()`], including slices of time.
    pub profile: Profile,
    /// Result of [`crate::path::paths`], with the default ends.
    pub paths: Paths,
    /// Result of [`crate::irqs::irqs`] by handler; `None` if no recording can have handlers.
    pub irqs: Option<Irqs>,
}

/// Computes all results within the limits of `room`; `progress` receives the number of bytes read.
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

/// Computes only the lanes.
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
