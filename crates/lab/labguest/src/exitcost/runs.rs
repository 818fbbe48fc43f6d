//! How many operations make a run, and what is left of a run when the loop's own cost is taken.

use std::time::Duration;

/// Turns of the empty loop.
pub(crate) const EMPTY: u64 = 10_000;
/// Operations that warm up, and show how long one takes.
pub(crate) const WARM_UP: u64 = 64;
/// The least a run has, however long they take.
const MIN_OPERATIONS: u64 = 32;
/// The most a run has: no run is shorter than it takes to execute these.
const MAX_OPERATIONS: u64 = 100_000;

/// Operations that fit in a run, when `WARM_UP` of them took so long.
pub(crate) fn operations(run: Duration, warm_up: Duration) -> u64 {
    let each_ns = (warm_up.as_nanos() / u128::from(WARM_UP)).max(1);
    u64::try_from(run.as_nanos() / each_ns)
        .unwrap_or(MAX_OPERATIONS)
        .clamp(MIN_OPERATIONS, MAX_OPERATIONS)
}

/// Cycles of each operation, without those of the empty loop.
pub(crate) fn net(cycles: f64, operations: u64, empty: f64) -> f64 {
    per(cycles, operations) - empty
}

#[allow(clippy::cast_precision_loss, reason = "operations are at most MAX_OPERATIONS")]
pub(crate) fn per(sum: f64, operations: u64) -> f64 {
    sum / operations.max(1) as f64
}

#[allow(clippy::cast_precision_loss, reason = "below 2^53 but after months of cycles")]
pub(crate) fn float(cycles: u64) -> f64 {
    cycles as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_as_many_operations_as_fit() {
        let run = Duration::from_millis(20);
        assert_eq!(operations(run, Duration::from_micros(64)), 20_000);
        assert_eq!(operations(run, Duration::from_secs(64)), MIN_OPERATIONS);
        assert_eq!(operations(run, Duration::ZERO), MAX_OPERATIONS);
    }

    #[test]
    fn the_loop_is_not_the_operations() {
        assert_eq!(net(1000.0, 10, 2.5), 97.5);
    }
}
