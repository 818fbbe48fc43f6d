//! Compares measurements with predictions.

use serde::Serialize;

use super::AdvicePlan;
use super::prediction::{Prediction, median};
use super::recorded::AdvisedRun;
use super::switches::Switch;
use crate::bench::surroundings::Surroundings;

/// The outcome.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// `hyperscope.bench-advice/1`.
    pub schema: &'static str,
    pub conditions: Conditions,
    /// One row per switch and workload.
    pub rows: Vec<Row>,
}

/// Conditions of the measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Conditions {
    /// The system.
    #[serde(flatten)]
    pub surroundings: Surroundings,
    /// Number of pairs of runs.
    pub runs: u32,
    /// Seed of the order of sides.
    pub seed: u64,
    /// Number of runs that were repeated because a machine did not answer.
    pub repeated_runs: u32,
    /// Whether predictions were read from a file that was written before these runs.
    pub predicted_before: bool,
}

/// A switch and a workload.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The prediction.
    #[serde(flatten)]
    pub prediction: Prediction,
    /// The measurements; `None` if only predictions were requested.
    pub measured: Option<Measured>,
}

/// Measurements of both sides.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Share that B saves relative to A, from medians.
    pub saved: f64,
    /// Whether that matches the prediction.
    pub holds: bool,
    /// Time of each run of side A, in nanoseconds.
    pub a_ns: Vec<f64>,
    /// Time of each run of side B, in nanoseconds.
    pub b_ns: Vec<f64>,
    /// Exits of side A: the median of runs.
    pub a_exits: f64,
    /// Exits of side B: the median of runs.
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

    /// Number of rows with predicted savings, and of all measured rows, with or without advice.
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
