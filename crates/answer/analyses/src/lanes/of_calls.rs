//! Lanes of functions: one per thread and stack depth.
//!
//! Calls at one depth do not overlap, so they are spans like others; calls at the next depth are nested in them.
//! This shows the depth over time at any zoom level.

use rustc_hash::FxHashMap;
use sources::Recording;
use timeline::trace_events::TraceEventPass;

use super::{Lane, LaneKind, LaneMachine, LaneSet, Span, State};
use crate::calls::{
    CallQuestion, CallSink, Called, Function, RecordedCalls, calls, tracer_recorded,
};

/// Max threads of a recording whose stacks are shown by default: those with most calls.
const SHOWN_THREADS: usize = 12;

/// Max threads whose stacks are stored for later queries.
const MAX_THREADS: usize = 48;

/// Max stored stack depth; the kernel follows at most some fifty.
const MAX_DEPTHS: i64 = 128;

/// Adds the calls of recordings that have any, according to `pass`; returns them by recording.
pub(super) fn add_calls(
    set: &mut LaneSet,
    recordings: &[Recording],
    machines: &[LaneMachine],
    pass: &TraceEventPass,
    progress: &(dyn Fn(u64) + Sync),
) -> Vec<(usize, RecordedCalls)> {
    let mut all = Vec::new();
    for (at, recording) in recordings.iter().enumerate() {
        if tracer_recorded(recording, at, pass).is_none() {
            continue;
        }
        let machine = machines.get(at).map_or("", |machine| machine.name.as_str());
        let first = set.lanes().len();
        let mut stacks = Stacks {
            set,
            machine,
            threads: Vec::new(),
            numbers: FxHashMap::default(),
            labels: FxHashMap::default(),
        };
        let recorded = calls(recording, &CallQuestion::default(), &mut stacks, progress);
        let threads = stacks.threads;
        keep_busiest(set, first, threads, &recorded);
        all.push((at, recorded));
    }
    all
}

/// A thread with its lanes.
struct Thread {
    /// Its id, and the CPU if it is an idle thread.
    key: (u32, Option<u16>),
    count: u64,
    /// Lane numbers by depth.
    lanes: Vec<Option<usize>>,
}

/// Converts calls to spans.
struct Stacks<'s> {
    set: &'s mut LaneSet,
    machine: &'s str,
    threads: Vec<Thread>,
    numbers: FxHashMap<(u32, Option<u16>), usize>,
    labels: FxHashMap<u32, u32>,
}

impl CallSink for Stacks<'_> {
    fn call(&mut self, call: &Called, function: &Function) {
        let Some(depth) = (0..MAX_DEPTHS).contains(&call.depth).then_some(call.depth as usize)
        else {
            return;
        };
        let Self { set, machine, threads, numbers, labels } = self;
        let key = (call.thread, call.idle_cpu);
        let at = *numbers.entry(key).or_insert_with(|| {
            threads.push(Thread { key, count: 0, lanes: Vec::new() });
            threads.len() - 1
        });
        let Some(thread) = threads.get_mut(at) else { return };
        thread.count += 1;
        if thread.lanes.len() <= depth {
            thread.lanes.resize(depth + 1, None);
        }
        let Some(lane) = thread.lanes.get_mut(depth) else { return };
        let lane = *lane.get_or_insert_with(|| {
            let mut lane = Lane::new(machine, LaneKind::Call, "");
            lane.depth = Some(depth as u32);
            set.add(lane)
        });
        let label = *labels.entry(call.function).or_insert_with(|| set.label(&function.title()));
        let (from_ns, to_ns) = (call.from_ns, call.to_ns);
        set.push(lane, Span { from_ns, to_ns, state: State::of_function(function), label });
    }
}

/// Keeps the lanes from `first` on for the threads with most calls, and names them.
fn keep_busiest(set: &mut LaneSet, first: usize, mut threads: Vec<Thread>, calls: &RecordedCalls) {
    threads.sort_by_key(|thread| (u64::MAX - thread.count, thread.key));
    let left_out = threads.len().saturating_sub(MAX_THREADS);
    threads.truncate(MAX_THREADS);
    let titles: FxHashMap<_, _> = calls
        .threads
        .iter()
        .map(|thread| ((thread.thread, thread.idle_cpu), thread.title()))
        .collect();
    let mut order = Vec::new();
    for (place, thread) in threads.iter().enumerate() {
        for &lane in thread.lanes.iter().flatten() {
            if let (Some(lane), Some(title)) = (set.lane_mut(lane), titles.get(&thread.key)) {
                lane.name.clone_from(title);
                lane.quiet = place >= SHOWN_THREADS;
            }
            order.push(lane);
        }
    }
    set.keep_from(first, &order, left_out as u64);
}
