//! Whether the pages of a stream follow one another in time.
//!
//! The kernel's buffer of a CPU never runs back: a stamp that does is damaged, or pages of another
//! time stand where they don't belong. Which of two pages has the wrong stamp is decided with the
//! page after them: one that runs ahead of the next, which itself follows the one before, is wrong.

use std::fmt;

/// The clock of a CPU runs back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepBack {
    /// The stamp before.
    pub from: u64,
    /// The stamp after it, which is less.
    pub to: u64,
}

impl fmt::Display for StepBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the clock goes back from {} to {}", self.from, self.to)
    }
}

/// What the times on a page are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageTime {
    /// They follow those of the pages before.
    InOrder,
    /// They can't be right, or can't be put in order with those before. Where the clock ran back
    /// between this page and a neighbour, the step that has to be counted.
    OutOfOrder(Option<StepBack>),
}

/// Follows the stamps of one stream's pages.
#[derive(Clone, Copy, Debug, Default)]
pub struct StampOrder {
    /// The greatest stamp on the pages in order.
    reached: Option<u64>,
    /// Where the last page ended, in order or not.
    ended: Option<u64>,
}

impl StampOrder {
    /// The greatest stamp on the pages that were in order.
    #[must_use]
    pub fn reached(&self) -> Option<u64> {
        self.reached
    }

    /// Judges the next page, which goes from `begin` to `end`; `ran_back` if its clock ran back
    /// between. `next` is the stamp of the page after it, if that is known.
    pub fn page(&mut self, begin: u64, end: u64, ran_back: bool, next: Option<u64>) -> PageTime {
        let before = self.ended.replace(end);
        let stepped = |from: u64, to: u64| (to < from).then_some(StepBack { from, to });
        if let Some(reached) = self.reached.filter(|&reached| begin < reached) {
            return PageTime::OutOfOrder(stepped(before.unwrap_or(reached), begin));
        }
        if ran_back {
            // Counted as damage of the records.
            return PageTime::OutOfOrder(None);
        }
        // The next page follows what was before this one: this one is wrong.
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

    /// Judges pages by begin and end: those out of order, and how many steps are counted.
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
