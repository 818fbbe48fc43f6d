//! The report of `hyperscope calls`: which kernel functions ran, how long, and who called them.

mod document;
mod fill;
mod flame;
mod folded;
mod functions;
mod headline;
mod notes;
mod row;
mod stacks;
mod tables;
mod threads;

use analyses::calls::{Function, PerCall, RecordedCalls};
use serde::Serialize;

pub(crate) use self::document::Document;
use self::row::{Row, Whole};
use self::stacks::Stacks;
use crate::losses::LossSums;
use crate::table::Table;
use crate::{Legend, Report, column};

/// The calls of one recording.
#[derive(Debug)]
pub struct CallsSource {
    /// The recording, as the user named it.
    pub path: String,
    /// The machine it was made on.
    pub machine: String,
    /// Whether it was made in a guest.
    pub is_guest: bool,
    pub calls: RecordedCalls,
}

/// A sort order of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallSort {
    /// Number of calls.
    Count,
    /// Time in the function itself.
    Own,
    /// Time from call to return.
    Total,
}

/// How much of the call tree is shown.
#[derive(Clone, Copy, Debug)]
pub struct TreeLimits {
    /// Max functions of a stack.
    pub depth: usize,
    /// Min share of the recording, in percent.
    pub least_percent: f64,
}

/// Max rows of a document per recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    /// Functions with the longest time, or with most calls.
    pub(crate) functions: usize,
    /// Threads with the longest time.
    pub(crate) threads: usize,
}

/// The calls of all given recordings.
#[derive(Debug)]
pub struct CallsReport {
    /// One per recording.
    pub sources: Vec<CallsSource>,
    /// The sort order of functions; by count if there are no times.
    pub sort: CallSort,
    /// Functions and threads that tables show.
    pub top: usize,
    /// Limits of the call tree, if requested.
    pub tree: Option<TreeLimits>,
    /// Cost of the tracer per call, if it was measured.
    pub per_call: Option<PerCall>,
}

impl Report for CallsReport {
    fn headline(&self) -> String {
        headline::headline(self)
    }

    fn tables(&self, width: Option<usize>) -> String {
        self.sources.iter().map(|source| self.source_text(source, width)).collect()
    }

    fn legend(&self) -> Legend {
        vec![
            ("self", "CPU time without callees"),
            ("total", "from call to return"),
            ("unaccounted", "outside traced calls"),
            ("spares", "share of events that are not written then"),
        ]
    }

    fn document(&self) -> impl Serialize {
        self.document_of(Most { functions: usize::MAX, threads: usize::MAX })
    }

    fn csv(&self) -> Table {
        let rows = self.sources.iter().flat_map(|source| {
            let functions = self.sorted(&source.calls);
            self.rows(source, functions)
        });
        let in_ns: Vec<bool> = self.sources.iter().map(|source| source.calls.nanoseconds).collect();
        column::csv(&functions::columns(), &rows.collect::<Vec<_>>(), &in_ns)
    }
}

impl CallsReport {
    /// The document with the first functions and threads of each recording.
    pub(crate) fn document_of(&self, most: Most) -> Document<'_> {
        let losses = self.sources.iter().map(|source| &source.calls.losses);
        let interrupted = self.sources.iter().map(|source| source.calls.interrupted).sum();
        Document {
            schema: "hyperscope.calls/1",
            losses: LossSums::new(losses, interrupted),
            sources: self.sources.iter().map(|source| self.source(source, most)).collect(),
        }
    }
}

impl CallsSource {
    /// Whether calls have times.
    fn has_times(&self) -> bool {
        self.calls.has_times()
    }
}

impl CallsReport {
    /// Functions or threads of a recording as rows.
    fn rows<'r, T>(
        &self,
        source: &'r CallsSource,
        subjects: impl IntoIterator<Item = &'r T>,
    ) -> Vec<Row<'r, T>> {
        let (per_call, totals) = (self.per_call, Whole::from_source(source));
        subjects.into_iter().map(|subject| Row { source, per_call, totals, subject }).collect()
    }

    /// All functions with numbers, in the requested order.
    fn sorted<'c>(&self, calls: &'c RecordedCalls) -> Vec<&'c Function> {
        let mut functions: Vec<&Function> =
            calls.functions.iter().filter(|function| function.events > 0).collect();
        let by = |function: &Function| match self.sort {
            _ if !calls.has_times() => function.count,
            CallSort::Count => function.count,
            CallSort::Own => function.self_ns,
            CallSort::Total => function.total_ns,
        };
        functions.sort_by(|a, b| by(b).cmp(&by(a)).then_with(|| a.title().cmp(&b.title())));
        functions
    }

    /// Stacks with their times, or counts if there are no times, in the folded format: one line
    /// each, frames separated by semicolons.
    #[must_use]
    pub fn folded(&self) -> String {
        self.sources.iter().map(folded::folded).collect()
    }

    /// A flame graph as an SVG document.
    #[must_use]
    pub fn flame(&self, title: &str) -> String {
        flame::flame(&self.sources, title)
    }
}
