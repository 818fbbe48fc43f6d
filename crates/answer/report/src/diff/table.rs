//! The table of a comparison: the groups whose cost changed most come first.

use analyses::diff::{Diff, DiffRow, KeyValue, Scale, Unit};
use printable::line;

use super::rows::{metric_name, metric_of};
use super::{DiffReport, notes};
use crate::table::Table;
use crate::units::{count, time};

pub(super) fn text(report: &DiffReport, width: Option<usize>) -> String {
    let diff = &report.diff;
    let sides = [("A", &report.a, &diff.seconds.0), ("B", &report.b, &diff.seconds.1)];
    let mut out = String::new();
    for (name, paths, seconds) in sides {
        let lasted: Vec<String> =
            seconds.iter().map(|seconds| time((seconds * 1e9) as u64, diff.nanoseconds)).collect();
        out += &format!("{name}: {} ({})\n", line(&paths.join(", ")), lasted.join(", "));
    }
    let shown: Vec<&DiffRow> = diff.rows.iter().filter(|row| is_shown(report, row)).collect();
    out += &format!("{}\n", headline(report, shown.len()));
    let mut left_out = Vec::new();
    if !shown.is_empty() {
        let (drawn, left) = table(diff, &shown).draw(width);
        out += &format!("\n{drawn}");
        left_out = left;
    }
    let mut notes = notes::notes(report);
    if !left_out.is_empty() {
        notes.push(format!("left out for width: {}; csv and json have all", left_out.join(", ")));
    }
    if !notes.is_empty() {
        out += &format!("\n{}\n", notes.join("\n"));
    }
    out
}

fn is_shown(report: &DiffReport, row: &DiffRow) -> bool {
    let small = row.ratio.is_some_and(|ratio| (ratio - 1.0).abs() < report.min_effect);
    !small && (report.all || row.significant)
}

fn headline(report: &DiffReport, shown: usize) -> String {
    let rows = &report.diff.rows;
    let compared = rows.iter().filter(|row| row.p.is_some()).count();
    let differ = rows.iter().filter(|row| row.significant).count();
    let of = |number: usize| count(number as u64);
    let mut line = format!(
        "{} of {} comparisons of {}: significant",
        of(differ),
        of(compared),
        report.diff.question.name
    );
    if report.all {
        line += &format!("; all {} rows", of(shown));
    } else if shown < differ {
        line += &format!("; {} are left out as too small", of(differ - shown));
    }
    line
}

fn table(diff: &Diff, rows: &[&DiffRow]) -> Table {
    let ns = diff.nanoseconds;
    let unit = |row: &DiffRow| metric_of(diff, row).map_or(Unit::Times, |metric| metric.unit);
    let cells =
        |of: &dyn Fn(&DiffRow) -> String| rows.iter().map(|row| of(row)).collect::<Vec<String>>();
    let mut table = Table::default();
    for (at, column) in diff.question.columns.iter().enumerate() {
        let of = |row: &DiffRow| row.key.get(at).cloned().unwrap_or(KeyValue::None);
        let first = diff.rows.iter().map(of).find(|value| *value != KeyValue::None);
        let same = |row: &DiffRow| {
            let value = of(row);
            value == KeyValue::None || Some(value) == first
        };
        let is_all = |row: &DiffRow| row.key.iter().all(|value| *value == KeyValue::None);
        // What is the same everywhere needs no column, unless it is what rows are about.
        let is_place = ["vm", "level", "ancillary"].contains(column);
        if *column == "isa" || (is_place && diff.rows.iter().all(same)) {
            continue;
        }
        let names = cells(&|row| match of(row) {
            KeyValue::Vm(vm) => diff.vms.get(vm).cloned().unwrap_or_default(),
            KeyValue::Number(number) => number.to_string(),
            KeyValue::Text(text) => text,
            KeyValue::None if is_all(row) && *column == "reason" => "all".to_owned(),
            KeyValue::None if *column == "step" => "all of it".to_owned(),
            KeyValue::None => String::new(),
        });
        table.names(column, 0, names);
    }
    let name = |row: &DiffRow| {
        metric_of(diff, row).map_or_else(String::new, |metric| metric_name(diff, metric))
    };
    table.names("metric", 0, cells(&name));
    let value = |value: Option<f64>, row: &DiffRow| {
        value.map_or_else(|| "-".to_owned(), |value| number(value, unit(row), ns))
    };
    table.numbers("A", 0, cells(&|row| value(row.a.value, row)));
    if diff.runs.0 > 1 {
        table.numbers("± sd", 2, cells(&|row| value(row.a.sd, row)));
    }
    table.numbers("B", 0, cells(&|row| value(row.b.value, row)));
    if diff.runs.1 > 1 {
        table.numbers("± sd", 2, cells(&|row| value(row.b.sd, row)));
    }
    table.numbers(
        "B / A",
        0,
        cells(&|row| change(row, unit(row), ns).unwrap_or_else(|| "-".into())),
    );
    let percent = format!("{}% interval", (1.0 - diff.options.alpha) * 100.0);
    table.numbers(&percent, 1, cells(&|row| interval(row, unit(row), ns)));
    let p = |p: Option<f64>| p.map_or_else(|| "-".to_owned(), p_value);
    table.numbers("p", 3, cells(&|row| p(row.p)));
    table.numbers("p, adjusted", 2, cells(&|row| p(row.p_adjusted)));
    if rows.iter().any(|row| !row.significant) {
        let mark = |row: &DiffRow| if row.significant { "*" } else { "" };
        table.names("", 0, cells(&|row| mark(row).to_owned()));
    }
    table
}

/// The ratio, or the difference where there is none.
pub(super) fn change(row: &DiffRow, unit: Unit, nanoseconds: bool) -> Option<String> {
    match (row.ratio, row.a.value, row.b.value) {
        (Some(ratio), ..) => Some(times(ratio)),
        (None, Some(a), Some(b)) if a != b => Some(signed(b - a, unit, nanoseconds)),
        _ => None,
    }
}

fn interval(row: &DiffRow, unit: Unit, nanoseconds: bool) -> String {
    match row.interval {
        None => "-".to_owned(),
        Some((Scale::Ratio, low, high)) => format!("{} … {}", times(low), times(high)),
        Some((Scale::Difference, low, high)) => {
            format!("{} … {}", signed(low, unit, nanoseconds), signed(high, unit, nanoseconds))
        }
    }
}

fn signed(value: f64, unit: Unit, nanoseconds: bool) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    format!("{sign}{}", number(value.abs(), unit, nanoseconds))
}

fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 1e6 => format!("{ratio:.1e}x"),
        ratio if ratio >= 99.95 => format!("{ratio:.0}x"),
        ratio if ratio >= 9.995 => format!("{ratio:.1}x"),
        ratio if ratio >= 0.0995 => format!("{ratio:.2}x"),
        ratio => format!("{ratio:.3}x"),
    }
}

/// A value with its unit.
pub(super) fn number(value: f64, unit: Unit, nanoseconds: bool) -> String {
    let few = |value: f64| match value {
        value if value >= 999.5 => count(value.round() as u64),
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    };
    match unit {
        Unit::Time => time(value.round() as u64, nanoseconds),
        Unit::TimePerSecond if nanoseconds => percent(value / 1e7),
        Unit::TimePerSecond => format!("{}/s", time(value.round() as u64, nanoseconds)),
        Unit::CountPerSecond => format!("{}/s", few(value)),
        Unit::Share => format!("{:.2}%", value * 100.0),
        Unit::Times => few(value),
    }
}

/// A number of percent, to three digits as far as they say anything.
fn percent(value: f64) -> String {
    match value {
        0.0 => "0%".to_owned(),
        value if value < 0.0005 => "<0.001%".to_owned(),
        value if value < 0.9995 => format!("{value:.3}%"),
        value if value < 9.995 => format!("{value:.2}%"),
        value if value < 99.95 => format!("{value:.1}%"),
        value => format!("{value:.0}%"),
    }
}

/// A chance, to two digits.
pub(super) fn p_value(p: f64) -> String {
    match p {
        p if p < 1e-9 => "<1e-9".to_owned(),
        p if p < 0.001 => format!("{p:.0e}"),
        p if p < 0.0995 => format!("{p:.3}"),
        p => format!("{p:.2}"),
    }
}
