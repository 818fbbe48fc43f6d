//! `hyperscope fleet since`: finds the day on which numbers of a fleet changed.

use std::process::ExitCode;

use anyhow::bail;
use fleet::{FleetSince, LevelChange, SinceQuestion, SinceReport, fleet_since};
use report::plural;

use super::conditions::{Conditions, Number, is_about};
use super::found;
use crate::args::fleet::FleetSinceArgs;
use crate::lake_place;
use command::output;

pub(super) fn run(args: &FleetSinceArgs) -> anyhow::Result<ExitCode> {
    let conditions = Conditions::new(&args.fail_if)?;
    let question = SinceQuestion {
        selection: args.selection.clone(),
        strata: args.strata.clone(),
        metrics: conditions.metrics(&args.metric),
        step_days: args.step,
        most_lost: args.most_lost,
        alpha: args.alpha,
    };
    let storage = lake_place::open(&args.lake)?;
    let out = output::open(args.output.output.as_deref(), [])?;
    let since = found(fleet_since(&storage, question))?;
    if since.hosts == 0 {
        bail!(
            "no usable session has a known host and day: hyperscope lake list shows all sessions"
        );
    }
    if since.series == 0 {
        bail!("{}", too_short(&since));
    }
    let report = SinceReport { since };
    output::write(&report, &args.output, out)?;
    let numbers: Vec<Number<'_>> = report.since.changes.iter().map(number).collect();
    conditions.conclude(&numbers, &|condition, metric| {
        let mut known = report.since.looked_at.iter();
        known.any(|(reason, known_metric)| *known_metric == metric && is_about(condition, reason))
    })
}

fn too_short(since: &FleetSince) -> String {
    let steps = match since.question.step_days {
        1 => plural(u64::from(since.steps), "day"),
        days => format!("{} of {days} days", plural(u64::from(since.steps), "step")),
    };
    format!(
        "{} in {steps}: a change shows where four or more of them have three hosts with ten exits of one kind each",
        plural(since.hosts as u64, "host")
    )
}

/// A change, for conditions.
fn number(change: &LevelChange) -> Number<'_> {
    Number {
        reason: change.reason_shown(),
        metric: change.metric,
        values: Some((change.before, change.after)),
        is_finding: change.is_finding(),
        verdict: verdict(change),
    }
}

fn verdict(change: &LevelChange) -> String {
    let kind = change.stratum.as_ref().map_or_else(String::new, |(_, kind)| format!(" on {kind}"));
    format!(
        "{} {} is {:.3}x{kind} since {}, carried by {}",
        change.reason_shown(),
        change.metric.name(),
        change.ratio,
        change.day,
        plural(change.carried_by.len() as u64, "host")
    )
}
