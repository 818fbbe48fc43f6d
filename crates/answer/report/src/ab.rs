//! The report of `hyperscope ab`: each metric under both configurations, and every run.

mod columns;
mod page;

use std::collections::BTreeMap;

use analyses::ab::{Ab, AbFailure, AbMetric, AbRun, AbSide};
use printable::line;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use self::columns::{Row, TABLE, columns};
use crate::Report;
use crate::column::{self, Rows};
use crate::table::Table;
use crate::units::{plural, time};

/// Cells of a line of points.
const POINTS: usize = 60;

/// A workload under some configurations.
#[derive(Debug)]
pub struct AbReport {
    /// The setups of A and of the other configurations.
    pub setups: Vec<String>,
    /// The command that ran.
    pub workload: Vec<String>,
    /// Seed of the random order.
    pub seed: u64,
    /// The numbers.
    pub ab: Ab,
    /// The workload's main metric, as an index into the values of a run; its runs are drawn.
    pub main_metric: usize,
}

impl Report for AbReport {
    fn headline(&self) -> String {
        let blocks = plural(self.ab.blocks() as u64, "block");
        let workload = line(&self.workload.join(" ")).into_owned();
        let main: Vec<String> =
            self.ab.comparisons(self.main_metric).map(|metric| self.changed(metric)).collect();
        if main.is_empty() {
            return format!("{workload}: nothing was measured in {blocks}.");
        }
        format!("{workload}: in {blocks} with one run per configuration, {}.", main.join("; "))
    }

    fn tables(&self, width: Option<usize>) -> String {
        let mut out = String::new();
        for (side, setup) in self.sides() {
            out += &format!("{}: {}\n", capital(side), line(shown(setup)));
        }
        out.push('\n');
        let mut table = Table::default();
        column::draw(&columns(self.ab.sides), &mut table, TABLE, &self.rows());
        out += &table.draw(width).0;
        out += &self.points();
        for note in self.notes() {
            out += &format!("\n{note}");
        }
        out + "\n"
    }

    fn document(&self) -> impl Serialize {
        let configuration = |(side, setup): (AbSide, &'_ String)| Configuration {
            name: side.name(),
            setup: setup.clone(),
        };
        Document {
            schema: "hyperscope.ab/1",
            workload: &self.workload,
            seed: self.seed,
            interrupted: self.ab.is_interrupted,
            ended_by: self.ab.ended_by.as_deref(),
            failures: self.ab.failures.iter().map(Failure::new).collect(),
            configurations: self.sides().map(configuration).collect(),
            metrics: Rows { columns: columns(self.ab.sides), rows: self.rows() },
            runs: self.ab.runs.iter().enumerate().map(|run| self.run(run)).collect(),
        }
    }

    fn csv(&self) -> Table {
        column::csv(&columns(self.ab.sides), &self.rows(), &[true])
    }
}

/// The setup of a configuration for display.
fn shown(setup: &str) -> &str {
    if setup.is_empty() { "(as it is)" } else { setup }
}

/// Output of `hyperscope ab --format json`: a workload under two or more configurations. See docs/ab.md.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r> {
    schema: &'static str,
    /// The command that was timed.
    workload: &'r [String],
    /// Seed of the random order.
    seed: u64,
    /// Whether it was interrupted: then only complete blocks are included.
    interrupted: bool,
    /// The failed run that ended it, with the error; only complete blocks are included. Null: no run failed.
    ended_by: Option<&'r str>,
    /// Failed runs, if failures are ignored (--ignore-failures).
    failures: Vec<Failure<'r>>,
    /// A, and the configurations that are compared with it.
    configurations: Vec<Configuration>,
    /// The measurements: time, CPU time, and the workload's own numbers, once for each configuration except A.
    metrics: Rows<Row<'r>>,
    /// All runs in order of time, without warm-up runs.
    runs: Vec<Run<'r>>,
}

/// A configuration.
#[derive(Debug, JsonSchema, Serialize)]
struct Configuration {
    /// Its name: a, b and so on.
    #[schemars(extend("pattern" = "^[a-l]$"))]
    name: &'static str,
    /// The line that sets it up.
    setup: String,
}

/// A failed run.
#[derive(Debug, JsonSchema, Serialize)]
struct Failure<'r> {
    /// Its configuration.
    configuration: &'static str,
    /// Its block, from 1; 0 in the warm-up.
    block: usize,
    /// Its number, from 1.
    #[schemars(extend("minimum" = 1))]
    run: usize,
    /// The error, with the end of the output.
    error: &'r str,
}

/// A run.
#[derive(Debug, JsonSchema, Serialize)]
struct Run<'r> {
    /// Its configuration.
    #[schemars(extend("pattern" = "^[a-l]$"))]
    configuration: &'static str,
    /// Its block, from 1.
    #[schemars(extend("minimum" = 1))]
    block: usize,
    /// Its numbers, by metric.
    #[schemars(with = "BTreeMap<String, f64>")]
    values: Map<String, Value>,
    /// Metrics in which it is an outlier.
    outlier_in: Vec<&'r str>,
}

impl<'r> Failure<'r> {
    fn new(failure: &'r AbFailure) -> Self {
        Self {
            configuration: failure.side.name(),
            block: failure.block,
            run: failure.run,
            error: &failure.text,
        }
    }
}

/// Max failures in the text.
const MAX_FAILURES: usize = 5;

impl AbReport {
    /// Configurations with their setups.
    fn sides(&self) -> impl Iterator<Item = (AbSide, &String)> {
        AbSide::first(self.setups.len()).zip(&self.setups)
    }

    fn rows(&self) -> Vec<Row<'_>> {
        self.ab.metrics.iter().map(|metric| Row { ab: &self.ab, metric }).collect()
    }

    fn run<'r>(&'r self, (at, run): (usize, &'r AbRun)) -> Run<'r> {
        let mut values = Map::new();
        let mut outlier_in = Vec::new();
        for (place, value) in run.values.iter().enumerate() {
            for metric in self.ab.comparisons(place) {
                values.insert(metric.name.clone(), (*value).into());
                if metric.outliers.contains(&at) {
                    outlier_in.push(metric.name.as_str());
                }
            }
        }
        Run { configuration: run.side.name(), block: run.block, values, outlier_in }
    }

    /// All runs of the main metric, as points on a line from the least to the greatest.
    fn points(&self) -> String {
        let at = self.main_metric;
        let Some(metric) = self.ab.comparisons(at).next() else { return String::new() };
        let values =
            || self.ab.runs.iter().filter_map(|run| Some((run.side, *run.values.get(at)?)));
        let min = values().map(|(_, value)| value).fold(f64::INFINITY, f64::min);
        let max = values().map(|(_, value)| value).fold(f64::NEG_INFINITY, f64::max);
        if max <= min {
            return String::new();
        }
        let place = |value: f64| ((value - min) / (max - min) * (POINTS as f64 - 1.0)) as usize;
        let mut out = format!(
            "\nruns by {}, from {} to {}\n",
            line(&metric.name),
            number(metric, min),
            number(metric, max)
        );
        for (side, _) in self.sides() {
            let mut counts = [0_u32; POINTS];
            for (_, value) in values().filter(|(run_side, _)| *run_side == side) {
                if let Some(count) = counts.get_mut(place(value)) {
                    *count += 1;
                }
            }
            let mark = |count: &u32| match count {
                0 => '.',
                1..=9 => char::from_digit(*count, 10).unwrap_or('9'),
                _ => '+',
            };
            let marks: String = counts.iter().map(mark).collect();
            out += &format!("{} {marks}\n", capital(side));
        }
        out
    }

    /// The name of a metric, with the configuration if A is compared with several.
    fn named(&self, metric: &AbMetric) -> String {
        match self.ab.sides {
            ..=2 => line(&metric.name).into_owned(),
            _ => format!("{} of {}", line(&metric.name), capital(metric.side)),
        }
    }

    /// What a metric was under A and under the other configuration.
    fn changed(&self, metric: &AbMetric) -> String {
        let [a, b] = metric.means.map(|mean| number(metric, mean));
        let p = metric.p_adjusted.map_or_else(
            || "too few blocks for a p-value".to_owned(),
            |p| format!("p {}", columns::chance(Some(p))),
        );
        format!(
            "{} is {a} under A and {b} under {} ({p})",
            line(&metric.name),
            capital(metric.side)
        )
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.ab.is_interrupted {
            notes.push("interrupted: only the completed blocks are shown".to_owned());
        }
        if let Some(failed) = &self.ab.ended_by {
            notes.push(format!("{}; only the blocks completed before are shown", line(failed)));
        }
        notes.extend(self.failure_notes());
        for metric in &self.ab.metrics {
            if !metric.outliers.is_empty() {
                let runs = plural(metric.outliers.len() as u64, "run");
                notes.push(format!(
                    "{}: {runs} far from the others (included in the results)",
                    self.named(metric)
                ));
            }
            if let Some(drift) = metric.drift {
                let drift = drift * 100.0;
                notes.push(format!(
                    "{}: {drift:+.1}% from the first block to the last on both sides: the machine changed during the experiment",
                    self.named(metric)
                ));
            }
        }
        notes
    }
}

impl AbReport {
    /// The failed runs, if failures are ignored.
    fn failure_notes(&self) -> Vec<String> {
        let failures = &self.ab.failures;
        let shown = failures.iter().take(MAX_FAILURES);
        let mut notes: Vec<String> = shown
            .map(|failure| {
                let (side, text) = (capital(failure.side), line(&failure.text));
                format!(
                    "failed and was ignored: run {} ({side}, block {}): {text}",
                    failure.run, failure.block
                )
            })
            .collect();
        let more = failures.len().saturating_sub(MAX_FAILURES);
        if more > 0 {
            notes.push(format!("{} failed, too", plural(more as u64, "more run")));
        }
        notes
    }
}

/// The name of a configuration in tables.
fn capital(side: AbSide) -> String {
    side.name().to_uppercase()
}

/// A ratio as text; with few runs, the ends of its interval may be far apart.
fn times(value: f64, digits: usize) -> String {
    match value {
        value if (0.001..1000.0).contains(&value) => format!("{value:.digits$}x"),
        value => format!("{value:.0e}x"),
    }
}

/// A metric's value as text.
fn number(metric: &AbMetric, value: f64) -> String {
    match value {
        value if metric.is_time() && value >= 0.0 => time(value.round() as u64, true),
        value if value.abs() >= 1000.0 || value.fract() == 0.0 => format!("{value:.0}"),
        value => format!("{value:.4}"),
    }
}
