//! A grid of latencies over time that fits any recording.
//!
//! The column width is a power of two in nanoseconds. When the recording turns out to be longer, columns are
//! merged in pairs: neither start nor end must be known in advance.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Rows per power of two of latency.
pub const LATENCY_ROWS_PER_OCTAVE: u64 = 4;

/// Max columns; long recordings use at least half of them.
const MAX_COLUMNS: u64 = 512;

/// Row of a latency: the exponent, and the two bits after the leading one. Row `r` starts at `2^(r / 4) * (1 + r %
/// 4 / 4)`; below 4 ns rows are coarser, which is invisible in a drawing.
#[must_use]
pub fn latency_row(latency_ns: u64) -> u8 {
    let Some(octave) = latency_ns.checked_ilog2() else { return 0 };
    let below = if octave >= 2 { latency_ns >> (octave - 2) } else { latency_ns << (2 - octave) };
    (u64::from(octave) * LATENCY_ROWS_PER_OCTAVE + (below & 3)) as u8
}

/// Exits that share cells of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeatKey {
    /// Number of the recording.
    pub recording: u32,
    /// Index of the vCPU in it.
    pub vcpu: u32,
    /// Level of the guest that exited.
    pub level: u8,
    /// As in `timeline::ExitSpan`.
    pub isa: u8,
    /// As in `timeline::ExitSpan`.
    pub code: u64,
}

/// Exits in one cell of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeatCell {
    /// Column: time of the exit in units of column widths, from the clock's zero.
    pub column: u64,
    /// Row: see [`latency_row`].
    pub row: u8,
    /// Number of exits.
    pub count: u64,
}

#[derive(Debug, Default)]
pub struct Heat {
    groups: FxHashMap<HeatKey, FxHashMap<(u64, u8), u64>>,
    column_log2: u32,
    columns: Option<(u64, u64)>,
}

impl Heat {
    /// Adds a paired exit.
    pub fn add(&mut self, key: HeatKey, start_ns: u64, duration_ns: u64) {
        let column = start_ns >> self.column_log2;
        let (first, last) = self.columns.unwrap_or((column, column));
        self.columns = Some((first.min(column), last.max(column)));
        *self
            .groups
            .entry(key)
            .or_default()
            .entry((column, latency_row(duration_ns)))
            .or_default() += 1;
        while self.column_count() > MAX_COLUMNS {
            self.widen();
        }
    }

    /// Adds all exits of another grid.
    pub fn merge(&mut self, mut other: Self) {
        while self.column_log2 < other.column_log2 {
            self.widen();
        }
        while other.column_log2 < self.column_log2 {
            other.widen();
        }
        for (key, cells) in other.groups {
            let mine = self.groups.entry(key).or_default();
            for (place, count) in cells {
                *mine.entry(place).or_default() += count;
            }
        }
        let both = [self.columns, other.columns].into_iter().flatten();
        self.columns = both.reduce(|range, other| (range.0.min(other.0), range.1.max(other.1)));
        while self.column_count() > MAX_COLUMNS {
            self.widen();
        }
    }

    fn column_count(&self) -> u64 {
        self.columns.map_or(0, |(first, last)| last - first + 1)
    }

    fn widen(&mut self) {
        self.column_log2 += 1;
        self.columns = self.columns.map(|(first, last)| (first >> 1, last >> 1));
        for cells in self.groups.values_mut() {
            let mut wider: FxHashMap<(u64, u8), u64> = FxHashMap::default();
            for ((column, row), count) in cells.drain() {
                *wider.entry((column >> 1, row)).or_default() += count;
            }
            *cells = wider;
        }
    }

    /// Column width as a power of two in nanoseconds.
    #[must_use]
    pub fn column_log2(&self) -> u32 {
        self.column_log2
    }

    /// First and last column in use.
    #[must_use]
    pub fn columns(&self) -> Option<(u64, u64)> {
        self.columns
    }

    /// Keys that have cells.
    pub fn keys(&self) -> impl Iterator<Item = &HeatKey> {
        self.groups.keys()
    }

    /// Cells, summed over keys with the same group.
    pub fn grouped<K: Ord>(
        &self,
        mut group: impl FnMut(&HeatKey) -> K,
    ) -> BTreeMap<K, Vec<HeatCell>> {
        let mut sums: BTreeMap<K, BTreeMap<(u64, u8), u64>> = BTreeMap::new();
        for (key, cells) in &self.groups {
            let sum = sums.entry(group(key)).or_default();
            for (place, count) in cells {
                *sum.entry(*place).or_default() += count;
            }
        }
        let list = |cells: BTreeMap<(u64, u8), u64>| {
            cells
                .into_iter()
                .map(|((column, row), count)| HeatCell { column, row, count })
                .collect()
        };
        sums.into_iter().map(|(key, cells)| (key, list(cells))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: HeatKey = HeatKey { recording: 0, vcpu: 0, level: 1, isa: 0, code: 7 };

    #[test]
    fn rows_grow_with_latencies() {
        let mut before = 0;
        for latency_ns in (0..100_000).chain((0..44).map(|bit| 1u64 << (20 + bit))) {
            let row = latency_row(latency_ns);
            assert!(row >= before, "{latency_ns}");
            before = row;
        }
        assert_eq!(latency_row(1024), 40);
        assert_eq!(latency_row(1024 + 256), 41);
        assert_eq!(latency_row(u64::MAX), 255);
    }

    proptest! {
        #[test]
        fn two_grids_together_are_that_of_all_exits(
            exits in prop::collection::vec((0u64..1 << 50, 0u64..1 << 40), 0..60),
            more in prop::collection::vec((0u64..1 << 30, 0u64..1 << 40), 0..60),
        ) {
            let heat_of = |exits: &[(u64, u64)]| {
                let mut heat = Heat::default();
                exits.iter().for_each(|(start_ns, took_ns)| heat.add(KEY, *start_ns, *took_ns));
                heat
            };
            let mut merged = heat_of(&exits);
            merged.merge(heat_of(&more));
            let all = heat_of(&[exits, more].concat());
            let shown = |heat: &Heat| (heat.column_log2(), heat.columns(), heat.grouped(|key| *key));
            prop_assert_eq!(shown(&merged), shown(&all));
        }

        #[test]
        fn no_exit_is_lost_whatever_the_range(
            exits in prop::collection::vec((any::<u64>(), 0u64..1 << 40), 1..300),
        ) {
            let mut heat = Heat::default();
            for (start_ns, duration_ns) in &exits {
                heat.add(KEY, *start_ns, *duration_ns);
            }
            let (first, last) = heat.columns().unwrap();
            prop_assert!(last - first < MAX_COLUMNS);
            let cells = &heat.grouped(|key| *key)[&KEY];
            prop_assert_eq!(cells.iter().map(|cell| cell.count).sum::<u64>(), exits.len() as u64);
            prop_assert!(cells.iter().all(|cell| (first..=last).contains(&cell.column)));
            for (start_ns, duration_ns) in exits {
                let place = (start_ns >> heat.column_log2(), latency_row(duration_ns));
                prop_assert!(cells.iter().any(|cell| (cell.column, cell.row) == place));
            }
        }
    }
}
