//! Merges streams by time, as far as they are complete.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

/// Streams with decoded batches, each of which is in order by itself.
pub trait Lanes<B> {
    /// The number of lanes.
    fn count(&self) -> usize;

    /// Time of a lane's next item; `None` if it has none.
    fn next_stamp_ns(&self, lane: usize) -> Option<u64>;

    /// Moves a lane's consumed batches to `spent`.
    fn release(&mut self, lane: usize, spent: &mut Vec<B>);

    /// Emits a lane's items before `until_ns`, and at least one: times of a damaged page may run
    /// back. Breaks off if no more items are wanted.
    fn give(&mut self, lane: usize, until_ns: u64) -> ControlFlow<()>;
}

/// Emits the items of all lanes before `horizon_ns` in time order. At equal times the lower lane
/// goes first.
///
/// # Errors
/// `Break` if no more items are wanted.
pub fn in_order<B>(
    lanes: &mut impl Lanes<B>,
    horizon_ns: u64,
    spent: &mut Vec<B>,
) -> ControlFlow<()> {
    for lane in 0..lanes.count() {
        lanes.release(lane, spent);
    }
    let due = |stamp_ns: Option<u64>, lane: usize| {
        Some(Reverse((stamp_ns.filter(|&stamp_ns| stamp_ns < horizon_ns)?, lane)))
    };
    let all = 0..lanes.count();
    let mut heap: BinaryHeap<_> =
        all.filter_map(|lane| due(lanes.next_stamp_ns(lane), lane)).collect();
    while let Some(Reverse((stamp_ns, lane))) = heap.pop() {
        // A lane continues until another lane's turn; at equal times this lane was the lowest.
        let next_ns = heap.peek().map_or(horizon_ns, |Reverse((next_ns, _))| *next_ns);
        lanes.give(lane, next_ns.max(stamp_ns.saturating_add(1)))?;
        lanes.release(lane, spent);
        heap.extend(due(lanes.next_stamp_ns(lane), lane));
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Two streams of times, and their merged output.
    #[derive(Default)]
    struct Times {
        waiting: [VecDeque<u64>; 2],
        given: Vec<u64>,
    }

    impl Lanes<()> for Times {
        fn count(&self) -> usize {
            self.waiting.len()
        }

        fn next_stamp_ns(&self, lane: usize) -> Option<u64> {
            self.waiting[lane].front().copied()
        }

        fn release(&mut self, _: usize, _: &mut Vec<()>) {}

        fn give(&mut self, lane: usize, until_ns: u64) -> ControlFlow<()> {
            while self.waiting[lane].front().is_some_and(|stamp_ns| *stamp_ns < until_ns) {
                self.given.extend(self.waiting[lane].pop_front());
            }
            ControlFlow::Continue(())
        }
    }

    impl Times {
        /// A round adds items to both streams, and is complete before the horizon.
        fn round(&mut self, items: [&[u64]; 2], horizon_ns: u64) -> Vec<u64> {
            for (waiting, items) in self.waiting.iter_mut().zip(items) {
                waiting.extend(items);
            }
            assert!(in_order(self, horizon_ns, &mut Vec::new()).is_continue());
            std::mem::take(&mut self.given)
        }
    }

    /// The three rounds of the diagram in `rounds`.
    #[test]
    fn items_wait_for_the_horizon_and_come_in_order() {
        let mut times = Times::default();
        assert_eq!(times.round([&[1, 4, 7, 10], &[2, 6]], 6), [1, 2, 4]);
        assert_eq!(times.round([&[], &[8, 9, 13]], 10), [6, 7, 8, 9]);
        assert_eq!(times.round([&[12, 15], &[]], 13), [10, 12]);
        assert_eq!(times.round([&[], &[]], u64::MAX), [13, 15]);
    }
}
