//! A period in which one line relates a guest's clock to its host's, with a bound on that line.

use super::Away;
use super::lines::Lines;
use super::search::MAX_DRIFT_PPM;

/// A line from a guest's clock to its host's: `host = guest + offset + drift * (guest - at)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// The origin of the line, on the guest's clock.
    pub at_ns: i64,
    /// Host clock minus guest clock at the origin.
    pub offset_ns: i64,
    /// Rate of change of the offset, in nanoseconds per second.
    pub drift_ppb: f64,
}

impl Line {
    /// The offset at a time of the guest's clock.
    #[must_use]
    pub fn offset_at(&self, guest_ns: i64) -> i64 {
        let time = guest_ns.saturating_sub(self.at_ns) as f64 / 1e9;
        self.offset_ns.saturating_add((self.drift_ppb * time).round() as i64)
    }
}

/// A period of the guest's clock with one line.
#[derive(Clone, Debug)]
pub struct Piece {
    /// First event for which the line is known, on the guest's clock.
    pub from_ns: i64,
    /// Last event for which the line is known.
    pub to_ns: i64,
    /// The line in the middle of the possible ones.
    pub line: Line,
    /// The maximum distance of any possible line from `from_ns` to `to_ns`.
    pub bound_ns: u64,
    /// The minimum and maximum possible drift.
    pub drifts_ppb: (f64, f64),
    possible: Possible,
}

/// Maximum passes over the events to narrow the lines; each pass gains less.
const MAX_PASSES: usize = 16;

impl Piece {
    pub(super) fn new(from_ns: i64, to_ns: i64, possible: Possible) -> Self {
        let line = Line { at_ns: from_ns, offset_ns: possible.base, drift_ppb: 0.0 };
        let mut piece =
            Self { from_ns, to_ns, line, bound_ns: u64::MAX, drifts_ppb: (0.0, 0.0), possible };
        piece.settle();
        piece
    }

    /// Narrows the piece by events of another CPU with the same clock; on a contradiction, changes
    /// nothing and returns `false`.
    pub fn narrow_by(&mut self, stamps: &[i64], away: &Away) -> bool {
        let begin = stamps.partition_point(|&stamp| stamp < self.from_ns);
        let end = stamps.partition_point(|&stamp| stamp <= self.to_ns);
        let inside = stamps.get(begin..end).unwrap_or_default();
        let mut possible = self.possible.clone();
        if !inside.iter().all(|&stamp| possible.take(stamp, away)) {
            return false;
        }
        possible.narrow(inside, away);
        self.possible = possible;
        self.settle();
        true
    }

    /// Selects the line halfway between the outermost ones if it is possible, otherwise a possible
    /// one.
    fn settle(&mut self) {
        let possible = &self.possible;
        let (begin, end) = (possible.time(self.from_ns), possible.time(self.to_ns));
        let ranges = (possible.lines.range(begin), possible.lines.range(end));
        let halfway = |range: (f64, f64)| (range.0 + range.1) / 2.0;
        let mut rate = match end - begin {
            long if long > 1e-6 => (halfway(ranges.1) - halfway(ranges.0)) / long,
            _ => halfway(possible.lines.rates()),
        };
        let mut offset = halfway(ranges.0) - rate * begin;
        if !possible.lines.has(offset, rate) {
            (offset, rate) = possible.lines.middle();
        }
        let middle_ns = self.from_ns.midpoint(self.to_ns);
        let at_middle = (offset + rate * possible.time(middle_ns)).round() as i64;
        self.line = Line {
            at_ns: middle_ns,
            offset_ns: possible.base.saturating_add(at_middle),
            drift_ppb: rate,
        };
        // The boundaries are straight lines from end to end or convex, so the ends have the
        // extremes.
        let off = |(low, high): (f64, f64), time: f64| {
            let here = offset + rate * time;
            (here - low).max(high - here)
        };
        self.bound_ns = off(ranges.0, begin).max(off(ranges.1, end)).max(0.0).ceil() as u64 + 2;
        self.drifts_ppb = possible.lines.rates();
    }
}

/// The possible lines, relative to an origin.
#[derive(Clone, Debug)]
pub(super) struct Possible {
    /// Guest time of the origin.
    pub(super) zero: i64,
    /// Offset of the origin.
    pub(super) base: i64,
    pub(super) lines: Lines,
}

impl Possible {
    /// All lines through this range of offsets at `zero`.
    pub(super) fn through(zero: i64, low: i64, high: i64) -> Self {
        let base = low.midpoint(high);
        let half = (high.saturating_sub(low) / 2 + 1) as f64;
        let max = MAX_DRIFT_PPM as f64 * 1000.0;
        Self { zero, base, lines: Lines::between((-half, half), (-max, max)) }
    }

    fn time(&self, stamp: i64) -> f64 {
        stamp.saturating_sub(self.zero) as f64 / 1e9
    }

    /// The minimum and maximum offset at a time of the guest's clock.
    pub(super) fn offsets(&self, stamp: i64) -> (i64, i64) {
        let (low, high) = self.lines.range(self.time(stamp));
        (self.base.saturating_add(low.floor() as i64), self.base.saturating_add(high.ceil() as i64))
    }

    /// Removes the lines that place an event at an impossible time at either end of its possible
    /// range; if none remains, changes nothing and returns `false`.
    pub(super) fn take(&mut self, stamp: i64, away: &Away) -> bool {
        let (low, high) = self.offsets(stamp);
        let (before, after) = (stamp.saturating_add(low), stamp.saturating_add(high));
        let Some((first, last)) = away.possible(before, after) else { return false };
        if (first, last) == (before, after) {
            return true;
        }
        let relative = |at: i64| at.saturating_sub(stamp).saturating_sub(self.base) as f64;
        let range = (relative(first), relative(last));
        self.lines.cut(self.time(stamp), range)
    }

    /// Repeats over the events until nothing changes: a removal by one event allows others to
    /// remove more. Skips contradicting events.
    pub(super) fn narrow(&mut self, stamps: &[i64], away: &Away) {
        let (Some(&first), Some(&last)) = (stamps.first(), stamps.last()) else { return };
        for _ in 0..MAX_PASSES {
            let before = (self.offsets(first), self.offsets(last));
            for &stamp in stamps {
                let _ = self.take(stamp, away);
            }
            if (self.offsets(first), self.offsets(last)) == before {
                break;
            }
        }
    }
}
