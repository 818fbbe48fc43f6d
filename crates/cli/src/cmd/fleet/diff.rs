//! `hyperscope fleet diff`: whether hosts of a lake differ.

use std::process::ExitCode;

use anyhow::bail;
use fleet::{FleetDiff, FleetReport, Question, Row, fleet_diff};
use lake::store::LocalFolder;
use report::plural;

use super::conditions::{Conditions, Number};
use super::found;
use crate::args::fleet::FleetDiffArgs;
use crate::output;

pub(super) fn run(args: &FleetDiffArgs) -> anyhow::Result<ExitCode> {
    let conditions = Conditions::of(&args.fail_if)?;
    let question = Question {
        sides: [args.a.clone(), args.b.clone()],
        control: args.control.clone(),
        strata: args.strata.clone(),
        metrics: conditions.metrics(&args.metric),
        most_lost: args.most_lost,
        alpha: args.alpha,
        seed: args.seed,
    };
    let storage = LocalFolder::open(&args.lake)?;
    let out = output::open(args.output.output.as_deref(), [])?;
    let diff = found(fleet_diff(&storage, question))?;
    for (side, name) in diff.sides.iter().zip(["--a", "--b"]) {
        if side.hosts == 0 {
            bail!("{name}: no session of a known host is so");
        }
    }
    let report = FleetReport { diff, all: args.all };
    output::write(&report, &args.output, out)?;
    let numbers = numbers(&report.diff);
    conditions.conclude(&numbers, &|condition, metric| {
        numbers.iter().any(|one| one.is_asked_for(condition, metric))
    })
}

/// The rows of a comparison, as conditions are held against them.
fn numbers(diff: &FleetDiff) -> Vec<Number<'_>> {
    diff.rows.iter().filter_map(number).collect()
}

fn number(row: &Row) -> Option<Number<'_>> {
    let (a, change) = (row.means[0], row.change?);
    Some(Number {
        reason: row.reason_shown(),
        metric: row.metric,
        values: a.map(|a| (a, a * change.ratio)),
        is_finding: row.is_finding(),
        verdict: verdict(row),
    })
}

fn verdict(row: &Row) -> String {
    let ratio = row.change.map_or(1.0, |change| change.ratio);
    let kind = row.stratum.as_ref().map_or_else(String::new, |kind| format!(" on {kind}"));
    let carried = plural(row.carried_by.len() as u64, "host");
    format!(
        "{} {} is {ratio:.3}x{kind}, carried by {carried}",
        row.reason_shown(),
        row.metric.name()
    )
}
