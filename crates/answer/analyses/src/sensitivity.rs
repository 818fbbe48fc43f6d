//! The slowdown of a workload per nanosecond of exit time: compares slices of time in which exits are delayed by a
//! known time with adjacent slices without delays.
//!
//! Each block of slices gets a linear regression of the time per unit of progress on the added delay per unit. The
//! slope is the slowdown: 1 if the workload waits for every such exit, 0 if the delay overlaps with other waiting.
//! Blocks are independent, and drift over minutes is constant within a block. The interval is Student's t interval
//! of the blocks' slopes.

use stats::Estimate;
use timeline::delays::DelaySlice;

/// Whether the slice delays exits of this reason, or none.
fn is_about(slice: &DelaySlice, reason: usize) -> bool {
    slice.delay_ns.is_none_or(|(delayed, _)| delayed == reason)
}

/// Time and added delay per unit of progress in a slice; `None` without progress.
fn unit_ns(slice: &DelaySlice, reason: usize) -> Option<(f64, f64)> {
    let units = slice.counts.progress as f64;
    let delay_ns = slice.counts.of_reason(reason).delay_ns as f64;
    (units > 0.0).then(|| (slice.duration_ns as f64 / units, delay_ns / units))
}

/// All slices with one delay of a reason, or without delays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DelayPoint {
    /// The configured delay; 0: none.
    pub delay_ns: u64,
    pub slices: usize,
    pub delayed: u64,
    /// Mean of the real delays; `None` if no exit was delayed.
    pub mean_delay_ns: Option<f64>,
    /// Units of progress per second.
    pub rate: f64,
    /// Slowdown per unit, for each added nanosecond; `None` if unknown.
    pub paid: Option<f64>,
}

/// Slowdown by exits of one reason.
#[derive(Clone, Debug, PartialEq)]
pub struct ReasonSensitivity {
    /// Slowdown in nanoseconds per nanosecond of these exits; `None` if no block has a slope.
    pub slope: Option<Estimate>,
    /// Max share of the workload's time to gain if these exits took no time: the slope times their share of the
    /// time. `None` if unknown.
    pub max_gain: Option<Estimate>,
    /// Number of these exits per unit of progress, without delays.
    pub exits_a_unit: Option<f64>,
    /// Mean time of an exit from exit to entry, without delays.
    pub exit_ns: Option<f64>,
    /// Points by delay, ascending; the first has no delay.
    pub points: Vec<DelayPoint>,
}

/// Slowdown of a workload by exits.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivity {
    /// By reason, in the order of the request.
    pub reasons: Vec<ReasonSensitivity>,
    /// Number of complete blocks.
    pub blocks: usize,
    /// Slices without progress: their blocks are ignored for their reason.
    pub without_progress: usize,
    /// Undelayed exits of other threads.
    pub foreign: u64,
}

/// Slowdown by exits of each reason. `reasons` is the number of reasons, `a_block` the number of slices per block;
/// an incomplete last block is ignored.
#[must_use]
pub fn sensitivity(slices: &[DelaySlice], reasons: usize, a_block: usize) -> Sensitivity {
    let blocks = slices.chunks_exact(a_block.max(1));
    let block_slices = slices.get(..slices.len() - blocks.remainder().len()).unwrap_or_default();
    let of_reason = |reason| {
        let slopes: Vec<f64> = blocks.clone().filter_map(|block| slope(block, reason)).collect();
        ReasonSensitivity::new(Estimate::from_values(&slopes), block_slices, reason)
    };
    Sensitivity {
        reasons: (0..reasons).map(of_reason).collect(),
        blocks: blocks.len(),
        without_progress: block_slices.iter().filter(|slice| slice.counts.progress == 0).count(),
        foreign: block_slices.iter().map(|slice| slice.counts.foreign).fold(0, u64::saturating_add),
    }
}

impl ReasonSensitivity {
    fn new(slope: Option<Estimate>, all: &[DelaySlice], reason: usize) -> Self {
        let free = Sums::from_slices(all.iter().filter(|slice| slice.delay_ns.is_none()), reason);
        let share = ratio(free.handled_ns, free.duration_ns).filter(|_| free.handled > 0.0);
        Self {
            slope,
            // A slope below 0 is due to chance: longer exits cannot speed up the guest.
            max_gain: slope
                .zip(share)
                .map(|(slope, share)| slope.map(|slope| (slope * share.min(1.0)).max(0.0))),
            exits_a_unit: ratio(free.handled, free.units),
            exit_ns: ratio(free.handled_ns, free.handled),
            points: points(all, reason, &free),
        }
    }
}

fn ratio(part: f64, total: f64) -> Option<f64> {
    (total > 0.0).then(|| part / total)
}

/// Least-squares slope in one block; `None` if a slice had no progress, or no exit was delayed.
fn slope(block: &[DelaySlice], reason: usize) -> Option<f64> {
    let slices = || block.iter().filter(|slice| is_about(slice, reason));
    let units: Vec<(f64, f64)> =
        slices().map(|slice| unit_ns(slice, reason)).collect::<Option<_>>()?;
    let n = units.len() as f64;
    let (mean_ns, mean_added_ns) = units
        .iter()
        .fold((0.0, 0.0), |(all, added), (ns, added_ns)| (all + ns / n, added + added_ns / n));
    let squares: f64 = units.iter().map(|(_, added)| (added - mean_added_ns).powi(2)).sum();
    let products: f64 =
        units.iter().map(|(ns, added)| (ns - mean_ns) * (added - mean_added_ns)).sum();
    (squares > 0.0).then(|| products / squares).filter(|slope| slope.is_finite())
}

/// `free` has the sums without delays.
fn points(all: &[DelaySlice], reason: usize, free: &Sums) -> Vec<DelayPoint> {
    let delay_of = |slice: &DelaySlice| slice.delay_ns.map_or(0, |(_, delay_ns)| delay_ns);
    let slices = || all.iter().filter(|slice| is_about(slice, reason));
    let mut delays: Vec<u64> = slices().map(delay_of).collect();
    delays.sort_unstable();
    delays.dedup();
    let sums =
        |delay_ns| Sums::from_slices(slices().filter(|slice| delay_of(slice) == delay_ns), reason);
    delays.into_iter().map(|delay_ns| sums(delay_ns).point(delay_ns, free)).collect()
}

/// Sums over slices with one delay.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    slices: usize,
    duration_ns: f64,
    units: f64,
    delayed: u64,
    delay_ns: f64,
    handled: f64,
    handled_ns: f64,
}

impl Sums {
    fn from_slices<'s>(slices: impl Iterator<Item = &'s DelaySlice>, reason: usize) -> Self {
        slices.fold(Self::default(), |sums, slice| {
            let counts = slice.counts.of_reason(reason);
            Self {
                slices: sums.slices + 1,
                duration_ns: sums.duration_ns + slice.duration_ns as f64,
                units: sums.units + slice.counts.progress as f64,
                delayed: sums.delayed.saturating_add(counts.delayed),
                delay_ns: sums.delay_ns + counts.delay_ns as f64,
                handled: sums.handled + counts.handled as f64,
                handled_ns: sums.handled_ns + counts.handled_ns as f64,
            }
        })
    }

    fn point(&self, delay_ns: u64, free: &Self) -> DelayPoint {
        let is_known = delay_ns > 0 && free.units > 0.0 && self.units > 0.0 && self.delayed > 0;
        let paid = is_known.then(|| {
            let longer_ns = self.duration_ns / self.units - free.duration_ns / free.units;
            let added_ns = self.delay_ns / self.units - free.delay_ns / free.units;
            (added_ns > 0.0).then(|| longer_ns / added_ns)
        });
        let paid = paid.flatten().filter(|paid| paid.is_finite());
        DelayPoint {
            delay_ns,
            slices: self.slices,
            delayed: self.delayed,
            mean_delay_ns: ratio(self.delay_ns, self.delayed as f64),
            rate: ratio(self.units, self.duration_ns).unwrap_or(0.0) * 1e9,
            paid,
        }
    }
}

#[cfg(test)]
mod tests {
    use stats::Chance;

    use super::*;
    use timeline::delays::{DelayCounts, ReasonCounts};

    const DELAYS_NS: [u64; 4] = [0, 1_000, 2_000, 5_000];
    const A_BLOCK: usize = DELAYS_NS.len();

    /// A workload that takes `own_ns` and `exits` exits per unit, and is slowed down by the share `paid` of their
    /// delay, with noise.
    fn blocks(
        blocks: usize,
        (own_ns, exits, paid): (f64, f64, f64),
        noise: f64,
    ) -> Vec<DelaySlice> {
        let mut chance = Chance::of_part(7, 0);
        let mut slices = Vec::new();
        for block in 1..=blocks {
            for delay_ns in DELAYS_NS {
                let uneven = 1.0 + noise * (chance.below(2001) as f64 / 1000.0 - 1.0);
                // The machine also slows down over time.
                let drift = 1.0 + block as f64 * 0.01;
                let unit_ns = own_ns * uneven * drift + paid * exits * delay_ns as f64;
                let units = (1e8 / unit_ns) as u64;
                let all = (units as f64 * exits) as u64;
                let delayed = if delay_ns > 0 { all } else { 0 };
                slices.push(DelaySlice {
                    delay_ns: (delay_ns > 0).then_some((0, delay_ns)),
                    duration_ns: 100_000_000,
                    counts: DelayCounts {
                        progress: units,
                        foreign: 3,
                        by_reason: vec![ReasonCounts {
                            delayed,
                            delay_ns: delayed * delay_ns,
                            handled: all,
                            handled_ns: all * 1_500,
                        }],
                    },
                });
            }
        }
        slices
    }

    #[test]
    fn what_is_paid_is_found_and_what_is_not_is_none() {
        for paid in [0.0, 0.25, 1.0] {
            let found = sensitivity(&blocks(40, (10_000.0, 2.0, paid), 0.02), 1, A_BLOCK);
            let slope = found.reasons[0].slope.unwrap();
            let (low, high) = (slope.low.unwrap(), slope.high.unwrap());
            assert!(low <= paid && paid <= high && high - low < 0.03, "{paid}: {slope:?}");
            assert_eq!((found.blocks, found.foreign), (40, 480));
        }
    }

    #[test]
    fn a_free_exit_gains_its_share_of_the_time_times_the_slope() {
        let found = sensitivity(&blocks(20, (10_000.0, 2.0, 1.0), 0.0), 1, A_BLOCK);
        let reason = &found.reasons[0];
        // Two exits of 1.5 us in a unit of 10 us; drift lengthens the unit by a tenth on average.
        let gain = reason.max_gain.unwrap().mean;
        assert!((gain - 0.3 / 1.105).abs() < 0.005, "{gain}");
        assert_eq!(reason.exit_ns, Some(1_500.0));
        assert!((reason.exits_a_unit.unwrap() - 2.0).abs() < 1e-9);
        let delays: Vec<u64> = reason.points.iter().map(|point| point.delay_ns).collect();
        assert_eq!(delays, [0, 1_000, 2_000, 5_000]);
        assert_eq!(reason.points[0].paid, None);
        assert!((reason.points[3].paid.unwrap() - 1.0).abs() < 0.01, "{:?}", reason.points[3]);
    }

    /// All slices have the same delay per unit, so no slope exists and no number is made up.
    #[test]
    fn what_cannot_be_known_is_no_number() {
        let mut slices = blocks(3, (10_000.0, 1.0, 1.0), 0.0);
        for slice in &mut slices {
            let counts = &mut slice.counts.by_reason[0];
            (counts.delayed, counts.delay_ns) = (7, slice.counts.progress * 100);
        }
        let reason = &sensitivity(&slices, 1, A_BLOCK).reasons[0];
        assert!(
            reason.points.iter().all(|point| point.paid.is_none_or(f64::is_finite)),
            "{reason:?}"
        );
        assert_eq!(reason.points[0].paid, None);
        assert!(reason.slope.is_none_or(|slope| slope.mean.is_finite()), "{reason:?}");
    }

    /// By chance, the workload got faster in slices with longer exits. The gain is 0, not negative.
    #[test]
    fn nothing_is_gained_is_not_less_than_nothing() {
        let found = sensitivity(&blocks(20, (10_000.0, 2.0, -0.2), 0.05), 1, A_BLOCK);
        let reason = &found.reasons[0];
        assert!(reason.slope.unwrap().mean < 0.0);
        let gain = reason.max_gain.unwrap();
        assert!(gain.mean >= 0.0 && gain.low >= Some(0.0) && gain.high >= Some(0.0), "{gain:?}");
    }

    #[test]
    fn a_last_block_that_is_not_whole_is_left_out() {
        let mut slices = blocks(3, (10_000.0, 1.0, 1.0), 0.0);
        slices.pop();
        assert_eq!(sensitivity(&slices, 1, A_BLOCK).blocks, 2);
    }

    #[test]
    fn without_progress_or_delayed_exits_nothing_is_said() {
        let mut slices = blocks(2, (10_000.0, 1.0, 1.0), 0.0);
        slices.iter_mut().for_each(|slice| slice.counts.progress = 0);
        let found = sensitivity(&slices, 1, A_BLOCK);
        assert_eq!((found.reasons[0].slope, found.without_progress), (None, 8));
        let slices = blocks(2, (10_000.0, 0.0, 1.0), 0.0);
        let found = sensitivity(&slices, 1, A_BLOCK);
        assert_eq!((found.reasons[0].slope, found.reasons[0].max_gain), (None, None));
        assert_eq!(sensitivity(&[], 2, A_BLOCK).reasons.len(), 2);
    }
}
