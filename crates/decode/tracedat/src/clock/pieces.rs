//! A relation to another machine's clock that was derived from events; it replaces TIME_SHIFT.

use std::sync::Arc;

/// A line that relates a CPU's clock to another clock from some time on: `other = own + offset +
/// drift * (own - at)`. Times are those after TSC2NSEC, DATE and OFFSET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockPiece {
    /// Start on the own clock.
    pub from: u64,
    /// Origin of the line.
    pub at: u64,
    /// Offset at the origin.
    pub offset: i64,
    /// Change of the offset per 10^15 units of the own clock.
    pub drift: i64,
}

const DRIFT_UNIT: i128 = 1_000_000_000_000_000;

impl ClockPiece {
    fn offset_at(&self, time: u64) -> i64 {
        let grown = (i128::from(time).wrapping_sub(self.at.into()))
            .saturating_mul(self.drift.into())
            .div_euclid(DRIFT_UNIT);
        self.offset.saturating_add(i64::try_from(grown).unwrap_or(0))
    }
}

/// The pieces of all CPUs of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockPieces {
    /// Sorted by CPU.
    cpus: Arc<[(u32, Vec<ClockPiece>)]>,
}

impl ClockPieces {
    /// CPUs with their pieces, in order for each CPU. A CPU without pieces uses those of the first CPU that has
    /// some.
    #[must_use]
    pub fn new(mut cpus: Vec<(u32, Vec<ClockPiece>)>) -> Self {
        cpus.retain(|(_, pieces)| !pieces.is_empty());
        cpus.sort_by_key(|(cpu, _)| *cpu);
        Self { cpus: cpus.into() }
    }

    /// The offset at a time on a CPU; the first piece also applies before its start.
    pub(super) fn offset(&self, time: u64, cpu: u32) -> i64 {
        let index = self.cpus.binary_search_by_key(&cpu, |(cpu, _)| *cpu).unwrap_or(0);
        let Some((_, pieces)) = self.cpus.get(index) else { return 0 };
        let next_piece = pieces.partition_point(|piece| piece.from <= time);
        pieces.get(next_piece.saturating_sub(1)).map_or(0, |piece| piece.offset_at(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_holds_until_the_next() {
        let piece = |from, offset, drift| ClockPiece { from, at: from, offset, drift };
        let pieces = ClockPieces::new(vec![
            (0, vec![]),
            (1, vec![piece(1000, 50, 0), piece(2000, -7, 500_000_000_000)]),
        ]);
        assert_eq!(pieces.offset(10, 1), 50);
        assert_eq!(pieces.offset(1999, 1), 50);
        assert_eq!(pieces.offset(2000, 1), -7);
        assert_eq!(pieces.offset(1_002_000, 1), 493);
        // CPU 0 and a nonexistent CPU use the pieces of the other CPU.
        assert_eq!((pieces.offset(2000, 0), pieces.offset(2000, 9)), (-7, -7));
        assert_eq!(ClockPieces::default().offset(2000, 0), 0);
    }

    #[test]
    fn no_number_overflows() {
        let piece = ClockPiece { from: 0, at: u64::MAX, offset: i64::MIN, drift: i64::MAX };
        let pieces = ClockPieces::new(vec![(0, vec![piece])]);
        for time in [0, 1, u64::MAX] {
            let _ = pieces.offset(time, 0);
        }
    }
}
