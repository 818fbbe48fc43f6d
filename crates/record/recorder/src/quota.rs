//! Max bytes of the host's pages: a guest's activity also fills the host's disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::ending::Stop;

/// The quota that all pumps of a recording share. Clones share the state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quota(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    most_bytes: u64,
    remaining: AtomicU64,
    reached: AtomicBool,
    unwritten: AtomicU64,
    /// Ends the recording when the quota is used up.
    ends: Stop,
}

impl Quota {
    /// A number of bytes, and the recording that ends once they are used up; `None`: no limit.
    pub(crate) fn new(most_bytes: Option<u64>, ends: &Stop) -> Self {
        Self(most_bytes.map(|most_bytes| {
            Arc::new(Inner {
                most_bytes,
                remaining: AtomicU64::new(most_bytes),
                reached: AtomicBool::new(false),
                unwritten: AtomicU64::new(0),
                ends: ends.clone(),
            })
        }))
    }

    /// Takes bytes before they are written; false if fewer are left, which ends the recording.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let Some(inner) = &self.0 else { return true };
        let take = |remaining: u64| remaining.checked_sub(bytes);
        let has = inner.remaining.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        if !has {
            inner.reached.store(true, Ordering::Relaxed);
            inner.ends.end();
        }
        has
    }

    /// Returns unused bytes.
    pub(crate) fn give_back(&self, bytes: u64) {
        if let Some(inner) = &self.0 {
            inner.remaining.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Counts bytes that were not written because the quota was used up.
    pub(crate) fn leave_out(&self, bytes: u64) {
        if let Some(inner) = &self.0 {
            inner.unwritten.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// The error message at the end; `None` if the quota was sufficient.
    pub(crate) fn fault(&self) -> Option<String> {
        let inner = self.0.as_ref()?;
        let unwritten = inner.unwritten.load(Ordering::Relaxed);
        inner.reached.load(Ordering::Relaxed).then(|| {
            format!(
                "the recording stopped when its pages reached {} KiB (--quota); {} KiB in the kernel's buffers were dropped",
                inner.most_bytes >> 10,
                unwritten.div_ceil(1024)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_quota_that_is_used_up_ends_the_recording_and_is_reported() {
        let stop = Stop::new().unwrap();
        let quota = Quota::new(Some(8192), &stop);
        assert!(quota.take(4096) && quota.clone().take(8192 - 4096));
        assert!(!stop.wait(Duration::ZERO) && quota.fault().is_none());
        quota.give_back(1);
        assert!(quota.take(1) && !quota.take(1) && stop.wait(Duration::ZERO));
        quota.leave_out(5000);
        let faults = quota.fault().unwrap();
        assert!(faults.contains("8 KiB (--quota)") && faults.contains("5 KiB"), "{faults}");
        assert!(Quota::default().take(u64::MAX));
    }
}
