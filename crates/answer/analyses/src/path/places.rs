//! A map by thread, CPU or reason with a cache of recent keys, because most events concern few of them.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Number of cached keys.
const RECENT: usize = 64;

/// A key of the map.
pub(super) trait PlaceKey: Copy + Eq + Hash {
    /// A number that usually differs between keys.
    fn number(self) -> usize;
}

/// Key: a thread of a recording.
impl PlaceKey for (u16, u32) {
    #[inline]
    fn number(self) -> usize {
        usize::from(self.0) ^ self.1 as usize
    }
}

/// Key: a CPU of a recording.
impl PlaceKey for (u16, u16) {
    #[inline]
    fn number(self) -> usize {
        usize::from(self.0) ^ usize::from(self.1)
    }
}

/// Key: instruction set and code of an exit.
impl PlaceKey for (u8, u64) {
    #[inline]
    fn number(self) -> usize {
        self.1 as usize
    }
}

#[derive(Debug)]
pub(super) struct Places<K, V> {
    all: FxHashMap<K, u32>,
    /// Recent keys with their indexes, by the low bits of [`PlaceKey::number`].
    recent: [Option<(K, u32)>; RECENT],
    values: Vec<(K, V)>,
}

impl<K: PlaceKey, V> Default for Places<K, V> {
    fn default() -> Self {
        Self { all: FxHashMap::default(), recent: [None; RECENT], values: Vec::new() }
    }
}

impl<K: PlaceKey, V> Places<K, V> {
    #[inline]
    fn known(&mut self, key: K) -> Option<usize> {
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

    /// The value of a key, if it has one.
    #[inline]
    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let place = self.known(key)?;
        self.values.get_mut(place).map(|(_, value)| value)
    }

    /// The value of a key; inserts it if the key is new.
    #[inline]
    pub(super) fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let place = self.known(key).unwrap_or_else(|| self.add(key, make));
        &mut self.values[place].1
    }

    #[cold]
    fn add(&mut self, key: K, make: impl FnOnce() -> V) -> usize {
        let place = self.values.len();
        self.values.push((key, make()));
        self.all.insert(key, place as u32);
        place
    }

    /// Number of keys.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// All entries in the order of insertion.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.values.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_value_however_many_there_are() {
        let mut places = Places::default();
        let threads =
            (0..3_u16).flat_map(|recording| (0..1000_u32).map(move |thread| (recording, thread)));
        for (value, thread) in threads.clone().enumerate() {
            assert_eq!(places.get_mut(thread), None);
            assert_eq!(*places.get_or_insert_with(thread, || value), value);
        }
        for _ in 0..2 {
            for (value, thread) in threads.clone().enumerate() {
                assert_eq!(places.get_mut(thread), Some(&mut value.clone()));
                assert_eq!(
                    *places.get_or_insert_with(thread, || unreachable!("it has one")),
                    value
                );
            }
        }
        assert_eq!(places.len(), 3000);
        assert!(places.iter().map(|(thread, _)| *thread).eq(threads));
    }
}
