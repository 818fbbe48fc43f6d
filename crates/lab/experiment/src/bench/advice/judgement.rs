//! What was measured, held against what was predicted.

use serde::Serialize;

use super::AdvicePlan;
use super::prediction::{Prediction, median};
use super::recorded::AdvisedRun;
use super::switches::Switch;
use crate::bench::surroundings::Surroundings;

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// `hyperscope.bench-advice/1`.
    pub schema: &'static str,
    /// Under which conditions.
    pub conditions: Conditions,
    /// One row a switch and workload.
    pub rows: Vec<Row>,
}

/// Under which conditions it was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Conditions {
    /// The system.
    #[serde(flatten)]
    pub surroundings: Surroundings,
    /// Pairs of runs.
    pub runs: u32,
    /// What the order of sides was drawn from.
    pub seed: u64,
    /// Runs that were made again, because a machine did not answer.
    pub repeated_runs: u32,
    /// Whether predictions were read from a file, made before these runs.
    pub predicted_before: bool,
}

/// A switch and a workload.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What is predicted.
    #[serde(flatten)]
    pub prediction: Prediction,
    /// What was measured; none where only predictions were asked for.
    pub measured: Option<Measured>,
}

/// What both sides took.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The share that B takes less than A, of the medians.
    pub saved: f64,
    /// Whether that is as predicted.
    pub holds: bool,
    /// What each run of side A took of the whole, in nanoseconds.
    pub a_ns: Vec<f64>,
    /// The same of side B.
    pub b_ns: Vec<f64>,
    /// Exits of side A: the median of runs.
    pub a_exits: f64,
    /// Exits of side B.
    pub b_exits: f64,
}

impl Conditions {
    pub(super) fn new(plan: &AdvicePlan, repeated_runs: u32, surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            runs: plan.runs,
            seed: plan.seed,
            repeated_runs,
            predicted_before: plan.predicted.is_some(),
        }
    }
}

impl Outcome {
    pub(super) const fn new(conditions: Conditions, rows: Vec<Row>) -> Self {
        Self { schema: "hyperscope.bench-advice/1", conditions, rows }
    }

    /// Rows whose savings are as predicted, and all that were measured: of those of which advice speaks, or is silent.
    #[must_use]
    pub fn held(&self, speaks: bool) -> (usize, usize) {
        let rows = self.rows.iter().filter(|row| row.prediction.speaks == speaks);
        let all: Vec<bool> = rows.filter_map(|row| Some(row.measured.as_ref()?.holds)).collect();
        (all.iter().filter(|&&holds| holds).count(), all.len())
    }
}

impl Row {
    pub(super) const fn predicted(prediction: Prediction) -> Self {
        Self { prediction, measured: None }
    }

    pub(super) fn measured(prediction: Prediction, a: &[AdvisedRun], b: &[AdvisedRun]) -> Self {
        let saving = Switch::named(&prediction.switch).map(Switch::saving_of);
        let whole_ns_of = |runs: &[AdvisedRun]| -> Vec<f64> {
            let ns = |run: &AdvisedRun| saving.map_or(0, |saving| run.whole_ns(saving)) as f64;
            runs.iter().map(ns).collect()
        };
        let exits =
            |runs: &[AdvisedRun]| median(runs.iter().map(|run| run.spent.exits as f64).collect());
        let (a_ns, b_ns) = (whole_ns_of(a), whole_ns_of(b));
        let saved = 1.0 - median(b_ns.clone()) / median(a_ns.clone()).max(1.0);
        let holds = prediction.holds(saved);
        let (a_exits, b_exits) = (exits(a), exits(b));
        let measured = Measured { saved, holds, a_ns, b_ns, a_exits, b_exits };
        Self { prediction, measured: Some(measured) }
    }

    pub(super) fn line(&self) -> String {
        let Some(measured) = &self.measured else { return self.prediction.line() };
        let saved = measured.saved * 100.0;
        let how = if measured.holds { "as predicted" } else { "differs from the prediction" };
        format!("{}; measured: {saved:.1}%, {how}", self.prediction.line())
    }
}
