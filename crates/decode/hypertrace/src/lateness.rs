//! Estimates the delay of the host's time stamp of a hypercall, by comparison with neighbouring
//! hypercalls on the guest's counter.
//!
//! The difference between a hypercall's host time and its guest time is the offset of the clocks,
//! plus the delay from the guest's clock reading to the host's. The offset changes slowly; the
//! delay has no bound, because a vCPU or the whole host can be off CPU in between. So the minimum
//! of recent differences belongs to a fast hypercall, and the excess over it is the delay.

use std::mem;

/// Window of frames for the minimum: up to this number in the current window and the same number
/// before. A jump of the counter, as in a migration to another host, has no effect after them.
const FRAMES: u32 = 64;

/// Slew limit: the offset may grow by a nanosecond in this many, 500 ppm, which is the kernel's
/// maximum. Growth within this limit is not a delay.
const SLEW: i128 = 2000;

/// A larger excess counts as a jump of the counter instead of a delay: a larger correction could
/// move events after others that are already in order.
const MAX_LATE_NS: u64 = 400_000_000;

/// Statistics of a stream's hypercalls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lateness {
    /// Minimum differences of the previous and the current window, each minus the slew allowance at
    /// its time.
    earlier: i128,
    current: i128,
    frames: u32,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { earlier: i128::MAX, current: i128::MAX, frames: 0 }
    }
}

impl Lateness {
    /// The delay of the host's time stamp of a hypercall, which the guest made at `guest_ns` of its
    /// counter; `None` if it is implausible.
    pub(crate) fn measure(&mut self, guest_ns: u64, host_ns: u64) -> Option<u64> {
        if self.frames == FRAMES {
            self.earlier = mem::replace(&mut self.current, i128::MAX);
            self.frames = 0;
        }
        self.frames = self.frames.saturating_add(1);
        let guest_ns = i128::from(guest_ns);
        let distance = i128::from(host_ns).saturating_sub(guest_ns);
        let level = distance.saturating_sub(slewed_by(guest_ns));
        self.current = self.current.min(level);
        let late = u64::try_from(level.saturating_sub(self.least())).ok()?;
        (late <= MAX_LATE_NS).then_some(late)
    }

    /// The host time, at most `host_ns`, of the guest time `guest_ns` according to fast hypercalls;
    /// `None` if there were none, or if the counter jumped.
    pub(crate) fn host_ns(&self, guest_ns: u64, host_ns: u64) -> Option<u64> {
        let guest_ns = i128::from(guest_ns);
        let distance = self.least().saturating_add(slewed_by(guest_ns));
        let found_ns = u64::try_from(guest_ns.checked_add(distance)?).ok()?.min(host_ns);
        (host_ns.saturating_sub(found_ns) <= MAX_LATE_NS).then_some(found_ns)
    }

    fn least(&self) -> i128 {
        self.earlier.min(self.current)
    }
}

/// Maximum growth of the offset up to a time of the guest's counter.
fn slewed_by(guest_ns: i128) -> i128 {
    guest_ns.checked_div(SLEW).unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::indexing_slicing)]
mod tests {
    use super::*;

    /// Hypercalls every 10 ms with a delay of `late(at)`, while the guest's clock gains `ppm` on
    /// the host's.
    fn found(ppm: i64, late: impl Fn(u64) -> u64) -> Vec<Option<u64>> {
        let mut lateness = Lateness::default();
        (0..500_u64)
            .map(|at| {
                let guest_ns = 7_000_000_000 + at * 10_000_000;
                let drift = i64::try_from(guest_ns).unwrap() / 1_000_000 * ppm;
                let host_ns = (90_000_000_000 + guest_ns).saturating_add_signed(drift);
                lateness.measure(guest_ns, host_ns + late(at))
            })
            .collect()
    }

    #[test]
    fn what_lies_above_the_least_is_late() {
        let late = |at| if at % 10 == 3 { 2_000_000 } else { 0 };
        for (at, found) in found(0, late).into_iter().enumerate() {
            let late = late(at as u64);
            // Up to the slew allowance since the previous hypercall.
            assert!((late.saturating_sub(5_000)..=late).contains(&found.unwrap()), "{at}");
        }
    }

    #[test]
    fn clocks_that_drift_make_nothing_late() {
        for ppm in [-499, -100, 100, 499] {
            assert!(found(ppm, |_| 0).iter().all(|late| late.unwrap() <= 1), "{ppm}");
        }
    }

    #[test]
    fn a_counter_that_jumps_is_not_known_and_then_forgotten() {
        let found = found(0, |at| if at < 100 { 0 } else { 60_000_000_000 });
        assert!(found[..100].iter().all(Option::is_some));
        assert!(found[100..128].iter().all(Option::is_none));
        assert!(found[192..].iter().all(|late| *late == Some(0)));
    }

    #[test]
    fn numbers_of_a_guest_that_means_harm_do_none() {
        let mut lateness = Lateness::default();
        for (guest_ns, host_ns) in [(0, u64::MAX), (u64::MAX, 0), (0, 0), (u64::MAX, u64::MAX)] {
            lateness.measure(guest_ns, host_ns);
        }
    }
}
