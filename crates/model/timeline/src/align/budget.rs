//! Limits the work that alignment does for one command: hosts with many vCPUs, and guests that
//! match none of them, could keep it busy for hours.

/// Maximum steps of one command, a few seconds. A step examines an event, or an interval in which a
/// vCPU was away.
const MAX_STEPS: u64 = 1 << 29;

/// The remaining steps.
#[derive(Debug)]
pub struct Budget {
    remaining: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(MAX_STEPS)
    }
}

impl Budget {
    /// A budget of this many steps.
    #[must_use]
    pub const fn new(steps: u64) -> Self {
        Self { remaining: steps }
    }

    /// Spends steps; the budget does not go below zero.
    pub fn spend(&mut self, steps: usize) {
        self.remaining = self.remaining.saturating_sub(steps as u64);
    }

    /// Whether no steps remain.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.remaining == 0
    }

    /// Runs the first of `count` searches with its share of the remaining steps; later searches
    /// share what it leaves.
    pub fn share<T>(&mut self, count: usize, search: impl FnOnce(&mut Self) -> T) -> T {
        let max = self.remaining.div_ceil(count.max(1) as u64);
        let mut share = Self::new(max);
        let result = search(&mut share);
        self.remaining -= max - share.remaining;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_search_leaves_is_for_the_later_ones() {
        let mut budget = Budget::new(100);
        let spend_share = |budget: &mut Budget, count, steps| {
            budget.share(count, |share| {
                share.spend(steps);
                (share.remaining, share.is_spent())
            })
        };
        assert_eq!(spend_share(&mut budget, 4, 5), (20, false));
        assert_eq!(spend_share(&mut budget, 3, 1000), (0, true));
        assert_eq!((spend_share(&mut budget, 2, 0), budget.remaining), ((32, false), 63));
        assert_eq!((spend_share(&mut budget, 0, 63), budget.is_spent()), ((0, true), true));
    }
}
