//! Size of the current generation, and a notification when it reaches its limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use crate::flight_plan::FlightEvent;

/// Factor by which a generation may exceed its limit before it ends, on a busy machine.
const MAX_TIMES: u64 = 4;

/// A counter that all rollers share. Clones share the state.
#[derive(Clone, Debug)]
pub(crate) struct Growing(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    bytes: AtomicU64,
    /// Limit of a generation.
    most: u64,
    full: Sender<FlightEvent>,
}

impl Growing {
    /// Starts at zero; sends to `full` once the size reaches `max`.
    pub(crate) fn new(max: u64, full: Sender<FlightEvent>) -> Self {
        Self(Arc::new(Inner { bytes: AtomicU64::new(0), most: max, full }))
    }

    /// Size of the current segments.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Whether the size has reached the limit.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes() >= self.0.most
    }

    /// Whether rollers must stop writing until the generation ends.
    pub(crate) fn is_more_than_may_be(&self) -> bool {
        self.bytes() >= self.0.most.saturating_mul(MAX_TIMES)
    }

    /// Counts written bytes.
    pub(crate) fn add(&self, bytes: u64) {
        let before = self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before < self.0.most && before.saturating_add(bytes) >= self.0.most {
            // The receiver may be gone by now.
            let _ = self.0.full.send(FlightEvent::Full);
        }
    }

    /// Subtracts an ended segment, or bytes that were cut off.
    pub(crate) fn take_away(&self, bytes: u64) {
        self.0.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn it_is_reported_once_that_there_are_as_many_as_there_may_be() {
        let (full, reported) = mpsc::channel();
        let growing = Growing::new(100, full);
        growing.add(99);
        assert!(!growing.is_full() && reported.try_recv().is_err());
        growing.clone().add(1);
        growing.add(500);
        assert!(growing.is_full() && matches!(reported.try_recv(), Ok(FlightEvent::Full)));
        assert!(reported.try_recv().is_err() && growing.is_more_than_may_be());
        growing.take_away(600);
        assert_eq!(growing.bytes(), 0);
        growing.add(100);
        assert!(reported.try_recv().is_ok());
    }
}
