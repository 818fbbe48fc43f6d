//! What a task waited for, as the page carries it: added up, and its longest waits with the lanes of their steps.

use analyses::critical::{CriticalPart, CriticalState, CriticalStep, CriticalWait};
use analyses::lanes::LanePlaces;
use serde_json::{Value, json};

use crate::CriticalReport;
use crate::critical::words;

/// Parts that a page shows: those that took longest.
const MOST_PARTS: usize = 100;

/// What was waited for.
pub(super) fn json(report: &CriticalReport, places: &LanePlaces) -> Value {
    let all = &report.critical;
    let parts = all.parts.iter().take(MOST_PARTS);
    let others = all.parts.iter().skip(MOST_PARTS).map(|part| part.time_ns);
    json!({
        "task": report.task,
        "waited_ns": all.waited_ns(),
        "parts": parts.map(part).collect::<Vec<_>>(),
        "others_ns": others.sum::<u64>(),
        "waits": all.longest.iter().map(|one| wait(one, places)).collect::<Vec<_>>(),
    })
}

fn part(part: &CriticalPart) -> Value {
    json!({
        "machine": part.machine,
        "thread": part.thread,
        "state": part.state.name(),
        "what": what(part),
        "time_ns": part.time_ns,
        "count": part.count,
    })
}

/// What it did and why, in words.
fn what(part: &CriticalPart) -> String {
    let state = words(part.state);
    match (&part.reason, part.state) {
        (None, _) => state.to_owned(),
        // By whom, or behind whom.
        (Some(who), CriticalState::Preempted | CriticalState::Waiting) => format!("{state} {who}"),
        (Some(reason), _) => format!("{state}: {reason}"),
    }
}

fn wait(wait: &CriticalWait, places: &LanePlaces) -> Value {
    let step = |step: &CriticalStep| {
        json!({
            "from_ns": step.from_ns,
            "to_ns": step.to_ns,
            "machine": step.part.machine,
            "thread": step.part.thread,
            "what": what(&step.part),
            "lane": step.of_thread.and_then(|thread| places.of_thread(thread)),
        })
    };
    json!({
        "machine": wait.machine,
        "tid": wait.tid,
        "from_ns": wait.from_ns,
        "to_ns": wait.to_ns,
        "lane": places.of_thread(wait.of_thread),
        "cut": wait.is_cut,
        "steps": wait.steps.iter().map(step).collect::<Vec<_>>(),
    })
}
