//! How much of a recording a range of time covers.

use report::RangeRead;
use sources::{Recording, TimeRange};

use crate::say;

/// Whether a range contains no time from the first to the last event.
pub(super) fn is_outside((first_ns, last_ns): (u64, u64), times: TimeRange) -> bool {
    last_ns < times.from_ns || first_ns >= times.to_ns
}

pub(super) fn outside_note(recording: &Recording, (first_ns, last_ns): (u64, u64)) -> String {
    let (first, last) = (shown(recording, first_ns), shown(recording, last_ns));
    let path = recording.path().display();
    format!("{path}: no events in this range: the recording covers {first} to {last}")
}

/// A moment on the recording's clock, as text.
fn shown(recording: &Recording, ns: u64) -> String {
    if recording.is_nanoseconds() {
        format!("{}.{:09} s", ns / 1_000_000_000, ns % 1_000_000_000)
    } else {
        format!("{ns} ticks")
    }
}

/// The part of a recording that a range of time covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct RangeCoverage {
    from_ns: u64,
    to_ns: u64,
    before_ns: u64,
    after_ns: u64,
}

impl RangeCoverage {
    pub(super) fn by(times: TimeRange, (first_ns, last_ns): (u64, u64)) -> Self {
        Self {
            from_ns: times.from_ns.max(first_ns),
            to_ns: times.to_ns.min(last_ns.saturating_add(1)),
            before_ns: times.from_ns.saturating_sub(first_ns),
            after_ns: last_ns.saturating_add(1).saturating_sub(times.to_ns),
        }
    }

    pub(super) fn to_range_read(self, recording: &Recording) -> RangeRead {
        let Self { from_ns, to_ns, before_ns, after_ns } = self;
        let source = recording.path().display().to_string();
        let is_nanoseconds = recording.is_nanoseconds();
        RangeRead::new(source, is_nanoseconds, (from_ns, to_ns), (before_ns, after_ns))
    }

    /// Reports on standard error which part is read and which is left out.
    pub(super) fn report(self, recording: &Recording) {
        let length = |ns| report::time(ns, recording.is_nanoseconds());
        say(&format!(
            "{}: read from {} to {}; left out: {} before it, {} after it",
            recording.path().display(),
            shown(recording, self.from_ns),
            shown(recording, self.to_ns),
            length(self.before_ns),
            length(self.after_ns),
        ));
    }
}
