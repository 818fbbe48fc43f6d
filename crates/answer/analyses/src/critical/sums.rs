//! Sums of parts over many waits, and the longest waits in detail.

use rustc_hash::FxHashMap;
use timeline::trace_events::ThreadNames;

use super::follow::WaitSink;
use super::piece::{Counts, Piece, PieceSink, Spent};
use crate::path::Thread;

/// Max distinct parts.
const MAX_PARTS: usize = 1 << 16;

/// Max waits with stored pieces.
pub(super) const MAX_LONGEST: usize = 5;

/// Max stored pieces per wait: the longest ones.
const MAX_PIECES: usize = 1024;

/// Total time and number of intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) time_ns: u64,
    pub(super) count: u64,
}

/// Times of an analysed thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnTime {
    pub(super) ran_ns: u64,
    pub(super) waited_ns: u64,
    pub(super) unknown_ns: u64,
    /// Number of waits for a CPU.
    pub(super) waits: u64,
    /// Total off-CPU time.
    pub(super) off_cpu_ns: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Wait {
    pub(super) target: Thread,
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    /// The last piece in time comes first.
    pub(super) pieces: Vec<Piece>,
    /// Shorter pieces were dropped between these.
    pub(super) is_cut: bool,
}

impl Wait {
    /// Adds the next piece, which is earlier in time. The last added piece is never dropped, because it may still
    /// grow.
    fn keep(&mut self, piece: &Piece) {
        match self.pieces.last_mut() {
            Some(last) if last.spent == piece.spent && last.from_ns == piece.to_ns => {
                last.from_ns = piece.from_ns;
            }
            _ => {
                self.pieces.push(*piece);
                // Dropping half of the pieces at a time costs constant time per added piece.
                if self.pieces.len() >= 2 * MAX_PIECES {
                    self.leave_out_short(MAX_PIECES);
                }
            }
        }
    }

    /// Drops the shortest pieces beyond `max`, but never the last added one.
    fn leave_out_short(&mut self, max: usize) {
        if self.pieces.len() <= max {
            return;
        }
        let last = self.pieces.pop();
        let length = |piece: &Piece| piece.to_ns.saturating_sub(piece.from_ns);
        let mut lengths: Vec<u64> = self.pieces.iter().map(length).collect();
        let room = max.saturating_sub(1);
        let at_least = match lengths.len().checked_sub(room) {
            Some(left_out) if left_out < lengths.len() => *lengths.select_nth_unstable(left_out).1,
            _ => u64::MAX,
        };
        // Of equally long pieces, the later ones are dropped.
        let longer = self.pieces.iter().filter(|piece| length(piece) > at_least).count();
        let mut alike = room.saturating_sub(longer);
        self.pieces.retain(|piece| {
            let is_alike = length(piece) == at_least && alike > 0;
            alike -= usize::from(is_alike);
            is_alike || length(piece) > at_least
        });
        self.pieces.extend(last);
        self.is_cut = true;
    }
}

#[derive(Debug, Default)]
pub(super) struct Sums {
    /// By part, and the time since which its threads have had their names.
    pub(super) parts: FxHashMap<(Spent, u64), Sum>,
    /// Sum of parts beyond [`MAX_PARTS`].
    pub(super) others: Sum,
    pub(super) own_times: FxHashMap<Thread, OwnTime>,
    pub(super) longest: Vec<Wait>,
    now: Option<Wait>,
    is_wait: bool,
    last: Option<(u64, (Spent, u64))>,
    /// By recording: all names of threads in the order of time.
    names: Vec<ThreadNames>,
}

impl Sums {
    /// Empty sums; a thread with several names has one part for each name.
    pub(super) fn with_names(names: Vec<ThreadNames>) -> Self {
        Self { names, ..Self::default() }
    }

    pub(super) fn take_names(&mut self) -> Vec<ThreadNames> {
        std::mem::take(&mut self.names)
    }

    /// Ends the current interval.
    pub(super) fn end_interval(&mut self) {
        self.last = None;
        let Some(mut wait) = self.now.take().filter(|_| self.is_wait) else { return };
        let length = |wait: &Wait| wait.to_ns - wait.from_ns;
        let at = self.longest.partition_point(|other| length(other) >= length(&wait));
        if at < MAX_LONGEST {
            wait.leave_out_short(MAX_PIECES);
            self.longest.insert(at, wait);
            self.longest.truncate(MAX_LONGEST);
        }
    }
}

impl WaitSink for Sums {
    fn interval(&mut self, target: Thread, from_ns: u64, to_ns: u64, waited: bool) {
        self.end_interval();
        self.is_wait = waited;
        self.now = Some(Wait { target, from_ns, to_ns, pieces: Vec::new(), is_cut: false });
        let times = self.own_times.entry(target).or_default();
        if self.is_wait && to_ns > from_ns {
            times.waits += 1;
            times.off_cpu_ns += to_ns - from_ns;
        }
    }
}

impl PieceSink for Sums {
    fn piece(&mut self, piece: &Piece) {
        let Some(target) = self.now.as_ref().map(|now| now.target) else { return };
        let time_ns = piece.to_ns - piece.from_ns;
        let times = self.own_times.entry(target).or_default();
        match piece.counts {
            Counts::Ran => times.ran_ns += time_ns,
            Counts::Unknown => times.unknown_ns += time_ns,
            Counts::Waited => times.waited_ns += time_ns,
        }
        self.now.iter_mut().for_each(|now| now.keep(piece));
        if piece.counts != Counts::Waited {
            self.last = None;
            return;
        }
        let key = (piece.spent, piece.spent.named_since_ns(&self.names, piece.from_ns));
        let continues = self.last == Some((piece.to_ns, key));
        self.last = Some((piece.from_ns, key));
        let is_full = self.parts.len() >= MAX_PARTS && !self.parts.contains_key(&key);
        let sum = if is_full { &mut self.others } else { self.parts.entry(key).or_default() };
        sum.time_ns += time_ns;
        sum.count += u64::from(!continues);
    }
}

#[cfg(test)]
mod tests {
    use super::super::piece::{CriticalState, Who, Why};
    use super::*;

    fn piece(from_ns: u64, to_ns: u64, thread: u32) -> Piece {
        let spent = Spent {
            who: Who::Thread((0, thread)),
            state: CriticalState::Running,
            why: Why::Nothing,
        };
        Piece { from_ns, to_ns, counts: Counts::Waited, spent }
    }

    /// A wait of many short pieces and some long ones: the long ones are stored.
    #[test]
    fn the_longest_pieces_are_kept_wherever_they_are() {
        let mut sums = Sums::default();
        let (many, long) = (10_000_u64, 700);
        let length = |at: u64| if at % 977 == 5 { long } else { 1 + at % 3 };
        let total_ns: u64 = (0..many).map(length).sum();
        sums.interval((0, 1), 0, total_ns, true);
        let mut end_ns = total_ns;
        for at in 0..many {
            let from_ns = end_ns - length(at);
            sums.piece(&piece(from_ns, end_ns, 2 + (at % 2) as u32));
            end_ns = from_ns;
        }
        sums.end_interval();
        let wait = &sums.longest[0];
        assert!(wait.is_cut && wait.pieces.len() == MAX_PIECES);
        let long_count =
            wait.pieces.iter().filter(|piece| piece.to_ns - piece.from_ns == long).count();
        assert_eq!(long_count as u64, (0..many).filter(|at| length(*at) == long).count() as u64);
        let is_ordered = |pair: &[Piece]| pair[1].to_ns <= pair[0].from_ns;
        assert!(wait.pieces.windows(2).all(is_ordered));
    }
}
