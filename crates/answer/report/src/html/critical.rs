//! The waits of a task in the page: summed, and the longest ones with the lanes of their steps.

use analyses::critical::{CriticalPart, CriticalState, CriticalStep, CriticalWait};
use analyses::lanes::LanePlaces;
use schemars::JsonSchema;
use serde::Serialize;

use crate::CriticalReport;
use crate::critical::words;

/// Max parts in a page: the longest.
const MAX_PARTS: usize = 100;

/// The waits of a task (`--critical`); null: not requested.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Critical<'p> {
    /// The task as requested.
    task: &'p str,
    /// Waiting time of its threads: the sum of all parts and others_ns.
    waited_ns: u64,
    /// The causes, the longest first: 100 at most.
    parts: Vec<Part<'p>>,
    /// The time of all other parts.
    others_ns: u64,
    /// The longest waits.
    waits: Vec<Wait<'p>>,
}

#[derive(Debug, JsonSchema, Serialize)]
struct Part<'p> {
    /// host, or the name of a VM.
    machine: &'p str,
    /// The thread; interrupt for an interrupt.
    thread: &'p str,
    /// Its state, as in critical.schema.json.
    state: &'static str,
    /// The state with its reason, in words.
    what: String,
    /// The duration.
    time_ns: u64,
    /// Number of intervals.
    count: u64,
}

#[derive(Debug, JsonSchema, Serialize)]
struct Wait<'p> {
    /// The machine of the thread that waited.
    machine: &'p str,
    /// Its id.
    tid: u32,
    /// Its begin, on the host's clock.
    from_ns: u64,
    /// Its end.
    to_ns: u64,
    /// Index in timeline.lanes of the thread's lane; null: it has none.
    lane: Option<u32>,
    /// Whether earlier steps are left out.
    cut: bool,
    /// Its steps, in order.
    steps: Vec<Step<'p>>,
}

#[derive(Debug, JsonSchema, Serialize)]
struct Step<'p> {
    /// Its beginning, on the host's clock.
    from_ns: u64,
    /// Its end.
    to_ns: u64,
    /// As in parts.
    machine: &'p str,
    /// As in parts.
    thread: &'p str,
    /// As in parts.
    what: String,
    /// Lane of the step's thread; for a vCPU's guest, that of the vCPU; null: it has none.
    lane: Option<u32>,
}

impl<'p> Critical<'p> {
    /// The waits of a report.
    pub(super) fn new(report: &'p CriticalReport, places: &LanePlaces) -> Self {
        let all = &report.critical;
        let others = all.parts.iter().skip(MAX_PARTS).map(|part| part.time_ns);
        Self {
            task: &report.task,
            waited_ns: all.waited_ns(),
            parts: all.parts.iter().take(MAX_PARTS).map(Part::new).collect(),
            others_ns: others.sum(),
            waits: all.longest.iter().map(|wait| Wait::new(wait, places)).collect(),
        }
    }
}

impl<'p> Part<'p> {
    fn new(part: &'p CriticalPart) -> Self {
        Self {
            machine: &part.machine,
            thread: &part.thread,
            state: part.state.name(),
            what: what(part),
            time_ns: part.time_ns,
            count: part.count,
        }
    }
}

/// The state and its cause, in words.
fn what(part: &CriticalPart) -> String {
    let state = words(part.state);
    match (&part.reason, part.state) {
        (None, _) => state.to_owned(),
        // The thread that did it, or the thread ahead in the run queue.
        (Some(who), CriticalState::Preempted | CriticalState::Waiting) => format!("{state} {who}"),
        (Some(reason), _) => format!("{state}: {reason}"),
    }
}

impl<'p> Wait<'p> {
    fn new(wait: &'p CriticalWait, places: &LanePlaces) -> Self {
        Self {
            machine: &wait.machine,
            tid: wait.tid,
            from_ns: wait.from_ns,
            to_ns: wait.to_ns,
            lane: places.of_thread(wait.of_thread),
            cut: wait.is_cut,
            steps: wait.steps.iter().map(|step| Step::new(step, places)).collect(),
        }
    }
}

impl<'p> Step<'p> {
    fn new(step: &'p CriticalStep, places: &LanePlaces) -> Self {
        Self {
            from_ns: step.from_ns,
            to_ns: step.to_ns,
            machine: &step.part.machine,
            thread: &step.part.thread,
            what: what(&step.part),
            lane: step.of_thread.and_then(|thread| places.of_thread(thread)),
        }
    }
}
