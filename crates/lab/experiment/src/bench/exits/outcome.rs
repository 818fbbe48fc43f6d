//! What was measured, as it is reported.

use labguest::exitcost::{ExitSource, HandledBy, Kind, Sheet, System};
use serde::Serialize;

use crate::bench::exits::ExitsPlan;
use crate::bench::exits::ladder::Ladders;
use crate::bench::surroundings::Surroundings;

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    schema: &'static str,
    /// Under which conditions.
    pub conditions: Conditions,
    /// One for each place and way.
    pub places: Vec<MeasuredSystem>,
    /// One for each machine in which things were switched.
    pub ablations: Vec<Ladders>,
}

/// Conditions of a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Conditions {
    /// In what. Where instructions are counted, cycles are those.
    #[serde(flatten)]
    pub surroundings: Surroundings,
    /// Runs of each kind.
    pub runs: u32,
    /// How long a run was to take.
    pub run_ms: u64,
    /// Measurements that were made again, because a machine did not answer.
    pub repeated_runs: u32,
}

/// A system on which exits were made, and how.
#[derive(Clone, Debug, Serialize)]
pub struct MeasuredSystem {
    /// Its name in tables.
    pub name: String,
    pub way: ExitSource,
    /// The lab's number of the machine in which the program ran; none outside of a lab.
    pub level: Option<u8>,
    /// What there is to know of the program's system.
    #[serde(flatten)]
    pub system: System,
    /// The empty loop, a turn; taken from all others.
    pub empty_cycles: Option<Spread>,
    /// One row a kind.
    pub rows: Vec<Row>,
}

/// A kind of exits in a place.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub kind: Kind,
    /// What was done.
    pub what: String,
    /// Who did what was asked for; none where no counter shows it.
    pub handled_by: Option<HandledBy>,
    /// Cycles of an operation; none when it was not measured.
    pub cycles: Option<Spread>,
    /// Over the mean of the place's first row.
    pub relative_to_first: Option<f64>,
    /// Over the mean of the same kind in the same way one level above.
    pub relative_to_level_above: Option<f64>,
    /// Operations in a run.
    pub operations: u64,
    /// Operations in all.
    pub made: u64,
    /// Exits for each, by KVM's own counter of the vCPU.
    pub exits_per_operation: Option<f64>,
    /// Returns to the program that has the machine, for each.
    pub user_exits_per_operation: Option<f64>,
    /// Why it was not measured.
    pub not_measured: Option<String>,
}

/// Values of several runs.
#[derive(Clone, Debug, Serialize)]
pub struct Spread {
    pub mean: f64,
    /// Their sample standard deviation; none of one.
    pub sd: Option<f64>,
    /// The least of them.
    pub min: f64,
    /// Each run's.
    pub runs: Vec<f64>,
}

impl Spread {
    /// Of at least one value.
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
    /// The mean, where it was measured.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        self.cycles.as_ref().map(|cycles| cycles.mean)
    }
}

fn ratio(numerator: Option<f64>, to: Option<f64>) -> Option<f64> {
    numerator.zip(to).filter(|&(_, to)| to > 0.0).map(|(numerator, to)| numerator / to)
}

impl Outcome {
    /// Sets places in the order given against each other: each against the one before it that was
    /// measured in the same way.
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
