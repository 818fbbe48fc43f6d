//! The report of `hyperscope diff`: the differences between two sides, and their significance.

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
use crate::column::{self, Rows};
use crate::table::Table;
use crate::{Legend, Report};

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
    /// Whether tables show all rows, not only those that differ.
    pub all: bool,
    /// Tables leave out ratios nearer to 1 than this share.
    pub min_effect: f64,
}

impl Report for DiffReport {
    fn headline(&self) -> String {
        table::headline(self)
    }

    fn tables(&self, width: Option<usize>) -> String {
        table::tables(self, width)
    }

    fn legend(&self) -> Legend {
        vec![
            ("B / A", "ratio, or difference where A is 0"),
            ("p adj.", "p-value, corrected for the number of comparisons"),
        ]
    }

    fn document(&self) -> impl Serialize {
        self.document_of()
    }

    fn csv(&self) -> Table {
        column::csv(&columns::columns(&self.diff), &self.rows(), &[self.diff.nanoseconds])
    }
}

/// Output of `hyperscope diff --format json`: two sides compared. docs/diff.md defines every number.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r> {
    schema: &'static str,
    /// The compared report.
    #[schemars(extend("enum" = ["exits", "nested", "path", "cpu", "boot", "profile"]))]
    report: &'static str,
    /// Paths of the runs of A, as they were named.
    #[schemars(extend("minItems" = 1))]
    a: &'r [String],
    /// Paths of the runs of B, as they were named.
    #[schemars(extend("minItems" = 1))]
    b: &'r [String],
    /// Duration of each run of A, first exit to last entry. Seconds (1e9 ticks where the clock has no
    /// nanoseconds).
    a_seconds: &'r [f64],
    /// Duration of each run of B, first exit to last entry. Seconds (1e9 ticks where the clock has no
    /// nanoseconds).
    b_seconds: &'r [f64],
    /// Events missing in the runs of A: dropped by the kernel, or counted by it and not in the recording.
    a_lost: u64,
    /// Events missing in the runs of B: dropped by the kernel, or counted by it and not in the recording.
    b_lost: u64,
    /// Places of the runs of A that could not be read.
    a_damaged: u64,
    /// Places of the runs of B that could not be read.
    b_damaged: u64,
    /// The samples of intervals and p-values: slices of time within one run of each side, or runs.
    #[schemars(extend("enum" = ["slices", "runs"]))]
    varies_over: &'static str,
    /// Rows are significant if p_adjusted is at most this; the confidence of intervals is 1 - alpha.
    #[schemars(extend("exclusiveMinimum" = 0))]
    alpha: f64,
    /// Seed of the resamples.
    seed: u64,
    /// Method by which p_adjusted accounts for the number of rows.
    #[schemars(extend("const" = "benjamini_hochberg"))]
    correction: &'static str,
    /// Functions whose main caller differs between the sides; only in profiles.
    moved: Vec<MovedFunction<'r>>,
    /// Notes for the reader.
    notes: Vec<String>,
    /// All groups of either side with all their metrics, in descending order of the change of time.
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

    /// Whether there is one run per side, so that only the variation within runs is known.
    fn is_within_runs(&self) -> bool {
        self.diff.runs == (1, 1)
    }
}
