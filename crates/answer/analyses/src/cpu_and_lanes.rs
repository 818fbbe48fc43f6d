//! Who used the CPUs, and the timeline of all lanes: both are of states, and share one reading.

use std::collections::HashMap;

use sources::Recording;

use crate::cpu::{CpuUse, CpuUseSink};
use crate::lanes::{LaneMachine, LaneRoom, LaneSet, LaneSink};
use crate::states::states;
use crate::{GuestAlignment, RecordedCalls};

/// What [`crate::cpu`] and [`crate::lanes`] give, which say what the arguments are.
#[must_use]
pub fn cpu_and_lanes(
    recordings: &[Recording],
    guests: &[GuestAlignment],
    processes: &[HashMap<u32, u32>],
    (machines, room): (&[LaneMachine], LaneRoom),
    tick: &(dyn Fn(u64) + Sync),
) -> (CpuUse, LaneSet, Vec<(usize, RecordedCalls)>) {
    let sums = CpuUseSink::default();
    let mut sinks = (sums, LaneSink::new(recordings, guests, machines, room));
    let states = states(recordings, guests, &mut sinks, tick);
    let (sums, lanes) = sinks;
    let cpu = sums.answer(recordings, guests, processes, &states);
    let (lanes, calls) = lanes.answer(recordings, &states, tick);
    (cpu, lanes, calls)
}
