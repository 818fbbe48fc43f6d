//! Losses over time, and the part of each slice that was recorded without a loss.

use ftrace::eventfmt::EventFormat;
use timeline::reading::each_trace_event;
use timeline::trace_events::{EventRequest, Gap, TraceEvent, TraceEventSink, WantsTraceEvents};

use crate::lake::clock::SLICE_NS;
use crate::lake::convert::Context;

/// Intervals in which some CPU of a recording lost events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage {
    /// In order of discovery.
    pub(crate) gaps: Vec<Gap>,
    /// The union over all CPUs in Unix time, sorted and disjoint.
    lost: Vec<(i64, i64)>,
    /// First and last event in Unix time.
    ends: Option<(i64, i64)>,
}

impl Coverage {
    /// Time of a slice that was recorded without a loss.
    pub(crate) fn of_slice(&self, slice_ns: i64) -> i64 {
        let Some((first, last)) = self.ends else { return 0 };
        let (from, to) = (slice_ns.max(first), slice_ns.saturating_add(SLICE_NS).min(last));
        let begin = self.lost.partition_point(|gap| gap.1 <= from);
        let gaps = self.lost.get(begin..).unwrap_or_default().iter().take_while(|gap| gap.0 < to);
        let lost: i64 = gaps.map(|gap| gap.1.min(to) - gap.0.max(from)).sum();
        (to.saturating_sub(from) - lost).max(0)
    }
}

struct Gaps<'c>(&'c mut [Coverage]);

impl WantsTraceEvents for Gaps<'_> {
    fn wanted(&self, _: usize, _: &EventFormat) -> Option<EventRequest> {
        None
    }
}

impl TraceEventSink for Gaps<'_> {
    fn event(&mut self, _: &TraceEvent) {}

    fn gap(&mut self, gap: &Gap) {
        if let Some(coverage) = self.0.get_mut(usize::from(gap.recording)) {
            coverage.gaps.push(*gap);
        }
    }
}

/// By recording, its losses. Only recordings that report losses are read.
pub(crate) fn gaps(context: &Context<'_>) -> Vec<Coverage> {
    let unix = |ns| context.clock.unix_ns(ns);
    let mut all: Vec<Coverage> = context
        .surveys
        .iter()
        .map(|survey| Coverage {
            ends: survey.ends_ns.map(|(first, last)| (unix(first), unix(last))),
            ..Coverage::default()
        })
        .collect();
    if context.surveys.iter().any(crate::lake::survey::Survey::has_losses) {
        each_trace_event(context.question.view.recordings, &mut Gaps(&mut all), context.tick);
    }
    for coverage in &mut all {
        let Some((first, last)) = coverage.ends else { continue };
        let bounds_of = |gap: &Gap| {
            let from = if gap.from_ns == 0 { first } else { unix(gap.from_ns) };
            (from, if gap.to_ns == u64::MAX { last } else { unix(gap.to_ns) })
        };
        coverage.lost = apart(coverage.gaps.iter().map(bounds_of).collect());
    }
    all
}

/// Sorts intervals, and merges overlapping ones.
fn apart(mut intervals: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    intervals.sort_unstable();
    let mut apart: Vec<(i64, i64)> = Vec::new();
    for (from, to) in intervals {
        match apart.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => apart.push((from, to.max(from))),
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_on_two_cpus_at_once_is_lost_once() {
        let lost = apart(vec![(30, 40), (10, 20), (15, 25), (40, 41)]);
        assert_eq!(lost, [(10, 25), (30, 41)]);
        let coverage = Coverage { gaps: Vec::new(), lost, ends: Some((5, SLICE_NS + 7)) };
        assert_eq!(coverage.of_slice(0), SLICE_NS - 5 - 15 - 11);
        assert_eq!(coverage.of_slice(SLICE_NS), 7);
        assert_eq!(coverage.of_slice(2 * SLICE_NS), 0);
        assert_eq!(coverage.of_slice(-SLICE_NS), 0);
    }
}
