//! Times in which a guest sampled one of its CPUs: from the first to the last sample, without long gaps.

/// Gaps longer than this many typical periods count as not sampled.
const MAX_PERIODS: u64 = 8;

/// Times in which a guest's CPU was sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Coverage {
    /// Typical time between two samples.
    pub(super) period_ns: u64,
    /// From the first to just after the last sample of each interval, ascending.
    intervals: Vec<(u64, u64)>,
    /// Index of the first interval that has not ended.
    next: usize,
}

/// A part of a time span, and whether the guest sampled itself in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Covered {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    pub(super) is_sampled: bool,
}

impl Coverage {
    /// Coverage of samples at `times`, which must be ascending.
    pub(super) fn from_times(times: impl Iterator<Item = u64> + Clone) -> Self {
        let period_ns = usual_ns(times.clone());
        let most_ns = period_ns.saturating_mul(MAX_PERIODS);
        let mut intervals: Vec<(u64, u64)> = Vec::new();
        for at_ns in times {
            let end_ns = at_ns.saturating_add(1);
            match intervals.last_mut() {
                Some((_, last)) if at_ns.saturating_sub(*last) < most_ns => *last = end_ns,
                _ => intervals.push((at_ns, end_ns)),
            }
        }
        Self { period_ns, intervals, next: 0 }
    }

    /// The first part of a span: from `from_ns` to the next start or end of sampling, at most `to_ns`. Spans must
    /// be in the order of time.
    pub(super) fn part(&mut self, from_ns: u64, to_ns: u64) -> Covered {
        while self.intervals.get(self.next).is_some_and(|(_, end_ns)| *end_ns <= from_ns) {
            self.next += 1;
        }
        match self.intervals.get(self.next) {
            Some((begin_ns, _)) if *begin_ns > from_ns => {
                Covered { from_ns, to_ns: to_ns.min(*begin_ns), is_sampled: false }
            }
            Some((_, end_ns)) => Covered { from_ns, to_ns: to_ns.min(*end_ns), is_sampled: true },
            None => Covered { from_ns, to_ns, is_sampled: false },
        }
    }
}

/// Median time between samples; 0 for fewer than two samples.
fn usual_ns(times: impl Iterator<Item = u64> + Clone) -> u64 {
    let pairs = times.clone().zip(times.skip(1));
    let mut periods: Vec<u64> = pairs.map(|(at, next)| next.saturating_sub(at)).collect();
    let middle = periods.len() / 2;
    if periods.is_empty() { 0 } else { *periods.select_nth_unstable(middle).1 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn coverage(times: &[u64]) -> Coverage {
        Coverage::from_times(times.iter().copied())
    }

    fn parts(coverage: &mut Coverage, from_ns: u64, to_ns: u64) -> Vec<(u64, u64, bool)> {
        let (mut parts, mut at_ns) = (Vec::new(), from_ns);
        while at_ns < to_ns {
            let part = coverage.part(at_ns, to_ns);
            parts.push((part.from_ns, part.to_ns, part.is_sampled));
            at_ns = part.to_ns;
        }
        parts
    }

    #[test]
    fn what_lies_outside_the_samples_and_in_a_long_gap_is_not_sampled() {
        let mut coverage = coverage(&[100, 110, 120, 199, 300, 310, 320]);
        assert_eq!(coverage.period_ns, 10);
        let found = parts(&mut coverage, 50, 400);
        let expected = [
            (50, 100, false),
            (100, 200, true),
            (200, 300, false),
            (300, 321, true),
            (321, 400, false),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_single_sample_stands_for_no_time() {
        let mut coverage = coverage(&[100]);
        let found = parts(&mut coverage, 0, 200);
        assert_eq!(found, [(0, 100, false), (100, 101, true), (101, 200, false)]);
        let mut none = Coverage::default();
        assert_eq!(parts(&mut none, 0, 200), [(0, 200, false)]);
    }

    proptest! {
        #[test]
        fn parts_are_the_span_and_samples_lie_in_sampled_ones(
            mut times in prop::collection::vec(0..10_000_u64, 0..40),
            cuts in prop::collection::vec(0..12_000_u64, 1..20),
        ) {
            times.sort_unstable();
            let mut cuts = cuts;
            cuts.extend([0, 12_000]);
            cuts.sort_unstable();
            let mut coverage = super::tests::coverage(&times);
            let mut all = Vec::new();
            for pair in cuts.windows(2) {
                all.extend(parts(&mut coverage, pair[0], pair[1]));
            }
            prop_assert!(all.windows(2).all(|pair| pair[0].1 == pair[1].0));
            prop_assert_eq!((all[0].0, all[all.len() - 1].1), (0, 12_000));
            for time in times {
                prop_assert!(all.iter().any(|&(from, to, is_sampled)| from <= time && time < to && is_sampled));
            }
        }
    }
}
