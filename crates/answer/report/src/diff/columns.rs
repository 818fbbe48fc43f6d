//! The columns of a comparison: a row is a group and one metric of it on both sides.

use analyses::diff::{Diff, DiffRow, KeyValue, QUESTIONS, Scale, Unit as MetricUnit};

use super::numbers::{change, interval, number, p_value};
use super::words::{metric_name, metric_of};
use crate::column::{self, Cell, Column, Described, Kind, Unit};

pub(super) const TABLE: &str = "diff";

/// A row with its comparison.
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

impl<'d> Described for Row<'d> {
    const ABOUT: Option<&'static str> =
        Some("A metric of a group on both sides. docs/diff.md defines every metric.");
    const MAY_COUNT_TICKS: bool = false;

    fn all_columns() -> Vec<Column<Self>> {
        let mut names: Vec<&str> = Vec::new();
        for name in QUESTIONS.iter().flat_map(|question| question.columns) {
            if !names.contains(name) {
                names.push(name);
            }
        }
        let has_all =
            |name: &str| QUESTIONS.iter().all(|question| question.columns.contains(&name));
        let key = |name| if has_all(name) { key(0, name) } else { key(0, name).optional() };
        let mut columns: Vec<_> = names.into_iter().map(key).collect();
        columns.extend(sides((0, 0)));
        columns.extend(changes(0.0));
        columns.extend(chances());
        columns
    }
}

impl Row<'_> {
    fn unit(&self) -> MetricUnit {
        metric_of(self.diff, self.row).map_or(MetricUnit::Times, |metric| metric.unit)
    }

    /// A value of the metric. Times are rounded to integers; ratios and intervals use unrounded
    /// values.
    fn value(&self, value: Option<f64>) -> Cell {
        match (value, self.unit()) {
            (Some(value), MetricUnit::Time | MetricUnit::TimePerSecond) => {
                Cell::Number(Some(value.round() as u64))
            }
            (value, _) => Cell::Ratio(value),
        }
    }

    fn shown(&self, value: Option<f64>) -> String {
        value.map_or_else(
            || "-".to_owned(),
            |value| number(value, self.unit(), self.diff.nanoseconds),
        )
    }

    /// The row's value of a group property.
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
            (KeyValue::None, "step") => "total".to_owned(),
            _ => self.key_cell(at).plain(),
        }
    }
}

/// All columns, in the order of JSON and CSV.
pub(super) fn columns<'d>(diff: &Diff) -> Vec<Column<Row<'d>>> {
    let keys = diff.question.columns.iter().enumerate();
    let key = |(at, &name): (usize, &&'static str)| {
        let column = key(at, name);
        if says_something(diff, at, name) { column.shown(TABLE, 0) } else { column }
    };
    let mut columns: Vec<Column<Row<'d>>> = keys.map(key).collect();
    columns.extend(sides(diff.runs));
    columns.extend(changes(diff.options.alpha));
    columns.extend(chances());
    columns
}

/// A property that is the same everywhere needs no column in a table, unless it is the subject of the
/// rows.
fn says_something(diff: &Diff, at: usize, name: &str) -> bool {
    let key_value = |row: &DiffRow| row.key.get(at).cloned().unwrap_or(KeyValue::None);
    let mut known = diff.rows.iter().map(key_value).filter(|value| *value != KeyValue::None);
    let first = known.next();
    let is_place = ["vm", "level", "ancillary"].contains(&name);
    name != "isa" && (!is_place || known.any(|value| Some(value) != first))
}

/// The keys that distinguish groups.
fn key<'d>(at: usize, name: &'static str) -> Column<Row<'d>> {
    let kind = if name == "level" { Kind::Number } else { Kind::Text };
    let value = move |row: &Row<'_>| row.key_cell(at);
    let column = Column::any((name, name), (Unit::Text, kind), key_help(name), value)
        .null("the row covers all")
        .drawn_as(move |row| row.key_shown(at, name));
    match name {
        "level" => column.at_least(1).at_most(2),
        "isa" => column.one_of(ISAS),
        "on" => column.one_of(["guest", "vcpu", "iothread", "vhost", "interrupt", "host"]),
        "part" => column.one_of(["vcpu", "vmm", "vhost", "kvm", "recorder", "other", "idle"]),
        _ => column,
    }
}

const ISAS: [&str; 8] = ["svm", "vmx", "arm64", "s390", "riscv", "powerpc", "loongarch", "unknown"];

fn key_help(name: &str) -> &'static str {
    match name {
        "vm" => "The VM, under its name in the first run that has it. Null: all VMs.",
        "level" => "1: a guest of the recorded machine; 2: a guest inside those. Null: all.",
        "isa" => "Architecture of the exit. Null: all.",
        "reason" => {
            "The kernel's symbol for the reason. Null: all exits but those that wait for work."
        }
        "ancillary" => {
            "nested: the kernel's symbol for the level-1 exits that the exits of this row caused. Null: the row is about the \
             exits themselves."
        }
        "part" => "cpu: the role of a thread, as in hyperscope.cpu.",
        "state" => {
            "cpu: the state of a vCPU, as in hyperscope.cpu; or `runs`: a host thread had a CPU. profile: also the role of a \
             thread, and `host` or `guest` if no vCPU is recorded."
        }
        "start" => "path: the step that the requests begin with.",
        "step" => "path: the step that a hop ends with. Null: the row is about whole requests.",
        "on" => "path: what performs that step. Null: see step.",
        "function" => "profile: the function, or the file that contains it.",
        "phase" => {
            "boot: the phase, under its name in hyperscope.boot; shutdown steps begin with `down: `. `boot` is everything up to \
             the mark, `shutdown` all shutdown steps, `after the mark` the time between them."
        }
        _ => "The keys that distinguish groups.",
    }
}

/// The metric, and its value on each side.
fn sides<'d>((runs_of_a, runs_of_b): (usize, usize)) -> Vec<Column<Row<'d>>> {
    let value = |names, help, value_of: fn(&DiffRow) -> Option<f64>| {
        Column::any(names, (Unit::Count, Kind::Ratio), help, move |row: &Row<'d>| {
            row.value(value_of(row.row))
        })
        .null("no run of the side has the group; for a deviation: there is only one run")
        .below_zero_too()
        .drawn_as(move |row| row.shown(value_of(row.row)))
    };
    let sd = |name, runs, after, sd_of: fn(&DiffRow) -> Option<f64>| {
        let column =
            value((name, "± sd"), "Standard deviation of the runs, if there are several.", sd_of);
        if runs > 1 { column.after(after).shown(TABLE, 2) } else { column }
    };
    let runs = |name, help, count_of: fn(&DiffRow) -> usize| {
        let run_count = move |row: &Row<'d>| Some(count_of(row.row) as u64);
        Column::number((name, name), Unit::Count, help, run_count)
    };
    vec![
        Column::text(
            ("metric", "metric"),
            "The compared metric. Times end with _ns, or _ns_per_s (nanoseconds per second of recording), or with _cycles if the \
             clock does not count nanoseconds.",
            |row: &Row<'_>| {
                metric_of(row.diff, row.row).map(|metric| metric_name(row.diff, metric))
            },
        ).matching("^[a-z0-9_]+$")
        .drawn_as(|row| {
            metric_of(row.diff, row.row)
                .map_or_else(String::new, |metric| metric_name(row.diff, metric))
        })
        .shown(TABLE, 0),
        value(("a", "A"), "The value of A, or the mean of several runs. Null: not recorded, or no value (a mean of no exits).", |row| row.a.value).shown(TABLE, 0),
        value(("b", "B"), "The value of B, or the mean of several runs.", |row| row.b.value).shown(TABLE, 0),
        sd("a_sd", runs_of_a, "a", |row| row.a.sd),
        sd("b_sd", runs_of_b, "b", |row| row.b.sd),
        runs("a_runs", "Runs of the first side that have the group.", |row| row.a.runs),
        runs("b_runs", "Runs of the second side that have the group.", |row| row.b.runs),
    ]
}

/// The difference between the sides.
fn changes<'d>(alpha: f64) -> Vec<Column<Row<'d>>> {
    let percent = format!("{}% interval", (1.0 - alpha) * 100.0);
    let scale = |row: &Row<'d>| {
        row.row.interval.map(|(scale, ..)| match scale {
            Scale::Ratio => "ratio".to_owned(),
            Scale::Difference => "difference".to_owned(),
        })
    };
    vec![
        Column::ratio(
            ("ratio", "B / A"),
            "b divided by a. Null if either is zero or null.",
            |row: &Row<'_>| row.row.ratio,
        )
        .below_zero_too()
        .drawn_as(|row| {
            change(row.row, row.unit(), row.diff.nanoseconds).unwrap_or_else(|| "-".to_owned())
        })
        .shown(TABLE, 0),
        Column::text(
            ("interval_of", "interval of"),
            "What the interval is for: b divided by a, or b minus a if one of them is \
                                                      zero. Null: no interval.",
            scale,
        )
        .one_of(["ratio", "difference"]),
        Column::ratio(
            ("ci_low", "from"),
            "Lower end of the interval that contains the true ratio or difference with confidence \
                                           1 - alpha, for this row alone. Null: too few values.",
            |row: &Row<'_>| row.row.interval.map(|(_, low, _)| low),
        )
        .null("there is no interval")
        .below_zero_too()
        .drawn_as(|row| interval(row.row, row.unit(), row.diff.nanoseconds))
        .titled(&percent)
        .shown(TABLE, 1),
        Column::ratio(("ci_high", "to"), "Upper end of the interval.", |row: &Row<'_>| {
            row.row.interval.map(|(.., high)| high)
        })
        .null("there is no interval")
        .below_zero_too(),
    ]
}

/// Its significance.
fn chances<'d>() -> Vec<Column<Row<'d>>> {
    let p = |names, help, chance_of: fn(&DiffRow) -> Option<f64>| {
        Column::ratio(names, help, move |row: &Row<'d>| chance_of(row.row))
            .null("there are too few runs")
            .at_most(1)
            .drawn_as(move |row| chance_of(row.row).map_or_else(|| "-".to_owned(), p_value))
    };
    vec![
        p(("p_value", "p"), "Probability of a difference at least this large if the sides did not differ, for this row alone. \
                             Null: too few values, or both sides are zero.", |row| row.p)
            .shown(TABLE, 3),
        p(
            ("p_adjusted", "p adj."),
            "p_value adjusted for all rows that have one (Benjamini-Hochberg).",
            |row| row.p_adjusted,
        )
        .shown(TABLE, 1),
        p(("p_permutation", "p of parting"), "The same probability from a permutation test of the runs. Null: a side has only one run.", |row| {
            row.permutation.map(|test| test.p)
        }),
        Column::flag(("significant", ""), "p_adjusted is at most alpha, and so is p_permutation if there are enough runs for that.", |row: &Row<'_>| {
            row.row.significant
        })
        .drawn_as(|row| if row.row.significant { "*" } else { "" }.to_owned())
        .shown_if(TABLE, 0, |row| !row.row.significant),
    ]
}
