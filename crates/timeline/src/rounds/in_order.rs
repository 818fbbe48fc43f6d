//! Puts what streams hold in the order of its times, as far as it is complete.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

/// Streams with decoded batches, each of which is in order by itself.
pub trait Lanes<B> {
    /// How many there are.
    fn count(&self) -> usize;

    /// Time of what a lane has to give next; `None`: nothing is there.
    fn next_stamp_ns(&self, lane: usize) -> Option<u64>;

    /// Puts batches of a lane that are used up to `spent`.
    fn release(&mut self, lane: usize, spent: &mut Vec<B>);

    /// Gives what a lane has before `until_ns`, and the next in any case: times of a damaged page
    /// may go back. Breaks off when nothing more is wanted.
    fn give(&mut self, lane: usize, until_ns: u64) -> ControlFlow<()>;
}

/// Lets all lanes give what they have before `horizon_ns`, in the order of times. At equal times the
/// lower lane goes first.
///
/// # Errors
/// `Break` when nothing more is wanted.
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
        // A lane may go on until another's turn comes; at equal times this one was the lowest.
        let next_ns = heap.peek().map_or(horizon_ns, |Reverse((next_ns, _))| *next_ns);
        lanes.give(lane, next_ns.max(stamp_ns.saturating_add(1)))?;
        lanes.release(lane, spent);
        heap.extend(due(lanes.next_stamp_ns(lane), lane));
    }
    ControlFlow::Continue(())
}
