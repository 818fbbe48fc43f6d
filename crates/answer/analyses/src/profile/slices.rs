//! Times by slices of a recording, as narrow as a max number of slices allows.

use super::slice_shares::shares;

/// Max slices; beyond that, the width doubles.
const MAX_SLICES: u64 = 128;
/// Initial slice width as a power of two.
const FIRST_SHIFT: u32 = 14;
/// Max slice width as a power of two.
const WIDEST_SHIFT: u32 = 63;

/// Slices of a recording. Slice 0 begins at time 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct SliceGrid {
    shift: u32,
    first_ns: u64,
    last_ns: u64,
    /// Number of stored times, of all code together.
    times: usize,
    /// Max stored times; beyond that, the width doubles.
    most_times: usize,
}

impl SliceGrid {
    /// A grid for at most this many stored times.
    pub(super) const fn new(most_times: usize) -> Self {
        Self { shift: FIRST_SHIFT, first_ns: u64::MAX, last_ns: 0, times: 0, most_times }
    }

    /// Extends the grid to a time range.
    pub(super) fn reach(&mut self, from_ns: u64, to_ns: u64) {
        self.first_ns = self.first_ns.min(from_ns);
        self.last_ns = self.last_ns.max(to_ns);
    }

    /// Whether there are too many slices or stored times.
    pub(super) const fn is_too_fine(&self) -> bool {
        let slices = (self.last_ns >> self.shift).saturating_sub(self.first_ns >> self.shift);
        self.shift < WIDEST_SHIFT && (slices >= MAX_SLICES || self.times > self.most_times)
    }

    /// Doubles the slice width; the caller must [`SliceTimes::widen`] and recount all stored times.
    pub(super) const fn widen(&mut self) {
        self.shift += 1;
        self.times = 0;
    }

    /// Counts stored times.
    pub(super) const fn count(&mut self, times: &SliceTimes) {
        self.times = self.times.saturating_add(times.0.len());
    }

    /// Start of the first slice, slice width, and number of slices.
    pub(super) fn extent(&self) -> (u64, u64, u32) {
        let (first, last) = (self.first_ns >> self.shift, self.last_ns >> self.shift);
        let slices = last.checked_sub(first).map_or(0, |more| more.saturating_add(1));
        (first << self.shift, 1 << self.shift, u32::try_from(slices).unwrap_or(u32::MAX))
    }
}

/// Times by slices; ascending after [`SliceTimes::settle`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SliceTimes(pub(super) Vec<(u64, u64)>);

impl SliceTimes {
    /// Adds a time range.
    pub(super) fn add(&mut self, grid: &mut SliceGrid, from_ns: u64, to_ns: u64) {
        let mut at_ns = from_ns;
        while at_ns < to_ns {
            let slice = at_ns >> grid.shift;
            let end_ns = slice.saturating_add(1).checked_mul(1 << grid.shift).unwrap_or(to_ns);
            let end_ns = end_ns.min(to_ns);
            grid.times = grid.times.saturating_add(self.put(slice, end_ns - at_ns));
            at_ns = end_ns;
        }
    }

    /// Adds a time to the slice that contains `at_ns`.
    pub(super) fn add_at(&mut self, grid: &mut SliceGrid, at_ns: u64, ns: u64) {
        let more = self.put(at_ns >> grid.shift, ns);
        grid.times = grid.times.saturating_add(more);
    }

    /// Adds a time to a slice; returns the number of additional entries.
    fn put(&mut self, slice: u64, ns: u64) -> usize {
        match self.0.last_mut().filter(|(last, _)| *last == slice) {
            Some((_, sum)) => {
                *sum = sum.saturating_add(ns);
                0
            }
            None => {
                // Most code only has a few slices.
                if self.0.is_empty() {
                    self.0.reserve_exact(1);
                }
                self.0.push((slice, ns));
                1
            }
        }
    }

    /// Moves all entries of `others` here.
    pub(super) fn take(&mut self, others: &mut Self) {
        for (slice, ns) in others.0.drain(..) {
            self.put(slice, ns);
        }
    }

    /// Adds all entries of `others`.
    pub(super) fn extend(&mut self, others: &Self) {
        self.0.extend_from_slice(&others.0);
    }

    /// Converts to doubled slice widths.
    pub(super) fn widen(&mut self) {
        self.0.iter_mut().for_each(|(slice, _)| *slice >>= 1);
        self.settle();
    }

    /// Sorts entries, and merges those of the same slice.
    pub(super) fn settle(&mut self) {
        self.0.sort_unstable_by_key(|(slice, _)| *slice);
        self.0.dedup_by(|(slice, ns), (kept_slice, sum)| {
            let is_same = slice == kept_slice;
            if is_same {
                *sum = sum.saturating_add(*ns);
            }
            is_same
        });
    }

    /// Numbers slices from the first one of the grid.
    pub(super) fn numbered(mut self, grid: &SliceGrid) -> Vec<(u32, u64)> {
        self.settle();
        let first = grid.first_ns >> grid.shift;
        let number = |slice: u64| u32::try_from(slice.saturating_sub(first)).unwrap_or(u32::MAX);
        self.0.into_iter().map(|(slice, ns)| (number(slice), ns)).collect()
    }

    /// Distributes these times over `parts` with known times, by `weights`.
    pub(super) fn shared_out(mut self, parts: &[u64], mut weights: Vec<Self>) -> Vec<Self> {
        self.settle();
        weights.iter_mut().for_each(Self::settle);
        shares(parts, &weights, &self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_time_is_lost(spans in prop::collection::vec((0..1_u64 << 40, 0..1_u64 << 30), 1..50)) {
            let (mut grid, mut times) = (SliceGrid::new(1000), SliceTimes::default());
            for &(from_ns, length_ns) in &spans {
                grid.reach(from_ns, from_ns + length_ns);
                while grid.is_too_fine() {
                    grid.widen();
                    times.widen();
                    grid.count(&times);
                }
                times.add(&mut grid, from_ns, from_ns + length_ns);
            }
            let (first_ns, slice_ns, slices) = grid.extent();
            prop_assert!(u64::from(slices) <= MAX_SLICES);
            let numbered = times.numbered(&grid);
            prop_assert!(numbered.windows(2).all(|pair| pair[0].0 < pair[1].0));
            for &(slice, ns) in &numbered {
                let from_ns = first_ns + u64::from(slice) * slice_ns;
                let within = |&(from, length): &(u64, u64)| {
                    (from + length).min(from_ns + slice_ns).saturating_sub(from.max(from_ns))
                };
                prop_assert_eq!(ns, spans.iter().map(within).sum::<u64>());
            }
            let total_ns: u64 = spans.iter().map(|(_, length)| length).sum();
            prop_assert_eq!(numbered.iter().map(|(_, ns)| ns).sum::<u64>(), total_ns);
        }
    }

    #[test]
    fn the_end_of_time_is_a_slice_like_others() {
        let (mut grid, mut times) = (SliceGrid::new(1000), SliceTimes::default());
        grid.reach(0, u64::MAX);
        while grid.is_too_fine() {
            grid.widen();
        }
        times.add(&mut grid, u64::MAX - 5, u64::MAX);
        assert_eq!(times.0.iter().map(|(_, ns)| ns).sum::<u64>(), 5);
    }
}
