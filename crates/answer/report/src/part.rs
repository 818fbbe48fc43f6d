//! The part of recordings that a report is of, where that is not all of them: `part` of its document.

use schemars::JsonSchema;
use serde::Serialize;

use crate::json::times;
use crate::{Report, Table};

/// The part of the recordings that was read, where `--from`, `--to`, `--vm` or `--vcpu` left something out; without it
/// all was read.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct SelectionRead {
    /// Names of the VMs asked for; none: all.
    vms: Vec<String>,
    /// Numbers of the vCPUs asked for, such as `0,2-3`; null: all.
    vcpus: Option<String>,
    /// By recording, what was read of it; none where no range was given.
    ranges: Vec<RangeRead>,
}

impl SelectionRead {
    /// Of these VMs, and of vCPUs with these numbers.
    #[must_use]
    pub fn of_vcpus(vms: Vec<String>, vcpus: Option<String>) -> Self {
        Self { vms, vcpus, ranges: Vec::new() }
    }

    /// Adds the ranges of one more reading of the same part, of other recordings.
    pub fn add(&mut self, other: Self) {
        if self.is_all() {
            *self = other;
        } else {
            self.ranges.extend(other.ranges);
        }
    }

    /// Adds the range that was read of one more recording.
    pub fn add_range(&mut self, range: RangeRead) {
        self.ranges.push(range);
    }

    fn is_all(&self) -> bool {
        self.vms.is_empty() && self.vcpus.is_none() && self.ranges.is_empty()
    }
}

/// What a range of time leaves of a recording. Times are null where nothing of it lies in the range.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct RangeRead {
    /// The recording's path.
    source: String,
    #[serde(flatten)]
    times: RangeTimes,
}

times! {
    /// The ends of a range, and what it leaves out.
    struct RangeTimes {
        /// The first moment that was read, on the clock that the range was given by: the host's, where a guest was aligned to it.
        from = "from",
        /// The first moment after what was read.
        to = "to",
        /// How much was recorded before.
        left_out_before = "left_out_before",
        /// How much was recorded after it.
        left_out_after = "left_out_after",
    }
}

impl RangeRead {
    /// The part from one moment to another, on the clock that the range was given by, and how much lies
    /// before and after it, in nanoseconds; in ticks where the clock counts those.
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

    /// Nothing lies in the range.
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

/// A report whose document says which part of the recordings it is of. What a person reads has that as a
/// message.
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
    fn text(&self, width: Option<usize>) -> String {
        self.report.text(width)
    }

    fn document(&self) -> impl Serialize {
        Document { report: self.report.document(), part: self.part }
    }

    fn csv(&self) -> Table {
        self.report.csv()
    }
}
