//! Times as recordings have them: nanoseconds in 64 bits.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Now, in Unix time.
pub(crate) fn unix_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, nanoseconds)
}

/// A time; at most what 64 bits hold.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
