//! The part of recordings that a report covers, if it is not all: `part` of its document.

use schemars::JsonSchema;
use serde::Serialize;

use crate::json::times;
use crate::{Legend, Report, Table};

/// The part of the recordings that was read, if `--from`, `--to`, `--vm` or `--vcpu` left something out; otherwise
/// everything was read.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct SelectionRead {
    /// Names of the selected VMs; empty: all.
    vms: Vec<String>,
    /// Numbers of the selected vCPUs, such as `0,2-3`; null: all.
    vcpus: Option<String>,
    /// By recording, the range that was read; empty if no range was given.
    ranges: Vec<RangeRead>,
}

impl SelectionRead {
    /// The part with these VMs, and with vCPUs of these numbers.
    #[must_use]
    pub fn of_vcpus(vms: Vec<String>, vcpus: Option<String>) -> Self {
        Self { vms, vcpus, ranges: Vec::new() }
    }

    /// Adds the ranges of other recordings with the same selection.
    pub fn add(&mut self, other: Self) {
        if self.is_all() {
            *self = other;
        } else {
            self.ranges.extend(other.ranges);
        }
    }

    /// Adds the range of another recording.
    pub fn add_range(&mut self, range: RangeRead) {
        self.ranges.push(range);
    }

    fn is_all(&self) -> bool {
        self.vms.is_empty() && self.vcpus.is_none() && self.ranges.is_empty()
    }
}

/// The part of a recording within a range of time. Times are null if nothing is in the range.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct RangeRead {
    /// The recording's path.
    source: String,
    #[serde(flatten)]
    times: RangeTimes,
}

times! {
    /// The ends of a range, and the time that it leaves out.
    struct RangeTimes {
        /// Begin of the range that was read, on the clock of the selection: the host's, if a guest was aligned to it.
        from = "from",
        /// End of that range, exclusive.
        to = "to",
        /// Recorded time before it.
        left_out_before = "left_out_before",
        /// Recorded time after it.
        left_out_after = "left_out_after",
    }
}

impl RangeRead {
    /// The range between two times on the clock of the selection, and the recorded time before and after it, in
    /// nanoseconds; in ticks if the clock counts those.
    #[must_use]
    pub fn new(
        source: String,
        is_nanoseconds: bool,
        (from_ns, to_ns): (u64, u64),
        (before_ns, after_ns): (u64, u64),
    ) -> Self {
        let times = RangeTimes {
            in_ns: is_nanoseconds,
            from: Some(from_ns),
            to: Some(to_ns),
            left_out_before: Some(before_ns),
            left_out_after: Some(after_ns),
        };
        Self { source, times }
    }

    /// A range without events.
    #[must_use]
    pub fn nothing(source: String) -> Self {
        let (from, to) = (None, None);
        let (left_out_before, left_out_after) = (None, None);
        Self {
            source,
            times: RangeTimes { in_ns: true, from, to, left_out_before, left_out_after },
        }
    }
}

/// A report whose document contains the part of the recordings that it covers. Text output has that as a message on
/// standard error.
#[derive(Debug)]
pub struct SelectedReport<'p, R> {
    pub report: &'p R,
    pub part: &'p SelectionRead,
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct Document<'p, D> {
    #[serde(flatten)]
    report: D,
    #[serde(skip_serializing_if = "SelectionRead::is_all")]
    part: &'p SelectionRead,
}

impl<R: Report> Report for SelectedReport<'_, R> {
    fn headline(&self) -> String {
        self.report.headline()
    }

    fn tables(&self, width: Option<usize>) -> String {
        self.report.tables(width)
    }

    fn legend(&self) -> Legend {
        self.report.legend()
    }

    fn document(&self) -> impl Serialize {
        Document { report: self.report.document(), part: self.part }
    }

    fn csv(&self) -> Table {
        self.report.csv()
    }
}
