//! The results of a measurement of exits.

use labguest::exitcost::{ExitSource, HandledBy, Kind, Sheet, System};
use serde::Serialize;

use crate::bench::exits::ExitsPlan;
use crate::bench::exits::ladder::Ladders;
use crate::bench::surroundings::Surroundings;

/// All results.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    schema: &'static str,
    pub conditions: Conditions,
    /// One per system and way.
    pub places: Vec<MeasuredSystem>,
    /// One per machine in which settings were changed.
    pub ablations: Vec<Ladders>,
}

/// Conditions of a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Conditions {
    /// The system. If instructions are counted, cycles are instructions.
    #[serde(flatten)]
    pub surroundings: Surroundings,
    /// Runs of each kind.
    pub runs: u32,
    /// Approximate length of a run.
    pub run_ms: u64,
    /// Number of measurements that were repeated because a machine did not answer.
    pub repeated_runs: u32,
}

/// A measured system, and the way of causing exits.
#[derive(Clone, Debug, Serialize)]
pub struct MeasuredSystem {
    /// Its name in tables.
    pub name: String,
    pub way: ExitSource,
    /// The level of the machine that ran the program; `None` outside of a lab.
    pub level: Option<u8>,
    /// Facts about the program's system.
    #[serde(flatten)]
    pub system: System,
    /// An iteration of the empty loop; subtracted from all others.
    pub empty_cycles: Option<Spread>,
    /// One row per kind.
    pub rows: Vec<Row>,
}

/// A kind of exit on a system.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub kind: Kind,
    /// The exact operation.
    pub what: String,
    /// What handled the operation; `None` if no counter shows it.
    pub handled_by: Option<HandledBy>,
    /// Cycles per operation; `None` if not measured.
    pub cycles: Option<Spread>,
    /// Ratio to the mean of the system's first row.
    pub relative_to_first: Option<f64>,
    /// Ratio to the mean of the same kind, caused in the same way, one level above.
    pub relative_to_level_above: Option<f64>,
    /// Operations per run.
    pub operations: u64,
    /// Total operations.
    pub made: u64,
    /// Exits per operation, by KVM's counter of the vCPU.
    pub exits_per_operation: Option<f64>,
    /// Returns to the VMM per operation.
    pub user_exits_per_operation: Option<f64>,
    /// Why it was not measured.
    pub not_measured: Option<String>,
}

/// Values of several runs.
#[derive(Clone, Debug, Serialize)]
pub struct Spread {
    pub mean: f64,
    /// Their sample standard deviation; `None` for one run.
    pub sd: Option<f64>,
    /// The minimum.
    pub min: f64,
    /// The value of each run.
    pub runs: Vec<f64>,
}

impl Spread {
    /// From at least one value.
    pub(crate) fn from_runs(runs: Vec<f64>) -> Option<Self> {
        let mean = stats::mean(&runs)?;
        let min = runs.iter().copied().reduce(f64::min)?;
        Some(Self { mean, sd: stats::standard_deviation(&runs), min, runs })
    }
}

impl Conditions {
    pub(crate) fn new(plan: &ExitsPlan, repeated_runs: u32, surroundings: Surroundings) -> Self {
        let run_ms = u64::try_from(plan.run.as_millis()).unwrap_or(u64::MAX);
        Self { surroundings: surroundings.end(), runs: plan.runs, run_ms, repeated_runs }
    }
}

impl MeasuredSystem {
    pub(crate) fn new(name: String, level: Option<u8>, sheet: Sheet) -> Self {
        let rows = sheet.rows.into_iter().map(|row| Row {
            kind: row.kind,
            what: row.what,
            handled_by: row.handled_by,
            cycles: Spread::from_runs(row.cycles),
            relative_to_first: None,
            relative_to_level_above: None,
            operations: row.operations,
            made: row.made,
            exits_per_operation: row.exits_per_operation,
            user_exits_per_operation: row.user_exits_per_operation,
            not_measured: row.not_measured,
        });
        let mut rows: Vec<Row> = rows.collect();
        let first = rows.first().and_then(Row::mean);
        for row in &mut rows {
            row.relative_to_first = ratio(row.mean(), first);
        }
        Self {
            name,
            way: sheet.way,
            level,
            system: sheet.system,
            empty_cycles: Spread::from_runs(sheet.empty_cycles),
            rows,
        }
    }

    #[must_use]
    pub fn row(&self, kind: Kind) -> Option<&Row> {
        self.rows.iter().find(|row| row.kind == kind)
    }
}

impl Row {
    /// The mean, if measured.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        self.cycles.as_ref().map(|cycles| cycles.mean)
    }
}

fn ratio(numerator: Option<f64>, to: Option<f64>) -> Option<f64> {
    numerator.zip(to).filter(|&(_, to)| to > 0.0).map(|(numerator, to)| numerator / to)
}

impl Outcome {
    /// Compares each system with the previous one that was measured in the same way.
    pub(crate) fn new(
        conditions: Conditions,
        mut places: Vec<MeasuredSystem>,
        ablations: Vec<Ladders>,
    ) -> Self {
        for at in 1..places.len() {
            let (before, rest) = places.split_at_mut(at);
            let Some(place) = rest.first_mut() else { break };
            let Some(above) = before.iter().rev().find(|above| above.way == place.way) else {
                continue;
            };
            for row in &mut place.rows {
                row.relative_to_level_above =
                    ratio(row.mean(), above.row(row.kind).and_then(Row::mean));
            }
        }
        Self { schema: "hyperscope.bench-exits/1", conditions, places, ablations }
    }
}
