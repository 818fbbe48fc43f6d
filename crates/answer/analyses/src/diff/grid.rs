//! A grid of time slices: as narrow as possible for a fixed max number of slices between the first and the last
//! event.
//!
//! Boundaries of slices are multiples of a power of two of the recording's clock, so two grids always have a
//! common coarser grid.

/// Max slices; beyond that, slices become twice as wide. At least half of them are in use, unless the clock has
/// too few ticks.
pub const MAX_SLICES: usize = 128;

/// A time range in slices of equal width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Slice width as a power of two in nanoseconds.
    shift: u32,
    /// Number of the first slice; slice 0 begins at time 0.
    first: u64,
    /// Number of slices.
    len: usize,
}

impl Grid {
    /// A grid that only contains this time.
    pub(crate) const fn at(at_ns: u64) -> Self {
        Self { shift: 0, first: at_ns, len: 1 }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The slice of a time; `None` outside the grid.
    pub(crate) fn slice_of(&self, at_ns: u64) -> Option<usize> {
        let slice = (at_ns >> self.shift).checked_sub(self.first)?;
        usize::try_from(slice).ok().filter(|slice| *slice < self.len)
    }

    /// The narrowest grid that contains both grids.
    pub(crate) fn joined(&self, other: &Self) -> Self {
        let mut shift = self.shift.max(other.shift);
        loop {
            let ends = [self, other].map(|grid| {
                let last = grid.first + (grid.len as u64 - 1);
                (grid.first >> (shift - grid.shift), last >> (shift - grid.shift))
            });
            let first = ends[0].0.min(ends[1].0);
            let len = ends[0].1.max(ends[1].1) - first + 1;
            if len <= MAX_SLICES as u64 {
                return Self { shift, first, len: len as usize };
            }
            shift += 1;
        }
    }

    /// The slice of a coarser grid that contains a slice of this grid.
    pub(crate) fn slice_in(&self, coarser: &Self, slice: usize) -> usize {
        let number = (self.first + slice as u64) >> coarser.shift.saturating_sub(self.shift);
        number.saturating_sub(coarser.first) as usize
    }

    /// Overlap of each slice with a time range.
    pub(crate) fn widths(&self, from_ns: u64, to_ns: u64) -> Vec<u64> {
        let last = self.len - 1;
        (0..self.len)
            .map(|slice| {
                let number = u128::from(self.first) + slice as u128;
                let begin = u64::try_from(number << self.shift).unwrap_or(u64::MAX);
                let end = u64::try_from((number + 1) << self.shift).unwrap_or(u64::MAX);
                // The range can extend beyond the last slice, because an event in it can end later.
                let end = if slice == last { end.max(to_ns) } else { end };
                end.min(to_ns).saturating_sub(begin.max(from_ns))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_time_keeps_its_slice(events in prop::collection::vec(any::<u64>(), 1..40)) {
            let mut grid = Grid::at(events[0]);
            for &event in &events {
                let wider = grid.joined(&Grid::at(event));
                for slice in 0..grid.len() {
                    prop_assert!(grid.slice_in(&wider, slice) < wider.len());
                }
                prop_assert!(wider.len() <= MAX_SLICES);
                grid = wider;
            }
            prop_assert!(events.iter().all(|event| grid.slice_of(*event).is_some()));
            let (from, to) = (events.iter().min().unwrap(), events.iter().max().unwrap());
            let widths: u128 = grid.widths(*from, *to).iter().map(|width| u128::from(*width)).sum();
            prop_assert_eq!(widths, u128::from(to - from));
        }
    }

    #[test]
    fn a_steady_stream_has_at_least_half_of_the_slices() {
        let mut grid = Grid::at(5_000_000_000);
        for step in 0..10_000u64 {
            grid = grid.joined(&Grid::at(5_000_000_000 + step * 1_000_000));
        }
        assert!((MAX_SLICES / 2..=MAX_SLICES).contains(&grid.len()), "{grid:?}");
    }
}
