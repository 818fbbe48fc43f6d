//! The table of a comparison: groups in descending order of the change of cost.

use analyses::diff::DiffRow;
use printable::line;

use super::columns::{self, Row};
use super::{DiffReport, notes, words};
use crate::column;
use crate::table::Table;
use crate::units::{count, plural, time};

/// The table of rows, with both sides above it and notes below.
pub(super) fn tables(report: &DiffReport, width: Option<usize>) -> String {
    let diff = &report.diff;
    let sides = [("A", &report.a, &diff.seconds.0), ("B", &report.b, &diff.seconds.1)];
    let mut out = String::new();
    for (name, paths, seconds) in sides {
        let lasted: Vec<String> =
            seconds.iter().map(|seconds| time((seconds * 1e9) as u64, diff.nanoseconds)).collect();
        out += &format!("{name}: {} ({})\n", line(&paths.join(", ")), lasted.join(", "));
    }
    let shown: Vec<&DiffRow> = diff.rows.iter().filter(|row| is_shown(report, row)).collect();
    out += &left_out_rows(report, shown.len());
    let mut left_out = Vec::new();
    if !shown.is_empty() {
        let rows: Vec<Row<'_>> = shown.iter().map(|row| Row { diff, row }).collect();
        let mut table = Table::default();
        column::draw(&columns::columns(diff), &mut table, columns::TABLE, &rows);
        let (drawn, hidden_columns) = table.draw(width);
        out += &format!("\n{drawn}");
        left_out = hidden_columns;
    }
    let mut notes = notes::notes(report);
    if !left_out.is_empty() {
        notes.push(format!(
            "hidden to fit the width: {}; csv and json show all",
            left_out.join(", ")
        ));
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

/// How many rows differ surely, and the one whose time changed most.
pub(super) fn headline(report: &DiffReport) -> String {
    let (diff, rows) = (&report.diff, &report.diff.rows);
    let compared = rows.iter().filter(|row| row.p.is_some()).count();
    let name = diff.question.name;
    let differ: Vec<&DiffRow> = rows.iter().filter(|row| row.significant).collect();
    // Rows whose time changed most come first.
    let of_metric = |name: &str| {
        let is_metric =
            |row: &&&DiffRow| words::metric_of(diff, row).is_some_and(|metric| metric.name == name);
        differ.iter().find(is_metric)
    };
    let most = of_metric("cost_ns_per_s").or_else(|| of_metric("time_ns_per_s")).or(differ.first());
    let of_all = |verb: &str| {
        let comparisons = plural(compared as u64, "comparison");
        format!("{} of {comparisons} of {name} {verb} significant", count(differ.len() as u64))
    };
    match (most, differ.len()) {
        (None, _) if compared == 0 => format!("Nothing of {name} could be compared."),
        (None, _) => {
            let comparisons = plural(compared as u64, "comparison");
            format!("No difference is significant, in {comparisons} of {name}.")
        }
        (Some(row), 1) => format!("{}: {}.", of_all("is"), line(&words::went(diff, row))),
        (Some(row), _) => {
            format!("{}: {}, among others.", of_all("are"), line(&words::went(diff, row)))
        }
    }
}

/// How many rows the table has that don't differ, or leaves out.
fn left_out_rows(report: &DiffReport, shown: usize) -> String {
    let differ = report.diff.rows.iter().filter(|row| row.significant).count();
    if report.all {
        format!("all {}\n", plural(shown as u64, "row"))
    } else if shown < differ {
        format!("{} too small to show\n", plural((differ - shown) as u64, "significant row"))
    } else {
        String::new()
    }
}
