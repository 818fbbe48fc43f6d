//! A row of the report of calls: a function or a thread, with its recording.

use analyses::calls::PerCall;

use super::CallsSource;
use crate::column::{self, Column};

/// A function or a thread, within its recording.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'r, T> {
    pub(super) source: &'r CallsSource,
    pub(super) per_call: Option<PerCall>,
    /// Sums over all functions of the recording.
    pub(super) totals: Whole,
    pub(super) subject: &'r T,
}

/// The totals for shares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    pub(super) calls: u64,
    /// Includes the tracer's cost.
    pub(super) self_ns: u64,
}

impl Whole {
    pub(super) fn from_source(source: &CallsSource) -> Self {
        let calls = &source.calls;
        Self {
            calls: calls.sum(|function| function.count),
            self_ns: calls.sum(|function| function.self_ns),
        }
    }
}

impl<T> column::Row for Row<'_, T> {
    fn is_nanoseconds(&self) -> bool {
        self.source.calls.nanoseconds
    }
}

impl<T> Row<'_, T> {
    /// The value, if the tracer records returns.
    pub(super) fn timed(&self, value: u64) -> Option<u64> {
        self.source.has_times().then_some(value)
    }

    /// Time off the CPU, if it was recorded.
    pub(super) fn off_cpu(&self, off_cpu_ns: u64) -> Option<u64> {
        self.timed(off_cpu_ns).filter(|_| self.source.calls.switches)
    }
}

/// A column of times that requires a tracer of returns.
pub(super) fn timed<'r, T: 'r>(
    names: (&str, &str),
    help: &str,
    time_of: impl Fn(&Row<'r, T>) -> u64 + 'static,
) -> Column<Row<'r, T>> {
    Column::time(names, help, move |row: &Row<'r, T>| row.timed(time_of(row)))
        .null("the tracer records no times")
}
