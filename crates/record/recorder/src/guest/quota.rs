//! Bytes that a guest may still write; guests of one identity share a quota.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// With less left, a session is useless: agents send batches of 16 pages.
const MIN_BYTES: u64 = 64 << 10;

/// Remaining bytes. Clones share the state.
#[derive(Clone, Debug)]
pub(crate) struct Quota(Arc<AtomicU64>);

impl Quota {
    pub(crate) fn new(bytes: u64) -> Self {
        Self(Arc::new(AtomicU64::new(bytes)))
    }

    /// Takes bytes; false if fewer are left.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let take = |remaining: u64| remaining.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Returns the bytes of removed files.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn remaining(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether too little is left to be useful.
    pub(crate) fn is_used_up(&self) -> bool {
        self.0.load(Ordering::Relaxed) < MIN_BYTES
    }
}

impl From<u64> for Quota {
    fn from(bytes: u64) -> Self {
        Self::new(bytes)
    }
}
