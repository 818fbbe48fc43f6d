//! The end of a wait as a point in time, computed once: data from the other side does not extend
//! it.

use std::time::{Duration, Instant};

/// A wait that is practically infinite.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// A point in time by which an operation must have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline this far from now.
    #[must_use]
    pub fn after(time: Duration) -> Self {
        let now = Instant::now();
        Self(now.checked_add(time.min(FOR_EVER)).unwrap_or(now))
    }

    /// The deadline this much later.
    #[must_use]
    pub fn later_by(self, time: Duration) -> Self {
        Self(self.0.checked_add(time.min(FOR_EVER)).unwrap_or(self.0))
    }

    /// Remaining time; zero after the deadline.
    #[must_use]
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    #[must_use]
    pub fn has_passed(self) -> bool {
        self.remaining().is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_passes_once_and_can_be_far_away() {
        assert!(Deadline::after(Duration::ZERO).has_passed());
        let far = Deadline::after(Duration::MAX);
        assert!(!far.has_passed() && far.remaining() > Duration::from_secs(3600));
        assert!(Deadline::after(Duration::ZERO) < far);
    }
}
