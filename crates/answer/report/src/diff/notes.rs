//! Notes for judging a comparison.

use analyses::diff::{DiffRow, KeyValue, Unit};
use printable::line;

use super::words::metric_of;
use super::{DiffReport, moved};
use crate::units::plural;

fn is_of_vm(row: &DiffRow) -> bool {
    row.key.iter().any(|value| matches!(value, KeyValue::Vm(_)))
}

pub(super) fn notes(report: &DiffReport) -> Vec<String> {
    let diff = &report.diff;
    let mut notes: Vec<String> =
        moved::notes(diff).iter().map(|note| line(note).into_owned()).collect();
    notes.extend(moved::functions(diff));
    for (name, other) in &diff.renamed {
        notes.push(format!("{} and {} are treated as the same VM", line(name), line(other)));
    }
    let is_rate = |row: &&DiffRow| {
        metric_of(diff, row).is_some_and(|metric| metric.unit == Unit::TimePerSecond)
    };
    if diff.nanoseconds && diff.rows.iter().any(|row| is_rate(&row)) {
        let base = match diff.question.name {
            "path" => "the time that passed",
            // Sampled machines without VMs.
            "profile" if !diff.rows.iter().any(is_of_vm) => "a CPU's time",
            _ => "a vCPU's time",
        };
        notes.push(format!("time per second (…_ns_per_s) is in percent of {base}"));
    }
    if report.is_within_runs() {
        notes.push(
            "one run per side: intervals cover the variation within a run, but not from run to run; give several runs of each \
             side (A1 A2 A3 -- B1 B2 B3)"
                .to_owned(),
        );
    }
    if let Some(min) = diff.least_p.filter(|min| *min > diff.options.alpha) {
        notes.push(format!(
            "with so few runs, a permutation test cannot give a p below {min:.2}: p is from Welch's test, which assumes that \
             runs are normally distributed"
        ));
    }
    let (few_a, few_b) = (diff.runs.0 < 3, diff.runs.1 < 3);
    if !report.is_within_runs() && (few_a || few_b) {
        let sides = if few_a && few_b {
            "both sides have"
        } else if few_a {
            "A has"
        } else {
            "B has"
        };
        notes.push(format!(
            "{sides} fewer than three runs: both sides are assumed to have the same variance"
        ));
    }
    for (name, lost) in [("A", diff.lost.0), ("B", diff.lost.1)] {
        let events = (lost.events > 0).then(|| plural(lost.events, "event"));
        let places = (lost.places > 0)
            .then(|| format!("{} that could not be read", plural(lost.places, "place")));
        let parts: Vec<String> = events.into_iter().chain(places).collect();
        if !parts.is_empty() {
            notes.push(format!(
                "{name} lost {}: its counts are too low, and its times cover only the remaining events",
                parts.join(" and ")
            ));
        }
    }
    if diff.rows.is_empty() {
        notes.push("neither side has data for this report".to_owned());
    }
    notes
}
