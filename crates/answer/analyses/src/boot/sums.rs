//! Range sums in logarithmic time: a machine has thousands of initcalls, and in a damaged recording each can last
//! as long as the whole boot.

/// A value with an addition.
pub(super) trait Add: Clone + Default {
    fn add(&mut self, other: &Self);
}

/// A segment tree: each node is the sum of the two nodes at twice its index.
#[derive(Debug)]
pub(super) struct Sums<T> {
    leaves: usize,
    nodes: Vec<T>,
}

impl<T: Add> Sums<T> {
    pub(super) fn new(values: Vec<T>) -> Self {
        let leaves = values.len();
        let mut nodes = vec![T::default(); leaves];
        nodes.extend(values);
        for at in (1..leaves).rev() {
            let mut sum = nodes.get(2 * at).cloned().unwrap_or_default();
            nodes.get(2 * at + 1).into_iter().for_each(|other| sum.add(other));
            if let Some(node) = nodes.get_mut(at) {
                *node = sum;
            }
        }
        Self { leaves, nodes }
    }

    /// The sum of the values in a range; indexes beyond the end are ignored.
    pub(super) fn sum_over(&self, places: std::ops::Range<usize>) -> T {
        let (mut from, mut to) =
            (places.start + self.leaves, places.end.min(self.leaves) + self.leaves);
        let mut sum = T::default();
        let mut add = |at: usize| self.nodes.get(at).into_iter().for_each(|node| sum.add(node));
        while from < to {
            if from % 2 == 1 {
                add(from);
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                add(to);
            }
            (from, to) = (from / 2, to / 2);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Add for u64 {
        fn add(&mut self, other: &Self) {
            *self += other;
        }
    }

    #[test]
    fn every_range_is_the_sum_of_its_values() {
        for length in 0..20_usize {
            let values: Vec<u64> = (0..length as u64).map(|at| 1 << at).collect();
            let sums = Sums::new(values.clone());
            for from in 0..=length {
                for to in 0..length + 2 {
                    let expected: u64 = values.iter().take(to).skip(from).sum();
                    assert_eq!(sums.sum_over(from..to), expected, "{from}..{to} of {length}");
                }
            }
        }
    }
}
