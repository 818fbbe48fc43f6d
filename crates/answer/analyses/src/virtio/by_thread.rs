//! What is known of threads for a while, of a bounded number of them.

use crate::by_recording::ByRecording;

/// A recording, and a thread in it.
pub(super) type ThreadKey = (u16, u32);

/// Something of each thread. Of one more than `MOST` threads nothing is known of the others any more.
#[derive(Debug)]
pub(super) struct ByThread<T, const MOST: usize>(ByRecording<u32, T>);

impl<T, const MOST: usize> Default for ByThread<T, MOST> {
    fn default() -> Self {
        Self(ByRecording::default())
    }
}

impl<T, const MOST: usize> ByThread<T, MOST> {
    /// That of a thread, if anything is known.
    pub(super) fn get_mut(&mut self, key: ThreadKey) -> Option<&mut T> {
        self.0.get_mut(key)
    }

    /// That of a thread, which begins empty.
    pub(super) fn get_or_default(&mut self, key: ThreadKey) -> &mut T
    where
        T: Default,
    {
        self.make_room(key);
        self.0.get_or_default(key)
    }

    /// Puts something in place of what was known.
    pub(super) fn set(&mut self, key: ThreadKey, value: T) {
        self.make_room(key);
        self.0.set(key, value);
    }

    /// Takes it out.
    pub(super) fn take(&mut self, key: ThreadKey) -> Option<T> {
        self.0.take(key)
    }

    /// Events of a recording are missing: what comes next may not follow what is known.
    pub(super) fn lost(&mut self, recording: u16) {
        self.0.forget(recording);
    }

    fn make_room(&mut self, key: ThreadKey) {
        if self.0.len() >= MOST && !self.0.contains(key) {
            *self = Self::default();
        }
    }

    #[cfg(test)]
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.values()
    }
}
