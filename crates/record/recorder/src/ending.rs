//! Signals that end a recording, and deadlines for its guests.
//!
//! ```text
//! 0 s          guests get the request to stop; the host continues to record, for the effects of their last events
//! at most 1 s  the host's tracing goes off, and its buffers are emptied
//! at most 5 s  guests have sent the rest (`--guest-wait`), or are cut off
//! ```

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use os::waits::{Deadline, Signal, Wait};

use crate::error::{RecordError, Result};

/// Default time to wait for guests after the end.
pub const DEFAULT_GUEST_WAIT: Duration = Duration::from_secs(5);
/// Max time to ask guests to stop; the host is recorded meanwhile.
pub(crate) const STOP_MESSAGE: Duration = Duration::from_secs(1);
/// Max time for threads to finish after the last deadline.
const PUT_AWAY: Duration = Duration::from_millis(500);

/// The stop signal of all threads of a recording.
pub(crate) fn stop_signal() -> Result<Signal> {
    Signal::new().map_err(RecordError::io("make", Path::new("an event")))
}

/// Ends a recording from outside, at any time. Clones share the state.
#[derive(Clone, Debug)]
pub struct Stop {
    end: Signal,
    cancel_wait: Signal,
    abandon: Signal,
    interrupts: Arc<AtomicU32>,
}

impl Stop {
    /// The signals of a new recording.
    ///
    /// # Errors
    /// When the process has no free descriptors.
    pub fn new() -> Result<Self> {
        let (end, hurry, leave) = (stop_signal()?, stop_signal()?, stop_signal()?);
        Ok(Self { end, cancel_wait: hurry, abandon: leave, interrupts: Arc::default() })
    }

    /// Ends the recording in order: its time is over, or its command has ended.
    pub fn end(&self) {
        self.end.set();
    }

    /// Handles an interrupt. The first one ends the recording in order, or, if it is ending already, stops waiting for
    /// guests. The second one ends it at once, and leaves everything written in its folder. Returns the number of
    /// interrupts so far.
    pub fn interrupt(&self) -> u32 {
        let before = self.interrupts.fetch_add(1, Ordering::Relaxed);
        if before > 0 || self.end.is_set() {
            self.cancel_wait.set();
        }
        if before > 0 {
            self.abandon.set();
        }
        self.end.set();
        before.saturating_add(1)
    }

    /// Waits for the end of the recording for at most `timeout`; returns whether it came.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        self.end.wait(timeout)
    }

    /// Readable once the recording should end.
    pub(crate) fn end_signal(&self) -> &Signal {
        &self.end
    }

    /// Whether to end at once, without finishing the session.
    pub(crate) fn leaves(&self) -> bool {
        self.abandon.is_set()
    }

    /// An end of guests that this signal hurries.
    pub(crate) fn ending(&self) -> Result<Ending> {
        Ending::new(self.cancel_wait.clone())
    }
}

/// The end of guests' recordings, for all their threads. Clones share the state.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    begin_signal: Signal,
    /// Stops the wait for guests.
    cut: Signal,
    until: Arc<OnceLock<Deadline>>,
    /// When the wait was abandoned, plus a grace period.
    put_away: Arc<OnceLock<Deadline>>,
}

impl Ending {
    fn new(cut: Signal) -> Result<Self> {
        Ok(Self {
            begin_signal: stop_signal()?,
            cut,
            until: Arc::default(),
            put_away: Arc::default(),
        })
    }

    /// The end of a single guest, without a deadline.
    pub(crate) fn of_one() -> Result<Self> {
        Self::new(stop_signal()?)
    }

    /// Starts the end, with a deadline for guests. Only the first call has an effect.
    pub(crate) fn begin(&self, until: Deadline) {
        let _ = self.until.set(until);
        self.begin_signal.set();
    }

    /// Readable once the end has begun.
    pub(crate) fn begin_signal(&self) -> &Signal {
        &self.begin_signal
    }

    /// Readable once the wait is over.
    pub(crate) fn cut(&self) -> &Signal {
        &self.cut
    }

    /// The deadline for guests; `None` before the end has begun.
    pub(crate) fn until(&self) -> Option<Deadline> {
        self.until.get().copied()
    }

    /// Whether the wait for guests is over.
    pub(crate) fn is_over(&self) -> bool {
        self.until().is_some_and(|until| until.has_passed() || self.cut.is_set())
    }

    /// The deadline for the threads that receive from guests, whatever the guests do.
    pub(crate) fn threads_until(&self) -> Deadline {
        match self.until() {
            Some(until) if !self.is_over() => until.later_by(PUT_AWAY),
            _ => *self.put_away.get_or_init(|| Deadline::after(PUT_AWAY)),
        }
    }
}

/// Time limit for connecting to all guests and asking them to start.
#[derive(Clone, Debug)]
pub(crate) struct StartLimit {
    pub(crate) until: Deadline,
    /// Set if the recording ends before it has begun.
    pub(crate) stop: Signal,
}

impl StartLimit {
    /// A limit of this length, from now.
    pub(crate) fn within(time: Duration, stop: &Signal) -> Self {
        Self { until: Deadline::after(time), stop: stop.clone() }
    }

    /// This limit, shortened to at most `time` from now.
    pub(crate) fn at_most(&self, time: Duration) -> Self {
        Self { until: self.until.min(Deadline::after(time)), stop: self.stop.clone() }
    }

    /// Runs a function with a wait for the rest of the limit.
    pub(crate) fn wait<T>(&self, run: impl FnOnce(Wait<'_>) -> T) -> T {
        run(Wait::until(self.until).or(&[self.stop.fd()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_interrupt_ends_in_order_and_the_second_leaves() {
        let stop = Stop::new().unwrap();
        let ending = stop.ending().unwrap();
        assert_eq!(stop.interrupt(), 1);
        assert!(stop.wait(Duration::ZERO) && !stop.leaves());
        ending.begin(Deadline::after(Duration::from_secs(600)));
        assert!(!ending.is_over(), "guests are still waited for");
        assert_eq!(stop.interrupt(), 2);
        assert!(stop.leaves() && ending.is_over());
        assert!(ending.threads_until().remaining() <= PUT_AWAY);
    }

    #[test]
    fn an_interrupt_of_a_recording_that_ends_has_nobody_wait_for_guests() {
        let stop = Stop::new().unwrap();
        let ending = stop.ending().unwrap();
        stop.end();
        ending.begin(Deadline::after(Duration::from_secs(600)));
        assert!(!ending.is_over());
        stop.interrupt();
        assert!(ending.is_over() && !stop.leaves());
    }

    #[test]
    fn the_end_of_a_wait_is_fixed_when_it_begins() {
        let ending = Ending::of_one().unwrap();
        assert!(ending.until().is_none() && !ending.is_over());
        ending.begin(Deadline::after(Duration::ZERO));
        ending.begin(Deadline::after(Duration::from_secs(600)));
        assert!(ending.is_over() && ending.begin_signal().is_set());
    }
}
