//! The report of `hyperscope diff`: what differs between two sides, and how surely.

mod columns;
mod flame;
mod moved;
mod notes;
mod numbers;
mod table;
mod words;

use analyses::diff::Diff;
use serde::Serialize;
use serde_json::Value;

use self::columns::Row;
use crate::Report;
use crate::column::{self, Rows};
use crate::table::Table;

pub use words::verdict as diff_verdict;

/// The comparison of two sides.
#[derive(Debug)]
pub struct DiffReport {
    /// Paths of the runs of the first side.
    pub a: Vec<String>,
    /// Paths of the runs of the second side.
    pub b: Vec<String>,
    /// The comparison.
    pub diff: Diff,
    /// Tables show all rows, not only those that differ.
    pub all: bool,
    /// Tables leave out ratios nearer to 1 than this share.
    pub min_effect: f64,
}

impl Report for DiffReport {
    fn text(&self, width: Option<usize>) -> String {
        table::text(self, width)
    }

    fn document(&self) -> impl Serialize {
        let diff = &self.diff;
        let notes = notes::notes(self).iter().map(|note| note.replace('\n', " ")).collect();
        Document {
            schema: "hyperscope.diff/1",
            report: diff.question.name,
            a: &self.a,
            b: &self.b,
            a_seconds: &diff.seconds.0,
            b_seconds: &diff.seconds.1,
            a_lost: diff.lost.0.events,
            b_lost: diff.lost.1.events,
            a_damaged: diff.lost.0.places,
            b_damaged: diff.lost.1.places,
            varies_over: if self.is_within_runs() { "slices" } else { "runs" },
            alpha: diff.options.alpha,
            seed: diff.options.seed,
            correction: "benjamini_hochberg",
            moved: diff.moved.iter().map(moved::json).collect(),
            notes,
            rows: Rows { columns: columns::columns(diff), rows: self.rows() },
        }
    }

    fn csv(&self) -> Table {
        column::csv(&columns::columns(&self.diff), &self.rows(), &[self.diff.nanoseconds])
    }
}

/// The document of `hyperscope diff`.
#[derive(Debug, Serialize)]
struct Document<'r> {
    schema: &'static str,
    report: &'static str,
    a: &'r [String],
    b: &'r [String],
    a_seconds: &'r [f64],
    b_seconds: &'r [f64],
    a_lost: u64,
    b_lost: u64,
    a_damaged: u64,
    b_damaged: u64,
    varies_over: &'static str,
    alpha: f64,
    seed: u64,
    correction: &'static str,
    moved: Vec<Value>,
    notes: Vec<String>,
    rows: Rows<Row<'r>>,
}

impl DiffReport {
    fn rows(&self) -> Vec<Row<'_>> {
        self.diff.rows.iter().map(|row| Row { diff: &self.diff, row }).collect()
    }

    /// One run a side: what varies within it is all there is to go by.
    fn is_within_runs(&self) -> bool {
        self.diff.runs == (1, 1)
    }
}
