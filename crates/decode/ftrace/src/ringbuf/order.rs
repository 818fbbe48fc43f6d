//! Checks whether the pages of a stream follow one another in time.
//!
//! The kernel's per-CPU buffer never runs back: if a stamp does, it is damaged, or pages of another
//! time are in its place. The next page decides which of two pages has the wrong stamp: a page that
//! runs ahead of the next one is wrong if the next one follows its predecessor.

use std::fmt;

/// A step back of a CPU's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepBack {
    /// The earlier stamp in the file.
    pub from: u64,
    /// The stamp after it, which is lower.
    pub to: u64,
}

impl fmt::Display for StepBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the clock goes back from {} to {}", self.from, self.to)
    }
}

/// Validity of the times on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageTime {
    /// They follow those of the previous pages.
    InOrder,
    /// They are wrong, or cannot be ordered with those before. Has the step back if the clock ran
    /// back between this page and a neighbour, which counts as damage.
    OutOfOrder(Option<StepBack>),
}

/// Tracks the stamps of a stream's pages.
#[derive(Clone, Copy, Debug, Default)]
pub struct StampOrder {
    /// The highest stamp on pages in order.
    reached: Option<u64>,
    /// End time of the last page, in order or not.
    ended: Option<u64>,
}

impl StampOrder {
    /// The highest stamp on pages in order.
    #[must_use]
    pub fn reached(&self) -> Option<u64> {
        self.reached
    }

    /// Checks the next page, which extends from `begin` to `end`; `ran_back`: its clock ran back in
    /// between. `next` is the stamp of the following page, if known.
    pub fn page(&mut self, begin: u64, end: u64, ran_back: bool, next: Option<u64>) -> PageTime {
        let before = self.ended.replace(end);
        let stepped = |from: u64, to: u64| (to < from).then_some(StepBack { from, to });
        if let Some(reached) = self.reached.filter(|&reached| begin < reached) {
            return PageTime::OutOfOrder(stepped(before.unwrap_or(reached), begin));
        }
        if ran_back {
            // Already counted as damage of the records.
            return PageTime::OutOfOrder(None);
        }
        // The next page follows this page's predecessor, so this page is wrong.
        let next = next.filter(|&next| self.reached.is_none_or(|reached| reached <= next));
        if let Some(step) = next.and_then(|next| stepped(end, next)) {
            self.ended = self.reached;
            return PageTime::OutOfOrder(Some(step));
        }
        self.reached = self.reached.max(Some(end));
        PageTime::InOrder
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "small numbers of a test")]
mod tests {
    use super::*;

    /// Checks pages by start and end: those out of order, and the number of counted steps.
    fn judge(pages: &[(u64, u64)]) -> (Vec<usize>, usize) {
        let (mut order, mut odd, mut steps) = (StampOrder::default(), Vec::new(), 0);
        for (at, &(begin, end)) in pages.iter().enumerate() {
            let next = pages.get(at + 1).map(|next| next.0);
            if let PageTime::OutOfOrder(step) = order.page(begin, end, false, next) {
                odd.push(at);
                steps += usize::from(step.is_some());
            }
        }
        (odd, steps)
    }

    #[test]
    fn pages_in_order_are_in_order() {
        assert_eq!(judge(&[(1, 5), (5, 5), (5, 9), (9, 12)]), (vec![], 0));
    }

    #[test]
    fn one_wrong_stamp_costs_one_page() {
        assert_eq!(judge(&[(1, 5), (900, 905), (6, 9), (9, 12)]), (vec![1], 1), "ahead");
        assert_eq!(judge(&[(1, 5), (5, 8), (3, 4), (9, 12)]), (vec![2], 1), "behind");
        assert_eq!(judge(&[(1, 5), (5, 800), (8, 9), (9, 12)]), (vec![1], 1), "a leap on a page");
        assert_eq!(judge(&[(700, 705), (5, 8), (8, 9)]), (vec![0], 1), "the first");
    }

    #[test]
    fn pages_that_are_there_twice_are_one_step() {
        let once = [(1, 5), (5, 8), (8, 9)];
        let twice: Vec<_> = once.iter().chain(&once).copied().collect();
        assert_eq!(judge(&twice), (vec![3, 4, 5], 1));
    }
}
