//! The number of operations in a run, and the cost of an operation without the loop.

use std::time::Duration;

/// Iterations of the empty loop.
pub(crate) const EMPTY: u64 = 10_000;
/// Operations for warming up, which also show the time of one.
pub(crate) const WARM_UP: u64 = 64;
/// Min operations per run, however long they take.
const MIN_OPERATIONS: u64 = 32;
/// Max operations per run, however short they are.
const MAX_OPERATIONS: u64 = 100_000;

/// Operations that fit in a run, from the time of the `WARM_UP` operations.
pub(crate) fn operations(run: Duration, warm_up: Duration) -> u64 {
    let each_ns = (warm_up.as_nanos() / u128::from(WARM_UP)).max(1);
    u64::try_from(run.as_nanos() / each_ns)
        .unwrap_or(MAX_OPERATIONS)
        .clamp(MIN_OPERATIONS, MAX_OPERATIONS)
}

/// Cycles per operation, without the empty loop.
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
