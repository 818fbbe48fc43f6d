//! The report of `hyperscope calls`: which kernel functions ran, how long, and who called them.

mod documents;
mod flame;
mod folded;
mod notes;
mod stacks;
mod tables;

use analyses::{Function, PerCall, RecordedCalls};
use serde::Serialize;
use serde_json::Value;

use self::stacks::Stacks;
use crate::json::Object;
use crate::table::Table;
use crate::units::unit;
use crate::{Report, losses};

/// The calls of one recording.
#[derive(Debug)]
pub struct CallsSource {
    /// The recording, as the user named it.
    pub path: String,
    /// The machine it was made on.
    pub machine: String,
    /// It was made in a guest.
    pub is_guest: bool,
    /// Its calls.
    pub calls: RecordedCalls,
}

/// What functions are sorted by.
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
    /// Functions on a stack at most.
    pub depth: usize,
    /// What is less than this share of its recording, in percent, is left out.
    pub least_percent: f64,
}

/// How many rows a document has at most of each recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    /// Functions: those that took longest, or were called most.
    pub(crate) functions: usize,
    /// Threads: those that took longest.
    pub(crate) threads: usize,
}

/// The calls of all recordings given.
#[derive(Debug)]
pub struct CallsReport {
    /// One per recording.
    pub sources: Vec<CallsSource>,
    /// What functions are sorted by; where there are no times, by count.
    pub sort: CallSort,
    /// Functions and threads that tables show.
    pub top: usize,
    /// The call tree, if it is asked for.
    pub tree: Option<TreeLimits>,
    /// What the tracer costs for each call, if somebody measured it.
    pub per_call: Option<PerCall>,
}

impl Report for CallsReport {
    fn text(&self, width: Option<usize>) -> String {
        let texts: Vec<String> =
            self.sources.iter().map(|source| self.source_text(source, width)).collect();
        texts.join("\n")
    }

    fn document(&self) -> impl Serialize {
        self.document_of(Most { functions: usize::MAX, threads: usize::MAX })
    }

    fn csv(&self) -> Table {
        let mut table = Table::default();
        let rows: Vec<(&CallsSource, &Function)> = self
            .sources
            .iter()
            .flat_map(|source| self.sorted(&source.calls).into_iter().map(move |one| (source, one)))
            .collect();
        let mut add = |title: &str, of: &dyn Fn(&CallsSource, &Function) -> String| {
            table.names(title, 0, rows.iter().map(|(source, one)| of(source, one)).collect());
        };
        add("machine", &|source, _| source.machine.clone());
        add("function", &|_, one| {
            one.name.clone().unwrap_or_else(|| format!("{:#x}", one.address))
        });
        add("module", &|_, one| one.module.clone().unwrap_or_default());
        add("count", &|_, one| one.count.to_string());
        let nanoseconds = self.sources.iter().all(|source| source.calls.nanoseconds);
        let unit = unit(nanoseconds);
        let mut time = |name: &str, of: fn(&Function) -> u64| {
            add(&format!("{name}_{unit}"), &|source, one| {
                if source.has_times() { of(one).to_string() } else { String::new() }
            });
        };
        time("self", |one| one.self_ns);
        time("total", |one| one.total_ns);
        time("off_cpu", |one| one.off_cpu_ns);
        time("max", |one| one.max_ns);
        add("events", &|_, one| one.events.to_string());
        add("without_call", &|_, one| one.without_call.to_string());
        add("without_return", &|_, one| one.without_return.to_string());
        table
    }
}

impl CallsReport {
    /// The document with the first functions and threads of each recording.
    pub(crate) fn document_of(&self, most: Most) -> Value {
        let losses = self.sources.iter().map(|source| &source.calls.losses);
        let interrupted = self.sources.iter().map(|source| source.calls.interrupted).sum();
        let sources: Vec<Value> =
            self.sources.iter().map(|source| self.source_json(source, most)).collect();
        Object::default()
            .set("schema", "hyperscope.calls/1")
            .set("losses", losses::json(losses, interrupted))
            .set("sources", sources)
            .done()
    }
}

impl CallsSource {
    /// Whether calls have times.
    fn has_times(&self) -> bool {
        self.calls.has_times()
    }
}

impl CallsReport {
    /// All functions that have figures, in the order asked for.
    fn sorted<'c>(&self, calls: &'c RecordedCalls) -> Vec<&'c Function> {
        let mut functions: Vec<&Function> =
            calls.functions.iter().filter(|one| one.events > 0).collect();
        let by = |one: &Function| match self.sort {
            _ if !calls.has_times() => one.count,
            CallSort::Count => one.count,
            CallSort::Own => one.self_ns,
            CallSort::Total => one.total_ns,
        };
        functions.sort_by(|a, b| by(b).cmp(&by(a)).then_with(|| a.title().cmp(&b.title())));
        functions
    }

    /// Stacks with their times, or counts where there are none, as other tools read them: a line
    /// each, frames set apart by semicolons.
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
