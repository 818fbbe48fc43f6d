//! A list of numbers with a search for the last one below a bound in logarithmic time.

/// A segment tree of minima.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeastTree {
    /// The children of node `i` are `2 * i` and `2 * i + 1`; the root is 1, and the second half has
    /// the numbers. Places without a number are above every bound.
    least: Vec<u32>,
}

impl LeastTree {
    /// Sets the number at a place.
    pub(crate) fn set(&mut self, place: usize, number: u32) {
        while self.len() <= place {
            self.grow();
        }
        let mut at = self.len() + place;
        if let Some(leaf) = self.least.get_mut(at) {
            *leaf = number;
        }
        while at > 1 {
            at /= 2;
            let child = |at: usize| self.least.get(at).copied().unwrap_or(u32::MAX);
            let min = child(2 * at).min(child(2 * at + 1));
            if let Some(node) = self.least.get_mut(at) {
                *node = min;
            }
        }
    }

    /// The last place whose number is below `bound`.
    pub(crate) fn last_below(&self, bound: u32) -> Option<usize> {
        let is_below = |at: usize| self.least.get(at).is_some_and(|min| *min < bound);
        let mut at = 1;
        if !is_below(at) {
            return None;
        }
        while at < self.len() {
            at = if is_below(2 * at + 1) { 2 * at + 1 } else { 2 * at };
        }
        Some(at - self.len())
    }

    /// Capacity in places.
    fn len(&self) -> usize {
        self.least.len() / 2
    }

    fn grow(&mut self) {
        let numbers: Vec<u32> = self.least.get(self.len()..).unwrap_or_default().to_vec();
        let len = (2 * self.len()).max(1);
        self.least = vec![u32::MAX; 2 * len];
        for (place, number) in numbers.into_iter().enumerate() {
            self.set(place, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_below_a_bound_is_what_a_walk_finds() {
        let (mut tree, mut numbers) = (LeastTree::default(), Vec::new());
        let mut state = 1_u32;
        for round in 0..500 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let number = state >> 24;
            if round % 3 == 0 || numbers.is_empty() {
                tree.set(numbers.len(), number);
                numbers.push(number);
            } else {
                let place = state as usize % numbers.len();
                tree.set(place, number);
                numbers[place] = number;
            }
            for bound in [0, 1, 50, 128, 255, u32::MAX] {
                let walked = numbers.iter().rposition(|number| *number < bound);
                assert_eq!(tree.last_below(bound), walked, "{numbers:?} {bound}");
            }
        }
        assert_eq!(LeastTree::default().last_below(u32::MAX), None);
    }
}
