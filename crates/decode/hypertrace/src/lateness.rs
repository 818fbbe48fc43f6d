//! How late the host stamped a hypercall: by the guest's own counter, against the hypercalls around it.
//!
//! A hypercall's time on the host less that on the guest's counter is the distance of the two clocks, and the way
//! from the guest's look at its counter to the host's look at its clock. The distance changes slowly, the way may
//! take anything: a vCPU, or its whole host, can be off its CPU in between. So the least of the last differences
//! is that of a hypercall that was fast, and what lies above it is how late one is.

use std::mem;

/// Frames whose least difference counts: up to this number, and this number before them. That a counter jumps,
/// as it does when a guest is moved to another host, is forgotten after them.
const FRAMES: u32 = 64;

/// The clocks' distance may grow by a nanosecond in this many: 500 ppm, the most by which the kernel slews a clock.
/// What lies within that is not called late.
const SLEW: i128 = 2000;

/// More than this is no hypercall that was late, but a counter that jumped, as far as a reader can know: events
/// that are put right by more would come after others that are put in order.
const MAX_LATE_NS: u64 = 400_000_000;

/// The known facts about a stream's hypercalls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lateness {
    /// The least difference of the frames before these, and of these, each less what its time allows for slewing.
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
    /// How late the host's stamp of a hypercall is that the guest made at `guest_ns` of its counter; `None`: more
    /// than can be.
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

    /// The host's time, no later than `host_ns`, of what was at `guest_ns`, as fast hypercalls have it; `None`: there
    /// were none, or the counter jumped.
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

/// By how much the clocks' distance may have grown up to a moment of the guest's counter.
fn slewed_by(guest_ns: i128) -> i128 {
    guest_ns.checked_div(SLEW).unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::indexing_slicing)]
mod tests {
    use super::*;

    /// Late by `late(at)`, one each 10 ms, the guest's clock gaining `ppm` on the host's.
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
            // Up to what slewing allows since the hypercall before.
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
