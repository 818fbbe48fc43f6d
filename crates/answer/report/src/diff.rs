//! The report of `hyperscope diff`: what differs between two sides, and how surely.

mod columns;
mod flame;
mod moved;
mod notes;
mod numbers;
mod table;
mod words;

use analyses::diff::Diff;
use schemars::JsonSchema;
use serde::Serialize;

use self::columns::Row;
use self::moved::MovedFunction;
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
        self.document_of()
    }

    fn csv(&self) -> Table {
        column::csv(&columns::columns(&self.diff), &self.rows(), &[self.diff.nanoseconds])
    }
}

/// What `hyperscope diff --format json` prints: two sides compared. docs/diff.md defines every number.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r> {
    schema: &'static str,
    /// What is compared.
    #[schemars(extend("enum" = ["exits", "nested", "path", "cpu", "boot", "profile"]))]
    report: &'static str,
    /// Paths of the runs of A, as they were named.
    #[schemars(extend("minItems" = 1))]
    a: &'r [String],
    /// Paths of the runs of B, as they were named.
    #[schemars(extend("minItems" = 1))]
    b: &'r [String],
    /// How long each run of A lasted, first exit to last entry. Seconds (1e9 ticks where the clock has no
    /// nanoseconds).
    a_seconds: &'r [f64],
    /// How long each run of B lasted, first exit to last entry. Seconds (1e9 ticks where the clock has no
    /// nanoseconds).
    b_seconds: &'r [f64],
    /// Events that are not in the runs of A: dropped by the kernel, or counted by it and not in the recording.
    a_lost: u64,
    /// Events that are not in the runs of B: dropped by the kernel, or counted by it and not in the recording.
    b_lost: u64,
    /// Places of the runs of A that could not be read.
    a_damaged: u64,
    /// Places of the runs of B that could not be read.
    b_damaged: u64,
    /// What intervals and p-values come from: slices of time within one run of each side, or runs.
    #[schemars(extend("enum" = ["slices", "runs"]))]
    varies_over: &'static str,
    /// Level of p_adjusted up to which a row is significant; intervals have the confidence that is left.
    #[schemars(extend("exclusiveMinimum" = 0))]
    alpha: f64,
    /// What resamples were drawn from.
    seed: u64,
    /// How p_adjusted accounts for the number of rows.
    #[schemars(extend("const" = "benjamini_hochberg"))]
    correction: &'static str,
    /// Functions that others call on side B than on side A; of profiles alone.
    moved: Vec<MovedFunction<'r>>,
    /// What a reader must know besides, in words.
    notes: Vec<String>,
    /// All groups that either side has, those whose time changed most first, with all their metrics.
    rows: Rows<Row<'r>>,
}

impl DiffReport {
    pub(crate) fn document_of(&self) -> Document<'_> {
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
            moved: diff.moved.iter().map(MovedFunction::new).collect(),
            notes,
            rows: Rows { columns: columns::columns(diff), rows: self.rows() },
        }
    }

    fn rows(&self) -> Vec<Row<'_>> {
        self.diff.rows.iter().map(|row| Row { diff: &self.diff, row }).collect()
    }

    /// One run a side: what varies within it is all there is to go by.
    fn is_within_runs(&self) -> bool {
        self.diff.runs == (1, 1)
    }
}
