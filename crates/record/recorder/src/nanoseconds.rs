//! Times in recordings: nanoseconds in 64 bits.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Unix time now.
pub(crate) fn unix_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, nanoseconds)
}

/// A duration, limited to 64 bits.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
