//! The columns of a comparison: a row is a group and one metric of it on both sides.

use analyses::diff::{Diff, DiffRow, KeyValue, Scale, Unit as MetricUnit};

use super::numbers::{change, interval, number, p_value};
use super::words::{metric_name, metric_of};
use crate::column::{self, Cell, Column, Unit};

/// The one table there is.
pub(super) const TABLE: &str = "diff";

/// A row with what it is part of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'d> {
    pub(super) diff: &'d Diff,
    pub(super) row: &'d DiffRow,
}

impl column::Row for Row<'_> {
    fn is_nanoseconds(&self) -> bool {
        self.diff.nanoseconds
    }
}

impl Row<'_> {
    fn unit(&self) -> MetricUnit {
        metric_of(self.diff, self.row).map_or(MetricUnit::Times, |metric| metric.unit)
    }

    /// A value of the metric. Times are whole numbers; ratios and intervals are made of what they were
    /// before.
    fn value(&self, value: Option<f64>) -> Cell {
        match (value, self.unit()) {
            (Some(value), MetricUnit::Time | MetricUnit::TimePerSecond) => {
                Cell::Number(Some(value.round() as u64))
            }
            (value, _) => Cell::Ratio(value),
        }
    }

    fn shown(&self, value: Option<f64>) -> String {
        value.map_or_else(|| "-".to_owned(), |one| number(one, self.unit(), self.diff.nanoseconds))
    }

    /// What the row says of a property that groups have.
    fn key(&self, at: usize) -> &KeyValue {
        self.row.key.get(at).unwrap_or(&KeyValue::None)
    }

    fn key_cell(&self, at: usize) -> Cell {
        match self.key(at) {
            KeyValue::None => Cell::Text(None),
            KeyValue::Vm(vm) => Cell::Text(self.diff.vms.get(*vm).cloned()),
            KeyValue::Number(number) => Cell::Number(Some(*number)),
            KeyValue::Text(text) => Cell::Text(Some(text.clone())),
        }
    }

    fn key_shown(&self, at: usize, name: &str) -> String {
        let is_all = || self.row.key.iter().all(|value| *value == KeyValue::None);
        match (self.key(at), name) {
            (KeyValue::None, "reason") if is_all() => "all".to_owned(),
            (KeyValue::None, "step") => "all of it".to_owned(),
            _ => self.key_cell(at).plain(),
        }
    }
}

/// All columns, in the order of JSON and CSV.
pub(super) fn columns<'d>(diff: &Diff) -> Vec<Column<Row<'d>>> {
    let keys = diff.question.columns.iter().enumerate();
    let mut columns: Vec<Column<Row<'d>>> = keys.map(|(at, name)| key(diff, at, name)).collect();
    columns.extend(sides(diff));
    columns.extend(changes(diff.options.alpha));
    columns.extend(chances());
    columns
}

/// What is the same everywhere needs no column in a table, unless it is what rows are about.
fn says_something(diff: &Diff, at: usize, name: &str) -> bool {
    let of = |row: &DiffRow| row.key.get(at).cloned().unwrap_or(KeyValue::None);
    let mut known = diff.rows.iter().map(of).filter(|value| *value != KeyValue::None);
    let first = known.next();
    let is_place = ["vm", "level", "ancillary"].contains(&name);
    name != "isa" && (!is_place || known.any(|value| Some(value) != first))
}

fn key<'d>(diff: &Diff, at: usize, name: &'static str) -> Column<Row<'d>> {
    let help = "What groups are told apart by; null where the row is of all.";
    let column = Column::any((name, name), Unit::Text, help, move |row: &Row<'_>| row.key_cell(at))
        .drawn_as(move |row| row.key_shown(at, name));
    if says_something(diff, at, name) { column.shown(TABLE, 0) } else { column }
}

/// The metric, and what it is on either side.
fn sides<'d>(diff: &Diff) -> Vec<Column<Row<'d>>> {
    let value = |names, help, of: fn(&DiffRow) -> Option<f64>| {
        Column::any(names, Unit::Count, help, move |row: &Row<'d>| row.value(of(row.row)))
            .drawn_as(move |row| row.shown(of(row.row)))
    };
    let sd = |name, runs, after, of: fn(&DiffRow) -> Option<f64>| {
        let column = value((name, "± sd"), "Standard deviation of runs, if there are several.", of);
        if runs > 1 { column.after(after).shown(TABLE, 2) } else { column }
    };
    let runs = |name, help, of: fn(&DiffRow) -> usize| {
        let of = move |row: &Row<'d>| Some(of(row.row) as u64);
        Column::number((name, name), Unit::Count, help, of)
    };
    vec![
        Column::text(
            ("metric", "metric"),
            "What is compared; times per second are parts of the time that passed.",
            |row: &Row<'_>| {
                metric_of(row.diff, row.row).map(|metric| metric_name(row.diff, metric))
            },
        )
        .drawn_as(|row| {
            metric_of(row.diff, row.row)
                .map_or_else(String::new, |metric| metric_name(row.diff, metric))
        })
        .shown(TABLE, 0),
        value(("a", "A"), "Its value on the first side.", |row| row.a.value).shown(TABLE, 0),
        value(("b", "B"), "Its value on the second side.", |row| row.b.value).shown(TABLE, 0),
        sd("a_sd", diff.runs.0, "a", |row| row.a.sd),
        sd("b_sd", diff.runs.1, "b", |row| row.b.sd),
        runs("a_runs", "Runs of the first side that have the group.", |row| row.a.runs),
        runs("b_runs", "Runs of the second side that have the group.", |row| row.b.runs),
    ]
}

/// How far the sides are apart.
fn changes<'d>(alpha: f64) -> Vec<Column<Row<'d>>> {
    let percent = format!("{}% interval", (1.0 - alpha) * 100.0);
    let scale = |row: &Row<'d>| {
        row.row.interval.map(|(scale, ..)| match scale {
            Scale::Ratio => "ratio".to_owned(),
            Scale::Difference => "difference".to_owned(),
        })
    };
    vec![
        Column::ratio(("ratio", "B / A"), "B / A.", |row: &Row<'_>| row.row.ratio)
            .drawn_as(|row| {
                change(row.row, row.unit(), row.diff.nanoseconds).unwrap_or_else(|| "-".to_owned())
            })
            .shown(TABLE, 0),
        Column::text(("interval_of", "interval of"), "What ci_low and ci_high are of.", scale),
        Column::ratio(("ci_low", "from"), "Where the interval begins.", |row: &Row<'_>| {
            row.row.interval.map(|(_, low, _)| low)
        })
        .drawn_as(|row| interval(row.row, row.unit(), row.diff.nanoseconds))
        .titled(&percent)
        .shown(TABLE, 1),
        Column::ratio(("ci_high", "to"), "Where the interval ends.", |row: &Row<'_>| {
            row.row.interval.map(|(.., high)| high)
        }),
    ]
}

/// How sure that is.
fn chances<'d>() -> Vec<Column<Row<'d>>> {
    let p = |names, help, of: fn(&DiffRow) -> Option<f64>| {
        Column::ratio(names, help, move |row: &Row<'d>| of(row.row))
            .drawn_as(move |row| of(row.row).map_or_else(|| "-".to_owned(), p_value))
    };
    vec![
        p(("p_value", "p"), "Chance of such a difference if there is none.", |row| row.p)
            .shown(TABLE, 3),
        p(
            ("p_adjusted", "p adj."),
            "p_value with the number of rows accounted for: what is significant goes by it.",
            |row| row.p_adjusted,
        )
        .shown(TABLE, 1),
        p(("p_permutation", "p of parting"), "p by parting the runs again in every way.", |row| {
            row.permutation.map(|test| test.p)
        }),
        Column::flag(("significant", ""), "p_adjusted is below alpha.", |row: &Row<'_>| {
            row.row.significant
        })
        .drawn_as(|row| if row.row.significant { "*" } else { "" }.to_owned())
        .shown_if(TABLE, 0, |row| !row.row.significant),
    ]
}
