//! Threads whose ends are waited for only until a deadline: a guest may block the thread, but not its caller.

use std::io;
use std::thread::{self, JoinHandle};

use os::confine::Confined;
use os::waits::{Deadline, Signal, Wait};

/// A thread that signals its end.
#[derive(Debug)]
pub(crate) struct Task<T> {
    done: Signal,
    thread: JoinHandle<T>,
}

/// Sets the signal on drop, even if the thread panics.
struct Done(Signal);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// The result of a thread.
#[derive(Debug)]
pub(crate) enum Outcome<T> {
    Done(T),
    Panicked,
    /// It did not end in time, and is abandoned.
    StillBusy,
}

impl<T: Send + 'static> Task<T> {
    /// Starts a confined thread.
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

    /// Whether it has ended, after a wait.
    pub(crate) fn is_over(&self, wait: Wait<'_>) -> bool {
        self.done.wait_within(wait)
    }

    /// Waits for its end.
    pub(crate) fn end(self, wait: Wait<'_>) -> Outcome<T> {
        if !self.is_over(wait) {
            return Outcome::StillBusy;
        }
        // The thread has nothing left to do but return.
        self.thread.join().map_or(Outcome::Panicked, Outcome::Done)
    }
}

/// A stream next to the recording that was asked to end.
#[derive(Debug)]
pub(crate) struct EndingTask<T>(io::Result<Task<Result<T, String>>>);

impl<T: Send + 'static> EndingTask<T> {
    /// Ends it in a thread, which returns the result or the error.
    pub(crate) fn begin(
        thread: &str,
        end: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Self {
        Self(Task::spawn(thread.to_owned(), Confined::WORKER, end))
    }

    /// Whether it has ended, after a wait until the deadline.
    pub(crate) fn is_over(&self, until: Deadline) -> bool {
        self.0.as_ref().map_or(true, |task| task.is_over(Wait::until(until)))
    }

    /// Its result, after a wait until the deadline. Adds an error to the faults, after `what`.
    pub(crate) fn end(self, until: Deadline, what: &str, faults: &mut Vec<String>) -> Option<T> {
        let why = match self.0.map(|task| task.end(Wait::until(until))) {
            Ok(Outcome::Done(Ok(came))) => return Some(came),
            Ok(Outcome::Done(Err(why))) => why,
            Ok(Outcome::Panicked) => "the thread that ends it panicked".into(),
            Ok(Outcome::StillBusy) => "its thread did not end in time".into(),
            Err(error) => error.to_string(),
        };
        faults.push(format!("{what}: {why}"));
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn nobody_waits_for_a_thread_that_does_not_end() {
        let start = Instant::now();
        let (busy, stop) = (Signal::new().unwrap(), Signal::new().unwrap());
        let held = busy.clone();
        let task = Task::spawn("held".into(), Confined::Reader, move || {
            held.wait(Duration::from_secs(600))
        })
        .unwrap();
        stop.set();
        let long = Wait::at_most(Duration::from_secs(300));
        assert!(!task.is_over(long.or(&[stop.fd()])));
        let outcome = task.end(Wait::at_most(Duration::from_millis(10)));
        assert!(matches!(outcome, Outcome::StillBusy));
        assert!(start.elapsed() < Duration::from_secs(60));
        busy.set();
    }

    #[test]
    fn nobody_waits_for_what_does_not_end_next_to_a_recording() {
        let (start, busy) = (Instant::now(), Signal::new().unwrap());
        let held = busy.clone();
        let ending = EndingTask::<()>::begin("held", move || {
            held.wait(Duration::from_secs(600));
            Err("too late".into())
        });
        let soon = Deadline::after(Duration::from_millis(50));
        assert!(!ending.is_over(soon));
        let mut faults = Vec::new();
        assert_eq!(ending.end(soon, "not collected", &mut faults), None);
        assert!(start.elapsed() < Duration::from_secs(60));
        assert!(faults[0].starts_with("not collected: its thread did not end"), "{faults:?}");
        busy.set();
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
