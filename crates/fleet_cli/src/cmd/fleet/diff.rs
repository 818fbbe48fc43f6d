//! `hyperscope fleet diff`: compares hosts of a lake, as tables, documents or a page.

use std::process::ExitCode;

use anyhow::{Context, bail};
use fleet::lake::store::Lake;
use fleet::{
    FleetDiff, FleetPage, FleetReport, Metric, Question, Row, SinceQuestion, SinceReport,
    fleet_diff, fleet_since,
};
use report::plural;

use super::conditions::{Conditions, Number};
use super::found;
use crate::args::fleet::FleetDiffArgs;
use crate::lake_place;
use command::output::{self, Output};

pub(super) fn run(args: &FleetDiffArgs) -> anyhow::Result<ExitCode> {
    let conditions = Conditions::new(&args.fail_if)?;
    let question = Question {
        sides: [args.a.clone(), args.b.clone()],
        control: args.control.clone(),
        strata: args.strata.clone(),
        metrics: conditions.metrics(&args.metric),
        most_lost: args.most_lost,
        alpha: args.alpha,
        seed: args.seed,
        per_host: args.output.is_page(),
    };
    let storage = lake_place::open(&args.lake)?;
    let out = output::open_page(args.output.output.as_deref(), args.output.is_page(), [])?;
    let diff = found(fleet_diff(&storage, question))?;
    for (side, name) in diff.sides.iter().zip(["--a", "--b"]) {
        if side.hosts == 0 {
            bail!("{name}: no session of a known host meets this condition");
        }
    }
    let mut report = FleetReport { diff, all: args.all };
    if args.output.is_page() {
        report = write_page(args, &storage, report, out)?;
    } else {
        output::write(&report, &args.output, out)?;
    }
    let numbers = numbers(&report.diff);
    conditions.conclude(&numbers, &|condition, metric| {
        numbers.iter().any(|number| number.is_asked_for(condition, metric))
    })
}

/// Writes the page of a comparison, with the same sessions day by day.
fn write_page(
    args: &FleetDiffArgs,
    storage: &Lake,
    diff: FleetReport,
    mut out: Output,
) -> anyhow::Result<FleetReport> {
    let metrics: Vec<Metric> = diff.diff.question.metrics.clone();
    let question = SinceQuestion {
        selection: Some(args.a.or(&args.b)),
        strata: vec![args.strata.clone()],
        metrics,
        step_days: 1,
        most_lost: args.most_lost,
        alpha: args.alpha,
    };
    let since = SinceReport { since: found(fleet_since(storage, question))? };
    let folder = args.lake.canonicalize().unwrap_or_else(|_| args.lake.clone());
    let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
    let page = FleetPage { title: name, diff, since };
    page.write(&mut out).context("cannot write the page")?;
    out.complete()?;
    Ok(page.diff)
}

/// The rows of a comparison, for conditions.
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
