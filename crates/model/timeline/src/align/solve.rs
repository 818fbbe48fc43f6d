//! Computes lines between two clocks from guest events and the times at which their vCPU was away:
//! finds a start, follows the line in both directions until it breaks, and continues after the
//! break.

use super::piece::{Piece, Possible};
use super::search::{ENOUGH_BITS, SearchResult, overlapping, search};
use super::{Away, Budget};

/// Why there is no solution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsolved {
    /// The recording has no exits of the vCPU, or no events of the guest's CPU.
    NothingRecorded,
    /// Every offset places some event where the vCPU was away.
    NoOffsetFits,
    /// Several offsets fit that are far apart.
    SeveralOffsetsFit,
    /// An offset fits, but chance could explain it: the guest's CPU was too idle, or its vCPU was
    /// hardly ever away.
    TooFewEvents,
    /// The budget of the command was spent before a solution was found.
    OverBudget,
}

/// Maximum attempts to find a start, at different places of the recording.
const MAX_TRIES: usize = 8;
/// After a break, the line usually continues nearby.
const NEARBY_NS: i64 = 2_000_000;
/// Fewer events prove nothing.
const FEWEST_EVENTS: usize = 8;
/// Widens the start range from the search, so that events limit the exact solution.
const MARGIN_NS: i64 = 50_000;
/// The same margin for a search that events after a break may have misled.
const WIDE_MARGIN_NS: i64 = 500_000;
/// More breaks than this are noise.
const MAX_PIECES: usize = 512;

/// Finds the lines that relate the clock of guest events to the clock of their vCPU's host.
///
/// `stamps` are the times of the events, ascending and without duplicates (a clock that stands
/// still has no information). Pieces are sorted and disjoint: a break lies between the end of a
/// piece and the start of the next.
///
/// # Errors
/// If the events do not determine the offset, or if `budget` is too small.
pub fn solve(stamps: &[i64], away: &Away, budget: &mut Budget) -> Result<Vec<Piece>, Unsolved> {
    if away.is_empty() || stamps.len() < FEWEST_EVENTS {
        return Err(Unsolved::NothingRecorded);
    }
    // Results remain valid when the search has spent its half of the budget.
    let (grown, why) = budget.share(2, |budget| Solver { stamps, away, budget }.all());
    let mut solver = Solver { stamps, away, budget };
    match solver.cores(grown) {
        _ if solver.budget.is_spent() => Err(Unsolved::OverBudget),
        pieces if pieces.is_empty() => Err(why),
        pieces => Ok(pieces),
    }
}

struct Solver<'a> {
    stamps: &'a [i64],
    away: &'a Away,
    budget: &'a mut Budget,
}

/// A place that a line is known to pass through.
#[derive(Clone, Copy, Debug)]
struct Seed {
    /// First event that led to it.
    from: usize,
    event: usize,
    low: i64,
    high: i64,
}

/// A line, followed as far as it goes.
#[derive(Clone, Debug)]
struct Grown {
    seed: Seed,
    first: usize,
    last: usize,
    /// Whether events contradict the line before its first event, and after its last.
    breaks: (bool, bool),
    possible: Possible,
}

impl Grown {
    fn stamp(&self, stamps: &[i64]) -> i64 {
        stamps.get(self.first).copied().unwrap_or_default()
    }

    fn end(&self, stamps: &[i64]) -> i64 {
        stamps.get(self.last).copied().unwrap_or_default()
    }
}

impl Solver<'_> {
    /// All lines in order, and why there are no more.
    fn all(&mut self) -> (Vec<Grown>, Unsolved) {
        let mut grown: Vec<Grown> = Vec::new();
        let mut why = Unsolved::NoOffsetFits;
        let mut open = vec![(0, self.stamps.len(), None)];
        while let Some((begin, end, near)) = open.pop() {
            if grown.len() >= MAX_PIECES {
                break;
            }
            match self.begin(begin, end, near) {
                Ok(seed) => {
                    let piece = self.grow(seed);
                    self.budget.spend(piece.last - piece.first);
                    let before = piece.possible.offsets(piece.stamp(self.stamps)).0;
                    let after = piece.possible.offsets(piece.end(self.stamps)).1;
                    open.push((begin, piece.first, Some(before)));
                    open.push((piece.last + 1, end, Some(after)));
                    grown.push(piece);
                }
                Err(unsolved) => why = unsolved,
            }
            if self.budget.is_spent() {
                why = Unsolved::OverBudget;
                break;
            }
        }
        grown.sort_by_key(|piece| (piece.first, piece.last));
        (grown, why)
    }

    /// Searches for a seed among the events `begin..end`, at first near an offset.
    fn begin(&mut self, begin: usize, end: usize, near: Option<i64>) -> Result<Seed, Unsolved> {
        let events = self.stamps.get(begin..end).unwrap_or_default();
        let Some(extent) = self.away.extent().filter(|_| events.len() >= FEWEST_EVENTS) else {
            return Err(Unsolved::TooFewEvents);
        };
        if let Some(near) = near {
            let nearby = [(near.saturating_sub(NEARBY_NS), near.saturating_add(NEARBY_NS))];
            if let SearchResult::At { event, low, high } =
                search(events, self.away, &nearby, self.budget)
            {
                return Ok(Seed { from: begin, event: begin + event, low, high });
            }
        }
        let (mut from, mut why) = (0, Unsolved::NoOffsetFits);
        for attempt in 1..=MAX_TRIES {
            let rest = events.get(from..).filter(|rest| rest.len() >= FEWEST_EVENTS);
            let Some(rest) = rest else { break };
            self.budget.spend(rest.len());
            let candidates = overlapping(rest, extent);
            let contradicted = match search(rest, self.away, &candidates, self.budget) {
                SearchResult::At { event, low, high } => {
                    let from = begin + from;
                    return Ok(Seed { from, event: from + event, low, high });
                }
                SearchResult::Several => {
                    why = Unsolved::SeveralOffsetsFit;
                    0
                }
                SearchResult::Weak => {
                    why = Unsolved::TooFewEvents;
                    0
                }
                SearchResult::OverBudget => return Err(Unsolved::OverBudget),
                SearchResult::Nothing { event } => event + 1,
            };
            from = (from + contradicted).max(attempt * events.len() / MAX_TRIES);
        }
        Err(why)
    }

    /// Follows a line from its seed forward, then backward.
    fn grow(&self, seed: Seed) -> Grown {
        let stamp = self.stamps.get(seed.event).copied().unwrap_or_default();
        let (low, high) = (seed.low.saturating_sub(MARGIN_NS), seed.high.saturating_add(MARGIN_NS));
        let mut possible = Possible::through(stamp, low, high);
        let forwards = seed.event..self.stamps.len();
        let (last, broke_last) = self.follow(forwards, &mut possible);
        let backwards = (0..seed.event).rev();
        let (first, broke_first) = self.follow(backwards, &mut possible);
        let (first, last) = (first.unwrap_or(seed.event), last.unwrap_or(seed.event));
        Grown { seed, first, last, breaks: (broke_first, broke_last), possible }
    }

    /// Adds events in this order until the line breaks; returns the last one that fits, and whether
    /// the line broke.
    fn follow(
        &self,
        events: impl Iterator<Item = usize>,
        possible: &mut Possible,
    ) -> (Option<usize>, bool) {
        let mut reached = None;
        for event in events {
            let Some(&stamp) = self.stamps.get(event) else { break };
            if !possible.take(stamp, self.away) {
                return (reached, true);
            }
            reached = Some(event);
        }
        (reached, false)
    }

    /// Gives each piece the events that no other piece claims, and solves it with these alone: for
    /// an event near a break, the side is unknown.
    fn cores(&mut self, mut grown: Vec<Grown>) -> Vec<Piece> {
        loop {
            let cores = self.unclaimed(&grown);
            if self.budget.is_spent() {
                return Vec::new();
            }
            let thin = |core: &(usize, usize)| core.1 < core.0 + FEWEST_EVENTS / 2;
            // Removes the smallest piece without events of its own first.
            let worst = (0..grown.len())
                .filter(|&at| cores.get(at).is_some_and(thin))
                .min_by_key(|&at| grown.get(at).map(|piece| piece.last - piece.first));
            let Some(worst) = worst else {
                let pairs = grown.iter().zip(cores);
                return pairs.map(|(piece, (first, end))| self.core(piece, first, end)).collect();
            };
            grown.remove(worst);
        }
    }

    /// By piece: the range of events that it alone claims.
    fn unclaimed(&mut self, grown: &[Grown]) -> Vec<(usize, usize)> {
        let mut afters = vec![usize::MAX; grown.len()];
        let mut first = usize::MAX;
        for (after, piece) in afters.iter_mut().zip(grown).rev() {
            *after = first;
            first = first.min(piece.first);
        }
        let (mut cores, mut before) = (Vec::new(), 0);
        for (piece, after) in grown.iter().zip(afters) {
            let (mut first, mut end) = (piece.first.max(before), (piece.last + 1).min(after));
            if piece.breaks.0 && before < piece.first {
                first = self.sure(piece, piece.first..end);
            }
            if piece.breaks.1 && after > piece.last + 1 {
                end = self.sure(piece, (first..end).rev());
            }
            cores.push((first, end));
            before = before.max(piece.last + 1);
        }
        cores
    }

    /// The first of these events that is certainly on this side of a break. After a break some
    /// events fit by chance; as many as chance could explain are not used.
    fn sure(&mut self, piece: &Grown, events: impl Iterator<Item = usize>) -> usize {
        let place = |event: usize| {
            let stamp = self.stamps.get(event).copied().unwrap_or_default();
            let (low, high) = piece.possible.offsets(stamp);
            stamp.saturating_add(low.midpoint(high))
        };
        let share =
            self.away.share_possible(place(piece.first), place(piece.last)).clamp(1e-6, 1.0);
        let (mut bits, mut window, mut reached) = (0.0, None, piece.first);
        let mut looked_at = 0;
        for event in events {
            (reached, looked_at) = (event, looked_at + 1);
            let here = self.away.window(place(event));
            if window != Some(here) {
                window = Some(here);
                bits -= share.log2();
            }
            if bits > ENOUGH_BITS {
                break;
            }
        }
        self.budget.spend(looked_at);
        reached
    }

    fn core(&self, grown: &Grown, first: usize, end: usize) -> Piece {
        let Seed { from, event, low, high } = grown.seed;
        let events = self.stamps.get(first..end).unwrap_or_default();
        let begin = event.clamp(first, end.saturating_sub(1));
        let stamp = self.stamps.get(begin).copied().unwrap_or_default();
        let holds_seed = first <= from && event < end;
        let mut possible = if holds_seed {
            Possible::through(stamp, low.saturating_sub(MARGIN_NS), high.saturating_add(MARGIN_NS))
        } else {
            let (low, high) = grown.possible.offsets(stamp);
            Possible::through(
                stamp,
                low.saturating_sub(WIDE_MARGIN_NS),
                high.saturating_add(WIDE_MARGIN_NS),
            )
        };
        let (before, after) = events.split_at(begin.saturating_sub(first).min(events.len()));
        for &stamp in after.iter().chain(before.iter().rev()) {
            let _ = possible.take(stamp, self.away);
        }
        possible.narrow(events, self.away);
        let ends = events.first().copied().zip(events.last().copied()).unwrap_or((stamp, stamp));
        Piece::new(ends.0, ends.1, possible)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_repeat_in_step_end_in_time() {
        let mut away = Away::default();
        (0..100_000).for_each(|at| away.push(at * 1000, at * 1000 + 500));
        let stamps: Vec<i64> = (0..100_000).map(|at| at * 1000 + 750).collect();
        // Each event would examine some hundred thousand intervals.
        let mut budget = Budget::new(1 << 22);
        assert_eq!(solve(&stamps, &away, &mut budget).err(), Some(Unsolved::OverBudget));
    }
}
