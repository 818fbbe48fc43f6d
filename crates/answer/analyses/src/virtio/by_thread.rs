//! A map by thread with a limit.

use crate::by_recording::ByRecording;

/// Index of the recording, and thread id.
pub(super) type ThreadKey = (u16, u32);

/// Values by thread. When a thread exceeds the limit of `MOST` threads, all others are dropped.
#[derive(Debug)]
pub(super) struct ByThread<T, const MOST: usize>(ByRecording<u32, T>);

impl<T, const MOST: usize> Default for ByThread<T, MOST> {
    fn default() -> Self {
        Self(ByRecording::default())
    }
}

impl<T, const MOST: usize> ByThread<T, MOST> {
    /// The value of a thread, if it has one.
    pub(super) fn get_mut(&mut self, key: ThreadKey) -> Option<&mut T> {
        self.0.get_mut(key)
    }

    /// Returns the value of a thread, and inserts the default for a new thread.
    pub(super) fn get_or_default(&mut self, key: ThreadKey) -> &mut T
    where
        T: Default,
    {
        self.make_room(key);
        self.0.get_or_default(key)
    }

    pub(super) fn set(&mut self, key: ThreadKey, value: T) {
        self.make_room(key);
        self.0.set(key, value);
    }

    /// Removes and returns the value of a thread.
    pub(super) fn take(&mut self, key: ThreadKey) -> Option<T> {
        self.0.take(key)
    }

    /// Drops the values of a recording after a loss, because the next events may not belong to them.
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
