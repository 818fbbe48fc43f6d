//! What a page shows over time, of one reading: who used the CPUs, the timeline of all lanes, the code that ran,
//! the paths of requests, and handlers of interrupts.

use std::collections::HashMap;

use eventfmt::EventFormat;
use sources::Samples;
use timeline::Vm;

use crate::calls::RecordedCalls;
use crate::cpu::{CpuUse, CpuUseSink};
use crate::irqs::{self, HandlerSearch, IRQ_NAMES, Irqs, WithHandlers, has_handlers};
use crate::lanes::{ArrowSink, Arrows, LaneMachine, LaneRoom, LaneSet, LaneSink};
use crate::path::{Paths, paths_and};
use crate::profile::Profile;
use crate::profile::{ProfileSums, profile_of};
use crate::states::{Besides, aside, states_by};
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

/// Reads recordings for all of this within `room`; `tick` hears of the bytes done.
#[must_use]
pub fn over_time(
    view: View<'_>,
    known: KnownOfAll<'_>,
    room: PageRoom,
    tick: &(dyn Fn(u64) + Sync),
) -> OverTime {
    let View { recordings, guests } = view;
    let KnownOfAll { samples, vms, processes, machines } = known;
    let lanes = LaneSink::new(view, machines, room.lanes);
    let code = ProfileSums::by_slice(view, samples, room.code_bytes);
    let mut sinks = ((CpuUseSink::new(recordings), lanes), code);
    let are_recorded = recordings.iter().any(has_handlers);
    let search = are_recorded.then(|| HandlerSearch::new(recordings, irqs::By::Handler));
    let source_of = |format: &EventFormat| search.as_ref()?.source_of(format);
    let besides = Besides { guest_pc: true, handlers: are_recorded.then_some(&source_of) };
    let ((states, ((paths, arrows), names)), handlers) = aside(&mut sinks, |states| {
        let handlers = search.as_ref().map(|search| search.sink(guests));
        let mut states = WithHandlers { states, handlers };
        let read = states_by(view, besides, &mut states, |asked| {
            let arrows = ArrowSink::new(room.arrow_bytes);
            let (found, (events, names)) =
                paths_and(view, vms, (room.requests, arrows), (asked, IRQ_NAMES), tick);
            (events, (found, names))
        });
        (read, states.handlers)
    });
    let irqs = search
        .zip(handlers)
        .map(|(search, handlers)| search.answer(handlers, (&states, &names), view));
    let ((sums, lanes), code) = sinks;
    let cpu = sums.answer(view, processes, &states);
    let (lanes, arrows, calls) = lanes.answer(view, &states, arrows, tick);
    let profile = profile_of(code, states, view, samples);
    OverTime { cpu, lanes, arrows, calls, profile, paths, irqs }
}
