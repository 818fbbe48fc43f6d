//! The longest of several spans of time; of equally long ones the earliest.

use std::cmp::Reverse;

/// A longest span: when it began and ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LongestSpan(Option<(u64, u64)>);

impl LongestSpan {
    pub(crate) fn add(&mut self, from_ns: u64, to_ns: u64) {
        self.merge(Self(Some((from_ns, to_ns))));
    }

    pub(crate) fn merge(&mut self, other: Self) {
        let key = |(from_ns, to_ns): (u64, u64)| (to_ns.saturating_sub(from_ns), Reverse(from_ns));
        self.0 = self.0.into_iter().chain(other.0).max_by_key(|span| key(*span));
    }

    /// From when to when; `None` without any span.
    pub(crate) const fn span_ns(self) -> Option<(u64, u64)> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_of_the_longest_spans_is_kept_in_any_order() {
        let spans = [(5, 9), (20, 25), (30, 35), (40, 41)];
        let longest = |spans: &mut dyn Iterator<Item = (u64, u64)>| {
            let mut longest = LongestSpan::default();
            spans.for_each(|(from_ns, to_ns)| longest.add(from_ns, to_ns));
            longest.span_ns()
        };
        assert_eq!(longest(&mut spans.into_iter()), Some((20, 25)));
        assert_eq!(longest(&mut spans.into_iter().rev()), Some((20, 25)));
        assert_eq!(LongestSpan::default().span_ns(), None);
    }
}
