//! Places for connections that are served at once.
//!
//! A client that finds all places taken waits for one as long as places become free: many short requests, as of
//! a program that floods the server, are answered in turn, and so are the other clients. If no place becomes
//! free, as behind clients that send nothing, no client waits.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// A place that became free so recently promises another one soon.
const TURNOVER: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    state: Mutex<State>,
    is_free: Condvar,
}

#[derive(Debug, Default)]
struct State {
    in_use: usize,
    /// When one became free last.
    freed: Option<Instant>,
}

/// A place that is taken, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place<'p>(&'p Places);

impl Places {
    pub(crate) fn new(max: usize) -> Self {
        Self { most: max, state: Mutex::default(), is_free: Condvar::new() }
    }

    /// A place, as soon as there is one; none where none is to be had soon.
    pub(crate) fn take(&self) -> Option<Place<'_>> {
        let mut state = self.state.lock();
        while state.in_use >= self.most {
            let since = state.freed?.elapsed();
            let remaining = TURNOVER.checked_sub(since).filter(|remaining| !remaining.is_zero())?;
            self.is_free.wait_for(&mut state, remaining);
        }
        state.in_use += 1;
        Some(Place(self))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        (state.in_use, state.freed) = (state.in_use.saturating_sub(1), Some(Instant::now()));
        self.0.is_free.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_waits_where_places_become_free_and_nowhere_else() {
        let places = Places::new(2);
        let (first, second) = (places.take().unwrap(), places.take().unwrap());
        let start = Instant::now();
        assert!(places.take().is_none());
        drop(first);
        let again = places.take().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || drop(second));
            assert!(places.take().is_some());
        });
        drop(again);
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}
