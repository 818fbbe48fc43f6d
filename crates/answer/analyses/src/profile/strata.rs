//! A map of strata to sums, with a cache of recent strata, because spans of a vCPU alternate between few strata.

use rustc_hash::FxHashMap;

use super::sums::{Stratum, StratumSum};

/// Number of cached strata.
const RECENT: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Strata {
    places: FxHashMap<Stratum, usize>,
    all: Vec<(Stratum, StratumSum)>,
    /// Indexes of recent strata, by a hash of the properties that usually differ.
    recent: [usize; RECENT],
}

impl Strata {
    /// The sum of a stratum; inserts it if the stratum is new.
    #[inline]
    pub(super) fn get_or_insert(&mut self, stratum: Stratum) -> &mut StratumSum {
        let code = stratum.exit.map_or(0, |(_, code)| (code as usize).wrapping_add(1));
        let of_vcpu = stratum.vcpu.index as usize * 11 + stratum.state as usize * 5;
        let sampled = usize::from(stratum.is_self_sampled);
        let slot = of_vcpu.wrapping_add(code).wrapping_add(sampled) % RECENT;
        let recent = self.recent[slot];
        let place = match self.all.get(recent) {
            Some((known, _)) if *known == stratum => recent,
            _ => self.place(stratum),
        };
        self.recent[slot] = place;
        &mut self.all[place].1
    }

    fn place(&mut self, stratum: Stratum) -> usize {
        *self.places.entry(stratum).or_insert_with(|| {
            self.all.push((stratum, StratumSum::default()));
            self.all.len() - 1
        })
    }

    /// The sum of a known stratum.
    pub(super) fn get_mut(&mut self, stratum: &Stratum) -> Option<&mut StratumSum> {
        Some(&mut self.all.get_mut(*self.places.get(stratum)?)?.1)
    }

    pub(super) fn sums_mut(&mut self) -> impl Iterator<Item = &mut StratumSum> {
        self.all.iter_mut().map(|(_, sum)| sum)
    }

    pub(super) fn into_map(self) -> FxHashMap<Stratum, StratumSum> {
        self.all.into_iter().collect()
    }
}
