//! The table of a comparison: groups in descending order of the change of cost.

use analyses::diff::DiffRow;
use printable::line;

use super::columns::{self, Row};
use super::{DiffReport, notes};
use crate::column;
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

fn headline(report: &DiffReport, shown: usize) -> String {
    let rows = &report.diff.rows;
    let compared = rows.iter().filter(|row| row.p.is_some()).count();
    let differ = rows.iter().filter(|row| row.significant).count();
    let format_count = |number: usize| count(number as u64);
    let mut line = format!(
        "{} of {} comparisons of {}: significant",
        format_count(differ),
        format_count(compared),
        report.diff.question.name
    );
    if report.all {
        line += &format!("; all {} rows", format_count(shown));
    } else if shown < differ {
        line += &format!("; {} too small to show", format_count(differ - shown));
    }
    line
}
