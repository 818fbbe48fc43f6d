//! The cause of a dumped session, and its figures: `why.json` and `why.txt` in it.

use live::{Change, Changes, ExitFigures, ReasonOf};
use printable::line;
use recorder::flight::{Dumped, Trigger, TriggerKind};
use schemars::JsonSchema;
use serde::Serialize;

/// The document's name and version.
const SCHEMA: &str = "hyperscope.flight_why/1";
/// Maximum number of exits that are listed: the most expensive.
const MAX_EXITS: usize = 20;
/// Share of time waiting for a CPU from which an increase is reported.
const MUCH_WAITING: f64 = 0.05;

/// why.json in a session that a flight recorder dumped: the trigger, figures before and at it, the finding in
/// words. See docs/flight.md.
#[derive(JsonSchema, Serialize)]
struct Document<'w> {
    schema: &'static str,
    /// The cause of the dump.
    trigger: &'w Trigger,
    /// Live figures. Null: there were none before the trigger.
    figures: Option<Figures<'w>>,
    /// Sentences.
    #[schemars(extend("minItems" = 1))]
    finding: &'w [String],
    /// Commands that show more, for the folder with the session.
    commands: &'w [String],
}

/// Live figures. Null: there were none before the trigger.
#[derive(JsonSchema, Serialize)]
struct Figures<'w> {
    /// Length of the interval before the trigger.
    before_ns: u64,
    /// Length of the interval at the trigger.
    at_ns: u64,
    /// By VM.
    run_queue: Vec<ChangedWaits<'w>>,
    /// Exits except waiting ones, the most expensive first; at most 20.
    exits: Vec<ChangedExits<'w>>,
}

/// Shares of time in which the VM's vCPUs waited for a CPU.
#[derive(JsonSchema, Serialize)]
struct ChangedWaits<'w> {
    /// The VM.
    vm: &'w str,
    /// Before the trigger. Null: the VM did not exist.
    #[schemars(extend("minimum" = 0))]
    before: Option<f64>,
    /// At the trigger. Null: the VM no longer existed.
    #[schemars(extend("minimum" = 0))]
    at: Option<f64>,
}

/// Exits of a VM, level and reason.
#[derive(JsonSchema, Serialize)]
struct ChangedExits<'w> {
    /// The VM.
    vm: &'w str,
    /// 1: a guest of this host; 2: a guest inside those.
    level: u8,
    /// The kernel's name.
    reason: &'w str,
    /// Exits in that time. Null: there were none.
    before: Option<ExitsThen>,
    /// Exits in that time. Null: there were none.
    at: Option<ExitsThen>,
}

/// Exits in that time. Null: there were none.
#[derive(JsonSchema, Serialize)]
struct ExitsThen {
    /// Exits per second.
    #[schemars(extend("minimum" = 0))]
    per_s: f64,
    /// CPU time for handling them, per second.
    #[schemars(extend("minimum" = 0))]
    cost_ns_per_s: f64,
    /// Median of times from exit to entry, by a histogram. Null: none has an entry.
    p50_ns: Option<u64>,
    /// Their 99th percentile.
    p99_ns: Option<u64>,
}

/// The two files' contents.
pub(super) fn files(
    dumped: &Dumped,
    trigger: &Trigger,
    changes: Option<&Changes>,
) -> [(&'static str, Vec<u8>); 2] {
    let finding = finding(trigger, changes);
    let session = dumped.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let commands = commands(&session, changes);
    let figures = changes.map(Figures::new);
    let document =
        Document { schema: SCHEMA, trigger, figures, finding: &finding, commands: &commands };
    // Writing into memory cannot fail, and keys are strings.
    let json = serde_json::to_string_pretty(&document).unwrap_or_default() + "\n";
    let mut text = format!("{}\n\n", line(&headline(trigger)));
    for sentence in &finding {
        text.push_str(&format!("{}\n", line(sentence)));
    }
    text.push_str(
        "\nTo investigate further, run these commands in the folder that holds this session:\n",
    );
    for command in &commands {
        text.push_str(&format!("  {}\n", line(command)));
    }
    [("why.json", json.into_bytes()), ("why.txt", text.into_bytes())]
}

fn headline(trigger: &Trigger) -> String {
    let text = trigger.text.as_deref().filter(|text| !text.is_empty());
    let with_text =
        |what: &str| text.map_or_else(|| what.to_owned(), |text| format!("{what}: {text}"));
    match trigger.kind {
        TriggerKind::Signal => with_text("dumped at SIGUSR1"),
        TriggerKind::Command => with_text("dumped by hyperscope flight dump"),
        TriggerKind::Condition => with_text("a condition held"),
        TriggerKind::Alert => with_text("an alert fired"),
    }
}

/// Sentences.
fn finding(trigger: &Trigger, changes: Option<&Changes>) -> Vec<String> {
    let Some(changes) = changes else {
        return vec![
            "There are no live figures from before the trigger (--when, --alerts): look at the session itself."
                .to_owned(),
        ];
    };
    let vm = trigger.vm.as_deref();
    let mut sentences = Vec::new();
    for (vm_name, change) in &changes.run_queue {
        let (before, at) = (change.before.unwrap_or(0.0), change.at.unwrap_or(0.0));
        if vm.is_none_or(|vm| vm == vm_name) && at >= MUCH_WAITING && at > before {
            sentences.push(format!(
                "{vm_name}: the vCPUs waited for a CPU {:.1}% of the time, {:.1}% before: other threads used the CPUs.",
                at * 100.0,
                before * 100.0
            ));
        }
    }
    if let Some(((vm_name, level, reason), change)) = changes.most_grown(vm) {
        sentences.push(grown(vm_name, *level, reason, change));
    }
    if sentences.is_empty() {
        sentences.push(
            "Neither the cost of an exit nor the waits for CPUs grew in the live figures."
                .to_owned(),
        );
    }
    sentences
}

fn grown(vm: &str, level: u8, reason: &str, change: &Change<ExitFigures>) -> String {
    let nested = if level > 1 { format!(" of level {level}") } else { String::new() };
    let Some(at) = &change.at else { return String::new() };
    let now =
        format!("{:.0} per second, {:.2}% of a CPU, p99 {}", at.per_s, share(at), time(at.p99_ns));
    match &change.before {
        Some(before) => format!(
            "{vm}: the cost of {reason}{nested} grew most: {now}; before: {:.0} per second, {:.2}% of a CPU, p99 {}.",
            before.per_s,
            share(before),
            time(before.p99_ns)
        ),
        None => format!("{vm}: {reason}{nested} is new: {now}; before, there was none."),
    }
}

/// Percent of a CPU.
fn share(figures: &ExitFigures) -> f64 {
    figures.cost_ns_per_s / 1e7
}

#[allow(clippy::cast_precision_loss, reason = "shown with one decimal")]
fn time(ns: Option<u64>) -> String {
    ns.map_or_else(|| "unknown".to_owned(), |ns| format!("{:.1} us", ns as f64 / 1e3))
}

/// Commands that show more, for a shell in the folder with the session.
fn commands(session: &str, changes: Option<&Changes>) -> Vec<String> {
    let waits = changes.is_some_and(|changes| {
        changes.run_queue.values().any(|change| change.at.unwrap_or(0.0) >= MUCH_WAITING)
    });
    let exits = format!("hyperscope exits {session}");
    let cpu = format!("hyperscope cpu {session}");
    let report = format!("hyperscope report {session}");
    if waits { vec![cpu, exits, report] } else { vec![exits, cpu, report] }
}

impl<'w> Figures<'w> {
    fn new(changes: &'w Changes) -> Self {
        let mut exits: Vec<_> = changes.exits.iter().collect();
        exits.sort_by(|(_, a), (_, b)| cost(b).total_cmp(&cost(a)));
        let exit =
            |((vm, level, reason), change): (&'w ReasonOf, &'w Change<ExitFigures>)| ChangedExits {
                vm,
                level: *level,
                reason,
                before: change.before.as_ref().map(ExitsThen::new),
                at: change.at.as_ref().map(ExitsThen::new),
            };
        let waits = changes.run_queue.iter();
        Self {
            before_ns: changes.before_ns,
            at_ns: changes.at_ns,
            run_queue: waits
                .map(|(vm, change)| ChangedWaits { vm, before: change.before, at: change.at })
                .collect(),
            exits: exits.into_iter().take(MAX_EXITS).map(exit).collect(),
        }
    }
}

/// The greater cost of exits, before or then.
fn cost(change: &Change<ExitFigures>) -> f64 {
    let cost = |figures: &Option<ExitFigures>| {
        figures.as_ref().map_or(0.0, |figures| figures.cost_ns_per_s)
    };
    cost(&change.at).max(cost(&change.before))
}

impl ExitsThen {
    fn new(figures: &ExitFigures) -> Self {
        let ExitFigures { per_s, cost_ns_per_s, p50_ns, p99_ns } = *figures;
        Self { per_s, cost_ns_per_s, p50_ns, p99_ns }
    }
}

#[cfg(test)]
mod tests {
    use testkit::{PublishedSchema, assert_published};

    use super::*;

    #[test]
    fn its_schema_is_published() {
        assert_published::<Document<'_>>(&PublishedSchema::new("flight_why").closed());
    }
}
