//! Bytes that a guest may still write; guests of one identity share what it has.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// With less left nothing comes of a session: agents send pages in batches, 16 at a time.
const MIN_BYTES: u64 = 64 << 10;

/// Bytes that are left. Clones are the same ones.
#[derive(Clone, Debug)]
pub(crate) struct Quota(Arc<AtomicU64>);

impl Quota {
    /// A quota of this many bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        Self(Arc::new(AtomicU64::new(bytes)))
    }

    /// Takes this many bytes; false when fewer are left.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let take = |remaining: u64| remaining.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Gives back what was taken for files that are gone.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that are left now.
    pub(crate) fn remaining(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether nothing is left that would be of use.
    pub(crate) fn is_used_up(&self) -> bool {
        self.0.load(Ordering::Relaxed) < MIN_BYTES
    }
}

impl From<u64> for Quota {
    fn from(bytes: u64) -> Self {
        Self::new(bytes)
    }
}
