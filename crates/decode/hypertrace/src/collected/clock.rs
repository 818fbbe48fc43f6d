//! Converts times of the monotonic clock to times of the recording's trace clock.

use super::entry::ClockPair;

/// The trace clock at a time of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    mono_ns: u64,
    trace: u64,
}

/// Linear interpolation between the times at which both clocks were read.
#[derive(Clone, Debug, Default)]
pub struct Conversion {
    points: Vec<Point>,
    bound_ns: u64,
    left_out: u64,
    /// Whether one unit of the trace clock is a nanosecond.
    in_ns: bool,
}

impl Conversion {
    /// The conversion through these pairs, in order. Skips a pair that goes back on either clock.
    /// `in_ns`: the trace clock counts nanoseconds, so a single pair is sufficient.
    #[must_use]
    pub fn new(pairs: &[ClockPair], in_ns: bool) -> Self {
        let mut conversion = Self { in_ns, ..Self::default() };
        for pair in pairs {
            conversion.add(pair);
        }
        conversion
    }

    fn add(&mut self, pair: &ClockPair) {
        let Some(gap_ns) = pair.mono_after_ns.checked_sub(pair.mono_before_ns) else {
            self.left_out = self.left_out.saturating_add(1);
            return;
        };
        let mono_ns = pair.mono_before_ns.saturating_add(gap_ns / 2);
        let point = Point { mono_ns, trace: pair.trace };
        let follows = |last: &Point| last.mono_ns < point.mono_ns && last.trace < point.trace;
        if self.points.last().is_none_or(follows) {
            self.points.push(point);
            self.bound_ns = self.bound_ns.max(gap_ns.div_ceil(2));
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
    }

    /// Maximum error of a converted time, in nanoseconds: the trace clock was read at an unknown
    /// moment between two readings of the monotonic clock.
    #[must_use]
    pub fn bound_ns(&self) -> u64 {
        self.bound_ns
    }

    /// Number of pairs in use.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.points.len()
    }

    /// Number of skipped pairs.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The trace clock in its own units; extrapolates before the first and after the last pair.
    /// `None` if there are too few pairs.
    #[must_use]
    pub fn trace(&self, mono_ns: u64) -> Option<u64> {
        let next = self.points.partition_point(|point| point.mono_ns <= mono_ns);
        let from = next.saturating_sub(1).min(self.points.len().saturating_sub(2));
        let low = self.points.get(from)?;
        let since = i128::from(mono_ns).checked_sub(low.mono_ns.into())?;
        let after = match self.points.get(from.checked_add(1)?) {
            Some(high) => {
                let run = i128::from(high.mono_ns).checked_sub(low.mono_ns.into())?;
                let rise = i128::from(high.trace).checked_sub(low.trace.into())?;
                since.checked_mul(rise)?.checked_div_euclid(run)?
            }
            None if self.in_ns => since,
            None => return None,
        };
        u64::try_from(i128::from(low.trace).checked_add(after)?).ok()
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;

    fn pair(mono_ns: u64, trace: u64) -> ClockPair {
        ClockPair { mono_before_ns: mono_ns - 40, trace, mono_after_ns: mono_ns + 41 }
    }

    #[test]
    fn times_lie_on_the_lines_between_pairs_and_beyond_them() {
        // Three ticks a nanosecond, then two.
        let pairs = [pair(1000, 30_000), pair(2000, 33_000), pair(4000, 37_000)];
        let clock = Conversion::new(&pairs, false);
        for (mono_ns, trace) in
            [(1000, 30_000), (1500, 31_500), (3000, 35_000), (0, 27_000), (5000, 39_000)]
        {
            assert_eq!(clock.trace(mono_ns), Some(trace), "{mono_ns}");
        }
        assert_eq!((clock.bound_ns(), clock.pairs(), clock.left_out()), (41, 3, 0));
    }

    #[test]
    fn one_pair_is_enough_where_both_clocks_count_nanoseconds() {
        let pairs = [pair(1000, 30_000)];
        assert_eq!(Conversion::new(&pairs, true).trace(900), Some(29_900));
        assert_eq!(Conversion::new(&pairs, false).trace(900), None);
        assert_eq!(Conversion::new(&[], true).trace(900), None);
    }

    #[test]
    fn pairs_that_go_back_are_left_out_and_nothing_overflows() {
        let back = ClockPair { mono_before_ns: 9000, trace: 50_000, mono_after_ns: 8000 };
        let clock = Conversion::new(&[pair(1000, 30_000), back, pair(2000, 20_000)], true);
        assert_eq!((clock.pairs(), clock.left_out()), (1, 2));
        let steep = [
            ClockPair { mono_before_ns: 0, trace: 0, mono_after_ns: 0 },
            ClockPair { mono_before_ns: 1, trace: u64::MAX, mono_after_ns: 1 },
        ];
        assert_eq!(Conversion::new(&steep, false).trace(u64::MAX), None);
    }
}
