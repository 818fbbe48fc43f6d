//! `hyperscope bench advice`: checks whether suggestions of advice save what they predict.

use std::fs;
use std::path::Path;

use anyhow::Context;
use experiment::bench::advice::{AdvicePlan, Prediction, SWITCHES};
use serde::Deserialize;

use crate::args::bench::BenchAdviceArgs;
use command::output;

use super::{in_lab, now};

/// The part of `--predict`'s output that is read again.
#[derive(Debug, Deserialize)]
struct Predicted {
    rows: Vec<Prediction>,
}

/// Measures, and prints the results.
///
/// # Errors
/// When the predictions can't be read, the lab is not available, or something in it fails.
pub(crate) fn run(args: &BenchAdviceArgs) -> anyhow::Result<()> {
    let predicted = args.against.as_deref().map(read).transpose()?;
    let out = output::open(args.output.output.as_deref(), [])?;
    let is_requested =
        |name: &str| args.switches.is_empty() || args.switches.iter().any(|switch| switch == name);
    let is_predicted = |name: &str| {
        predicted.as_ref().is_none_or(|all| all.iter().any(|prediction| prediction.switch == name))
    };
    let switches =
        SWITCHES.iter().filter(|switch| is_requested(switch.name) && is_predicted(switch.name));
    let plan = AdvicePlan {
        switches: switches.collect(),
        runs: args.runs,
        seed: args.seed.unwrap_or_else(now),
        predicts_only: args.predict,
        predicted: predicted.clone(),
    };
    let options = experiment::bench::up_options(true, args.offline);
    let outcome = in_lab(&experiment::bench::advice::description(), &options, |lab, report| {
        experiment::bench::advice::run(&plan, lab, report)
    })?;
    output::write(&outcome, &args.output, out)
}

fn read(file: &Path) -> anyhow::Result<Vec<Prediction>> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let predicted: Predicted = serde_json::from_str(&text).with_context(|| {
        format!("{} was not written by `bench advice --predict --format json`", file.display())
    })?;
    Ok(predicted.rows)
}
