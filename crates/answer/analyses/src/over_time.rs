//! What a page shows over time, of one reading: who used the CPUs, the timeline of all lanes, and the paths
//! of requests.

use std::collections::HashMap;

use sources::Recording;
use timeline::Vm;

use crate::cpu::{CpuUse, CpuUseSink};
use crate::lanes::{LaneMachine, LaneRoom, LaneSet, LaneSink};
use crate::path::{Paths, paths_and};
use crate::states::states_by;
use crate::{GuestAlignment, RecordedCalls};

/// What is known of recordings before they are read over time.
#[derive(Clone, Copy, Debug)]
pub struct KnownOfAll<'k> {
    /// Which recording is whose guest; applied.
    pub guests: &'k [GuestAlignment],
    /// By recording, its VMs.
    pub vms: &'k [Vec<Vm>],
    /// By recording, the process of vCPU threads where the recorder knew it.
    pub processes: &'k [HashMap<u32, u32>],
    /// By recording, what its lanes are called.
    pub machines: &'k [LaneMachine],
}

/// Answers about recordings over time.
#[derive(Debug)]
pub struct OverTime {
    /// As [`crate::cpu`] gives it.
    pub cpu: CpuUse,
    /// Lanes of CPUs, vCPUs, threads and calls.
    pub lanes: LaneSet,
    /// The calls of those recordings that have any, by their index. Those are read once more.
    pub calls: Vec<(usize, RecordedCalls)>,
    /// As [`crate::paths`] gives them, between the ends that recordings have by themselves.
    pub paths: Paths,
}

/// Reads recordings for all of this, lanes within `room`; `tick` hears of the bytes done.
#[must_use]
pub fn over_time(
    recordings: &[Recording],
    known: KnownOfAll<'_>,
    room: LaneRoom,
    tick: &(dyn Fn(u64) + Sync),
) -> OverTime {
    let KnownOfAll { guests, vms, processes, machines } = known;
    let sums = CpuUseSink::default();
    let mut sinks = (sums, LaneSink::new(recordings, guests, machines, room));
    let (states, paths) = states_by(recordings, guests, false, &mut sinks, |asked| {
        let (paths, events) = paths_and(recordings, guests, vms, asked, tick);
        (events, paths)
    });
    let (sums, lanes) = sinks;
    let cpu = sums.answer(recordings, guests, processes, &states);
    let (lanes, calls) = lanes.answer(recordings, &states, tick);
    OverTime { cpu, lanes, calls, paths }
}
