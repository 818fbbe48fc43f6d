//! Times at which a vCPU certainly did not run its guest: from each `kvm_exit` to the next
//! `kvm_entry`. Guest events on that vCPU happened at other times.

use crate::exit_span::{ExitSpan, Outcome};

/// Intervals in which a vCPU did not run its guest, on the host's clock.
///
/// All other times are possible. Before the first exit, after the last exit, and wherever events
/// were lost, the guest's state is unknown, so nothing is ruled out.
#[derive(Clone, Debug, Default)]
pub struct Away {
    /// From exit to entry, sorted and disjoint.
    spans: Vec<(i64, i64)>,
    /// Time stamp of the last entry or exit.
    last_edge_ns: Option<u64>,
    /// Shorter intervals are dropped, to stay within [`MAX_SPANS`].
    shortest_ns: i64,
}

/// Maximum intervals per vCPU. Dropping intervals loosens bounds, but makes none wrong.
const MAX_SPANS: usize = 1 << 21;

impl Away {
    /// Adds the next exit.
    ///
    /// An exit with the time stamp of the preceding entry means that the clock stood still: the
    /// kernel's `local` and `global` clocks do so when their source would run back or too far
    /// ahead. The real time of the exit is then unknown, except that it was later.
    pub fn add(&mut self, span: &ExitSpan) {
        let stood_still = self.last_edge_ns == Some(span.start_ns);
        self.last_edge_ns = Some(span.end_ns);
        if span.outcome == Outcome::Paired && !stood_still {
            self.push(span.start_ns, span.end_ns);
        }
    }

    /// Adds an interval; ignores it if it is empty or does not follow the previous ones.
    pub fn push(&mut self, from_ns: u64, to_ns: u64) {
        let (Ok(from), Ok(to)) = (i64::try_from(from_ns), i64::try_from(to_ns)) else { return };
        let after = self.spans.last().is_none_or(|last| last.1 <= from);
        if after && from < to && to - from >= self.shortest_ns {
            self.spans.push((from, to));
        }
        if self.spans.len() > MAX_SPANS {
            self.thin_out();
        }
    }

    fn thin_out(&mut self) {
        let mut lengths: Vec<i64> = self.spans.iter().map(|(from, to)| to - from).collect();
        let middle = lengths.len() / 2;
        let (_, median, _) = lengths.select_nth_unstable(middle);
        self.shortest_ns = median.saturating_add(1);
        self.spans.retain(|(from, to)| to - from >= self.shortest_ns);
    }

    /// The number of intervals.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are no intervals.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// From the first exit to the last entry.
    #[must_use]
    pub fn extent(&self) -> Option<(i64, i64)> {
        Some((self.spans.first()?.0, self.spans.last()?.1))
    }

    /// The interval that contains `at`, ends excluded.
    #[must_use]
    pub fn around(&self, at: i64) -> Option<(i64, i64)> {
        let index = self.first_ending_after(at);
        self.spans.get(index).copied().filter(|span| span.0 < at)
    }

    /// The first and the last moment between `low` and `high` at which the guest can have run.
    #[must_use]
    pub fn possible(&self, low: i64, high: i64) -> Option<(i64, i64)> {
        let low = self.around(low).map_or(low, |span| span.1);
        let high = self.around(high).map_or(high, |span| span.0);
        (low <= high).then_some((low, high))
    }

    /// Index of the window between two intervals that contains `at`, or of the next window.
    pub(super) fn window(&self, at: i64) -> usize {
        self.first_ending_after(at)
    }

    /// The intervals that end after `at`.
    pub(super) fn from(&self, at: i64) -> &[(i64, i64)] {
        self.spans.get(self.first_ending_after(at)..).unwrap_or_default()
    }

    /// The share of the time from `low` to `high` in which the guest can have run.
    pub(super) fn share_possible(&self, low: i64, high: i64) -> f64 {
        let inside = self.from(low).iter().take_while(|span| span.0 < high);
        let away: i64 = inside.map(|span| span.1.min(high) - span.0.max(low)).sum();
        1.0 - away as f64 / high.saturating_sub(low).max(1) as f64
    }

    fn first_ending_after(&self, at: i64) -> usize {
        self.spans.partition_point(|span| span.1 <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away(spans: &[(u64, u64)]) -> Away {
        let mut away = Away::default();
        spans.iter().for_each(|&(from, to)| away.push(from, to));
        away
    }

    #[test]
    fn exits_and_entries_themselves_are_possible() {
        let away = away(&[(10, 20), (30, 40)]);
        assert_eq!(away.around(10), None);
        assert_eq!(away.around(11), Some((10, 20)));
        assert_eq!(away.around(20), None);
        assert_eq!(away.possible(12, 35), Some((20, 30)));
        assert_eq!(away.possible(12, 19), None);
        assert_eq!(away.possible(0, 100), Some((0, 100)));
    }

    #[test]
    fn what_is_not_in_order_is_left_out() {
        let away = away(&[(10, 20), (15, 25), (20, 20), (u64::MAX, 3), (20, 22)]);
        assert_eq!(away.from(i64::MIN), [(10, 20), (20, 22)]);
    }

    #[test]
    fn an_exit_stamped_like_the_entry_before_rules_nothing_out() {
        let mut away = Away::default();
        for (start_ns, end_ns) in [(10, 20), (30, 30), (30, 30), (30, 90), (95, 99)] {
            let span =
                ExitSpan { end_ns, outcome: Outcome::Paired, ..ExitSpan::new(start_ns, 0, 0) };
            away.add(&span);
        }
        assert_eq!(away.from(i64::MIN), [(10, 20), (95, 99)]);
    }

    #[test]
    fn too_many_spans_lose_the_short_ones() {
        let mut away = Away::default();
        for at in 0..=MAX_SPANS as u64 {
            away.push(100 * at, 100 * at + 1 + at % 50);
        }
        assert!(away.len() <= MAX_SPANS / 2 + 1, "{}", away.len());
        assert!(away.from(i64::MIN).iter().all(|(from, to)| to - from > 25));
    }
}
