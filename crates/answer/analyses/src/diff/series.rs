//! Measurements of one group over time: sums and durations by slice.

use super::grid::Grid;
use super::histogram::SlicedHistogram;
use crate::distribution::Distribution;

/// Max sums of a group.
pub const SUMS: usize = 10;

/// The sums of one slice; each report defines their meanings.
pub type Sums = [u64; SUMS];

/// Measurements of one group by slices of time.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// `None` while empty.
    grid: Option<Grid>,
    /// Non-empty slices, ascending: a group of two events can span the whole recording.
    sums: Vec<(usize, Sums)>,
    histogram: SlicedHistogram,
    durations: Distribution,
}

impl Series {
    /// Adds sums and an optional duration at a time.
    pub fn add(&mut self, at_ns: u64, sums: &Sums, duration_ns: Option<u64>) {
        let slice = match self.grid.and_then(|grid| grid.slice_of(at_ns)) {
            Some(slice) => slice,
            None => {
                self.widen(&Grid::at(at_ns));
                self.grid.and_then(|grid| grid.slice_of(at_ns)).unwrap_or(0)
            }
        };
        self.add_to_slice(slice, sums);
        if let Some(duration_ns) = duration_ns {
            self.durations.add(duration_ns);
            self.histogram.add(duration_ns, slice, self.grid.map_or(1, |grid| grid.len()));
        }
    }

    /// Adds the measurements of another group.
    pub fn merge(&mut self, other: &Self) {
        let Some(theirs) = other.grid else { return };
        self.widen(&theirs);
        let Some(grid) = self.grid else { return };
        let mut other = other.clone();
        other.regrid(&theirs, &grid);
        other.sums.iter().for_each(|(slice, sums)| self.add_to_slice(*slice, sums));
        self.durations.merge(&other.durations);
        self.histogram.merge(&other.histogram, grid.len());
    }

    /// Adds one sum of another group to a sum of this group.
    pub fn merge_sum(&mut self, other: &Self, from: usize, into: usize) {
        let sums = other.sums.iter().map(|(slice, sums)| {
            let mut into_sums = Sums::default();
            if let (Some(slot), Some(sum)) = (into_sums.get_mut(into), sums.get(from)) {
                *slot = *sum;
            }
            (*slice, into_sums)
        });
        self.merge(&Self { grid: other.grid, sums: sums.collect(), ..Self::default() });
    }

    fn add_to_slice(&mut self, slice: usize, sums: &Sums) {
        match self.sums.last_mut() {
            Some((last, totals)) if *last == slice => add_to(totals, sums),
            Some((last, _)) if *last > slice => {
                match self.sums.binary_search_by_key(&slice, |(slice, _)| *slice) {
                    Ok(at) => self
                        .sums
                        .get_mut(at)
                        .into_iter()
                        .for_each(|(_, totals)| add_to(totals, sums)),
                    Err(at) => self.sums.insert(at, (slice, *sums)),
                }
            }
            _ => self.sums.push((slice, *sums)),
        }
    }

    /// Extends the grid to a time range.
    fn widen(&mut self, range: &Grid) {
        let old = self.grid.unwrap_or(*range);
        let wider = old.joined(range);
        self.regrid(&old, &wider);
    }

    fn regrid(&mut self, from: &Grid, to: &Grid) {
        let sums = std::mem::take(&mut self.sums);
        sums.iter().for_each(|(slice, sums)| self.add_to_slice(from.slice_in(to, *slice), sums));
        self.histogram.regrid(from, to);
        self.grid = Some(*to);
    }

    pub(crate) fn grid(&self) -> Option<Grid> {
        self.grid
    }

    /// Sums by slice of its own grid: from the first to the last time of the group.
    pub(crate) fn sums(&self) -> Vec<Sums> {
        self.grid.map(|grid| self.sums_on(&grid)).unwrap_or_default()
    }

    /// Sums by slice of a coarser grid.
    pub(crate) fn sums_on(&self, grid: &Grid) -> Vec<Sums> {
        let mut all = vec![Sums::default(); grid.len()];
        let Some(own_grid) = &self.grid else { return all };
        for (slice, sums) in &self.sums {
            if let Some(totals) = all.get_mut(own_grid.slice_in(grid, *slice)) {
                add_to(totals, sums);
            }
        }
        all
    }

    pub(crate) fn histogram(&self) -> &SlicedHistogram {
        &self.histogram
    }

    #[must_use]
    pub const fn durations(&self) -> &Distribution {
        &self.durations
    }

    /// Total of a sum over all slices.
    #[must_use]
    pub fn total(&self, sum: usize) -> u64 {
        self.sums
            .iter()
            .filter_map(|(_, sums)| sums.get(sum))
            .fold(0, |all, value| all.saturating_add(*value))
    }

    /// Moves a sum into another one in every slice.
    pub fn fold(&mut self, from: usize, into: usize) {
        for (_, sums) in &mut self.sums {
            let moved = sums.get_mut(from).map_or(0, std::mem::take);
            if let Some(sum) = sums.get_mut(into) {
                *sum = sum.saturating_add(moved);
            }
        }
    }
}

fn add_to(totals: &mut Sums, sums: &Sums) {
    for (total, sum) in totals.iter_mut().zip(sums) {
        *total = total.saturating_add(*sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn series_of(events: &[(u64, u64)]) -> Series {
        let mut series = Series::default();
        for &(at_ns, value) in events {
            series.add(at_ns, &[1, value, 0, 0, 0, 0, 0, 0, 0, 0], Some(value));
        }
        series
    }

    proptest! {
        #[test]
        fn nothing_is_lost_however_time_goes(
            first in prop::collection::vec((0u64..1 << 40, 0u64..1 << 20), 0..300),
            right in prop::collection::vec((any::<u64>(), 0u64..1 << 20), 1..300),
        ) {
            let mut merged = series_of(&first);
            merged.merge(&series_of(&right));
            let all = series_of(&[first.clone(), right.clone()].concat());
            prop_assert_eq!(merged.grid(), all.grid());
            prop_assert_eq!(merged.sums(), all.sums());
            prop_assert_eq!(merged.total(0), (first.len() + right.len()) as u64);
            prop_assert_eq!(merged.durations().sum(), merged.total(1));
        }
    }

    /// Two distant events: slices between them need no memory.
    #[test]
    fn slices_without_events_are_not_kept() {
        let series = series_of(&[(0, 1), (1 << 40, 2)]);
        assert_eq!(series.sums.len(), 2);
        assert!(series.sums().len() > 2);
        assert_eq!(series.total(1), 3);
    }
}
