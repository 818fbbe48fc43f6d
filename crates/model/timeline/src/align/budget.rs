//! The work that alignment may do for one command: hosts with many vCPUs, and guests that fit none of
//! them, could keep it busy for hours.

/// Steps that one command may take: some seconds. A step looks at one event, or at one stretch in which a
/// vCPU was away.
const MOST_STEPS: u64 = 1 << 29;

/// Steps that are left.
#[derive(Debug)]
pub struct Budget {
    left: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self::of(MOST_STEPS)
    }
}

impl Budget {
    /// A budget of this many steps.
    #[must_use]
    pub const fn of(steps: u64) -> Self {
        Self { left: steps }
    }

    /// Takes steps; what is not left is not owed.
    pub fn spend(&mut self, steps: usize) {
        self.left = self.left.saturating_sub(steps as u64);
    }

    /// Whether no step is left.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Does the first of `count` searches with its share of what is left: later ones share what it leaves.
    pub fn share<T>(&mut self, count: usize, search: impl FnOnce(&mut Self) -> T) -> T {
        let most = self.left.div_ceil(count.max(1) as u64);
        let mut share = Self::of(most);
        let result = search(&mut share);
        self.left -= most - share.left;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_search_leaves_is_for_the_later_ones() {
        let mut budget = Budget::of(100);
        let of = |budget: &mut Budget, count, steps| {
            budget.share(count, |share| {
                share.spend(steps);
                (share.left, share.is_spent())
            })
        };
        assert_eq!(of(&mut budget, 4, 5), (20, false));
        assert_eq!(of(&mut budget, 3, 1000), (0, true));
        assert_eq!((of(&mut budget, 2, 0), budget.left), ((32, false), 63));
        assert_eq!((of(&mut budget, 0, 63), budget.is_spent()), ((0, true), true));
    }
}
