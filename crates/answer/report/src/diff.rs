//! The report of `hyperscope diff`: what differs between two sides, and how surely.

mod moved;
mod notes;
mod rows;
mod table;

use analyses::diff::Diff;
use serde::Serialize;
use serde_json::Value;

use crate::Report;
use crate::json::Object;
use crate::table::Table;

pub use rows::verdict as diff_verdict;

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
        let (lost_a, lost_b) = self.diff.lost;
        let (seconds_a, seconds_b) = &self.diff.seconds;
        let unit = if self.is_within_runs() { "slices" } else { "runs" };
        let rows: Vec<Value> =
            self.diff.rows.iter().map(|row| rows::row_json(&self.diff, row)).collect();
        Object::default()
            .set("schema", "hyperscope.diff/1")
            .set("report", self.diff.question.name)
            .set("a", self.a.clone())
            .set("b", self.b.clone())
            .set("a_seconds", seconds_a.clone())
            .set("b_seconds", seconds_b.clone())
            .set("a_lost", lost_a)
            .set("b_lost", lost_b)
            .set("varies_over", unit)
            .set("alpha", self.diff.options.alpha)
            .set("seed", self.diff.options.seed)
            .set("correction", "benjamini_hochberg")
            .set(
                "notes",
                notes::notes(self).iter().map(|note| note.replace('\n', " ")).collect::<Vec<_>>(),
            )
            .set("rows", rows)
            .done()
    }

    fn csv(&self) -> Table {
        rows::csv(&self.diff)
    }
}

impl DiffReport {
    /// One run a side: what varies within it is all there is to go by.
    fn is_within_runs(&self) -> bool {
        self.diff.runs == (1, 1)
    }
}
