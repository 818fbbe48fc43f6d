//! Where what is known of threads and CPUs is kept: found without a hash for those of which most events are.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Keys at hand.
const RECENT: usize = 64;

/// What tells things apart of which there are events.
pub(super) trait PlaceKey: Copy + Eq + Hash {
    /// A number that mostly differs.
    fn number(self) -> usize;
}

/// A thread of a recording.
impl PlaceKey for (u16, u32) {
    #[inline]
    fn number(self) -> usize {
        usize::from(self.0) ^ self.1 as usize
    }
}

/// A CPU of a recording.
impl PlaceKey for (u16, u16) {
    #[inline]
    fn number(self) -> usize {
        usize::from(self.0) ^ usize::from(self.1)
    }
}

/// Numbers places, one for each key.
#[derive(Debug)]
pub(super) struct Places<K> {
    all: FxHashMap<K, u32>,
    /// By the low bits of their numbers, keys that were asked for last, with their places.
    recent: [Option<(K, u32)>; RECENT],
}

impl<K: PlaceKey> Default for Places<K> {
    fn default() -> Self {
        Self { all: FxHashMap::default(), recent: [None; RECENT] }
    }
}

impl<K: PlaceKey> Places<K> {
    /// The place of a key that has one.
    #[inline]
    pub(super) fn known(&mut self, key: K) -> Option<usize> {
        match self.recent[key.number() % RECENT] {
            Some((recent, place)) if recent == key => Some(place as usize),
            _ => self.look_up(key),
        }
    }

    #[inline(never)]
    fn look_up(&mut self, key: K) -> Option<usize> {
        let place = *self.all.get(&key)?;
        self.recent[key.number() % RECENT] = Some((key, place));
        Some(place as usize)
    }

    /// Gives a key the place that is its own from now on.
    pub(super) fn add(&mut self, key: K, place: usize) {
        self.all.insert(key, place as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_place_however_many_there_are() {
        let mut places = Places::default();
        let threads = (0..3_u16).flat_map(|of| (0..1000_u32).map(move |thread| (of, thread)));
        for (place, thread) in threads.clone().enumerate() {
            assert_eq!(places.known(thread), None);
            places.add(thread, place);
        }
        for _ in 0..2 {
            for (place, thread) in threads.clone().enumerate() {
                assert_eq!(places.known(thread), Some(place));
                assert_eq!(places.known(thread), Some(place));
            }
        }
    }
}
