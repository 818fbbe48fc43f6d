//! Parts of many waits, added up; and the longest of these waits, piece by piece.

use rustc_hash::FxHashMap;

use super::follow::WaitSink;
use super::piece::{Counts, Piece, PieceSink, Spent};
use crate::path::Thread;

/// Different parts that are kept apart.
const MOST_PARTS: usize = 1 << 16;

/// Waits that are kept piece by piece.
pub(super) const MOST_LONGEST: usize = 5;

/// Pieces that are kept of one wait: its last ones.
const MOST_PIECES: usize = 256;

/// Time, and how many intervals it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) time_ns: u64,
    pub(super) count: u64,
}

/// A thread's time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnTime {
    pub(super) ran_ns: u64,
    pub(super) waited_ns: u64,
    pub(super) unknown_ns: u64,
    /// Times that it had no CPU.
    pub(super) waits: u64,
    /// How long those were.
    pub(super) off_cpu_ns: u64,
}

/// One wait.
#[derive(Clone, Debug)]
pub(super) struct Wait {
    pub(super) target: Thread,
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    /// The last piece first.
    pub(super) pieces: Vec<Piece>,
    /// There were more pieces before these.
    pub(super) is_cut: bool,
}

/// All sums.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) parts: FxHashMap<Spent, Sum>,
    /// What was too much to be kept apart.
    pub(super) others: Sum,
    pub(super) own: FxHashMap<Thread, OwnTime>,
    /// The longest first.
    pub(super) longest: Vec<Wait>,
    now: Option<Wait>,
    is_wait: bool,
    last: Option<(u64, Spent)>,
}

impl Sums {
    /// The wait that the pieces were of is over.
    pub(super) fn end_interval(&mut self) {
        self.last = None;
        let Some(wait) = self.now.take().filter(|_| self.is_wait) else { return };
        let length = |wait: &Wait| wait.to_ns - wait.from_ns;
        let at = self.longest.partition_point(|one| length(one) >= length(&wait));
        if at < MOST_LONGEST {
            self.longest.insert(at, wait);
            self.longest.truncate(MOST_LONGEST);
        }
    }

    fn keep(&mut self, piece: &Piece) {
        let Some(now) = &mut self.now else { return };
        let has_room = now.pieces.len() < MOST_PIECES;
        match now.pieces.last_mut() {
            Some(last) if last.spent == piece.spent && last.from_ns == piece.to_ns => {
                last.from_ns = piece.from_ns;
            }
            _ if has_room => now.pieces.push(*piece),
            _ => now.is_cut = true,
        }
    }
}

impl WaitSink for Sums {
    fn interval(&mut self, target: Thread, from_ns: u64, to_ns: u64, waited: bool) {
        self.end_interval();
        self.is_wait = waited;
        self.now = Some(Wait { target, from_ns, to_ns, pieces: Vec::new(), is_cut: false });
        let own = self.own.entry(target).or_default();
        if self.is_wait && to_ns > from_ns {
            own.waits += 1;
            own.off_cpu_ns += to_ns - from_ns;
        }
    }
}

impl PieceSink for Sums {
    fn piece(&mut self, piece: &Piece) {
        let Some(target) = self.now.as_ref().map(|now| now.target) else { return };
        let time_ns = piece.to_ns - piece.from_ns;
        let own = self.own.entry(target).or_default();
        match piece.counts {
            Counts::Ran => own.ran_ns += time_ns,
            Counts::Unknown => own.unknown_ns += time_ns,
            Counts::Waited => own.waited_ns += time_ns,
        }
        self.keep(piece);
        if piece.counts != Counts::Waited {
            self.last = None;
            return;
        }
        let continues = self.last == Some((piece.to_ns, piece.spent));
        self.last = Some((piece.from_ns, piece.spent));
        let is_full = self.parts.len() >= MOST_PARTS && !self.parts.contains_key(&piece.spent);
        let sum = match is_full {
            true => &mut self.others,
            false => self.parts.entry(piece.spent).or_default(),
        };
        sum.time_ns += time_ns;
        sum.count += u64::from(!continues);
    }
}
