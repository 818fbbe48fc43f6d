//! What a task waited for, as the page carries it: added up, and its longest waits with the lanes of their steps.

use analyses::critical::{CriticalPart, CriticalState, CriticalStep, CriticalWait};
use analyses::lanes::LanePlaces;
use schemars::JsonSchema;
use serde::Serialize;

use crate::CriticalReport;
use crate::critical::words;

/// Parts that a page shows: those that took longest.
const MAX_PARTS: usize = 100;

/// What a task waited for (`--critical`); null: that was not asked.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Critical<'p> {
    /// As it was asked for.
    task: &'p str,
    /// How long its threads waited: the times of all parts, and others_ns.
    waited_ns: u64,
    /// What for, the longest first: 100 at most.
    parts: Vec<Part<'p>>,
    /// The time of further parts.
    others_ns: u64,
    /// The longest waits.
    waits: Vec<Wait<'p>>,
}

#[derive(Debug, JsonSchema, Serialize)]
struct Part<'p> {
    /// host, or the name of a VM.
    machine: &'p str,
    /// The thread; interrupt for none.
    thread: &'p str,
    /// What it did, as critical.schema.json has it.
    state: &'static str,
    /// The same with the reason, in words.
    what: String,
    /// How long.
    time_ns: u64,
    /// In how many intervals.
    count: u64,
}

#[derive(Debug, JsonSchema, Serialize)]
struct Wait<'p> {
    /// The machine of the thread that waited.
    machine: &'p str,
    /// Its id.
    tid: u32,
    /// When it began to wait, on the host's clock.
    from_ns: u64,
    /// When it went on.
    to_ns: u64,
    /// Place in timeline.lanes of its lane; null: it has none.
    lane: Option<u32>,
    /// There are more steps before these.
    cut: bool,
    /// What it waited for, in order.
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
    /// Of the thread that this is about, of a vCPU's guest the vCPU's; null: it has none.
    lane: Option<u32>,
}

impl<'p> Critical<'p> {
    /// What was waited for.
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

/// What it did and why, in words.
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
