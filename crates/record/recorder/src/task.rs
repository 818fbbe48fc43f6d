//! Threads whose ends are waited for no longer than until a deadline: what a guest does may hold the
//! thread up, but nobody who waits for it.

use std::io;
use std::thread::{self, JoinHandle};

use channel::{Signal, Wait};
use confine::Confined;

/// A thread that says when it is done.
#[derive(Debug)]
pub(crate) struct Task<T> {
    done: Signal,
    thread: JoinHandle<T>,
}

/// Gives the signal when dropped, as it is when the thread panics, too.
struct Done(Signal);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.give();
    }
}

/// What came of a thread.
#[derive(Debug)]
pub(crate) enum Outcome<T> {
    Done(T),
    Panicked,
    /// It has not ended in time, and is left to itself.
    StillBusy,
}

impl<T: Send + 'static> Task<T> {
    /// Starts it, confined as it says.
    pub(crate) fn spawn(
        name: String,
        confined: Confined,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Self> {
        let done = Signal::new()?;
        let at_end = Done(done.clone());
        let thread = thread::Builder::new().name(name).spawn(move || {
            let _at_end = at_end;
            confined.enter();
            run()
        })?;
        Ok(Self { done, thread })
    }

    /// Whether it has ended, waiting for that as long as `wait` says.
    pub(crate) fn is_over(&self, wait: Wait<'_>) -> bool {
        self.done.wait_within(wait)
    }

    /// Waits for its end, no longer than `wait` says.
    pub(crate) fn end(self, wait: Wait<'_>) -> Outcome<T> {
        if !self.is_over(wait) {
            return Outcome::StillBusy;
        }
        // All that is left to do for it is to return.
        self.thread.join().map_or(Outcome::Panicked, Outcome::Done)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn nobody_waits_for_a_thread_that_does_not_end() {
        let begun = Instant::now();
        let (busy, stop) = (Signal::new().unwrap(), Signal::new().unwrap());
        let held = busy.clone();
        let task = Task::spawn("held".into(), Confined::Reader, move || {
            held.wait(Duration::from_secs(600))
        })
        .unwrap();
        stop.give();
        let long = Wait::at_most(Duration::from_secs(300));
        assert!(!task.is_over(long.or(&[stop.fd()])));
        let outcome = task.end(Wait::at_most(Duration::from_millis(10)));
        assert!(matches!(outcome, Outcome::StillBusy));
        assert!(begun.elapsed() < Duration::from_secs(60));
        busy.give();
    }

    #[test]
    fn what_a_thread_made_is_handed_on_and_panics_are_seen() {
        let long = Wait::at_most(Duration::from_secs(60));
        let task = Task::spawn("adds".into(), Confined::Reader, || 1 + 1).unwrap();
        assert!(matches!(task.end(long), Outcome::Done(2)));
        let task = Task::spawn("panics".into(), Confined::WORKER, || {
            std::panic::resume_unwind(Box::new(()))
        });
        assert!(matches!(task.unwrap().end(long), Outcome::<()>::Panicked));
    }
}
