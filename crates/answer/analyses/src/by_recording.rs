//! A map by recording and key. A loss drops all entries of its recording in constant time, because a recording can
//! have as many entries and as many losses as lines.

use std::hash::Hash;

use rustc_hash::FxHashMap;

#[derive(Debug)]
pub(crate) struct ByRecording<K, V> {
    /// By recording. A loss drops the inner map: clearing it takes time proportional to its largest size ever.
    all: FxHashMap<u16, FxHashMap<K, V>>,
    len: usize,
}

impl<K, V> Default for ByRecording<K, V> {
    fn default() -> Self {
        Self { all: FxHashMap::default(), len: 0 }
    }
}

impl<K: Copy + Eq + Hash, V> ByRecording<K, V> {
    /// Number of values of all recordings.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn contains(&self, (recording, key): (u16, K)) -> bool {
        self.all.get(&recording).is_some_and(|known| known.contains_key(&key))
    }

    pub(crate) fn get_mut(&mut self, (recording, key): (u16, K)) -> Option<&mut V> {
        self.all.get_mut(&recording)?.get_mut(&key)
    }

    /// The value of a key; inserts the default value first if the key is absent.
    pub(crate) fn get_or_default(&mut self, (recording, key): (u16, K)) -> &mut V
    where
        V: Default,
    {
        let known = self.all.entry(recording).or_default();
        known.entry(key).or_insert_with(|| {
            self.len += 1;
            V::default()
        })
    }

    pub(crate) fn set(&mut self, (recording, key): (u16, K), value: V) {
        let before = self.all.entry(recording).or_default().insert(key, value);
        self.len += usize::from(before.is_none());
    }

    /// Removes and returns a value.
    pub(crate) fn take(&mut self, (recording, key): (u16, K)) -> Option<V> {
        let value = self.all.get_mut(&recording)?.remove(&key)?;
        self.len -= 1;
        Some(value)
    }

    /// Drops all values of a recording.
    pub(crate) fn forget(&mut self, recording: u16) {
        let gone = self.all.remove(&recording).map_or(0, |known| known.len());
        self.len -= gone;
    }

    #[cfg(test)]
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.all.values().flat_map(FxHashMap::values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_recording_is_forgotten_and_no_other() {
        let mut known = ByRecording::<u32, u64>::default();
        for key in [(0, 1), (0, 2), (1, 1), (0, 1)] {
            *known.get_or_default(key) += 1;
        }
        known.set((1, 7), 5);
        known.set((1, 7), 6);
        assert_eq!((known.len(), known.get_mut((0, 1)).copied()), (4, Some(2)));
        assert_eq!((known.take((1, 1)), known.take((1, 1)), known.len()), (Some(1), None, 3));
        known.forget(0);
        assert_eq!((known.contains((0, 2)), known.contains((1, 7)), known.len()), (false, true, 1));
        known.forget(0);
        known.forget(1);
        assert_eq!((known.len(), known.values().count()), (0, 0));
    }
}
