//! Limits the number of simultaneous connections.
//!
//! If all places are in use, a client waits for one as long as places become free: short requests,
//! even from a program that floods the server, are answered in turn with other clients. If no place
//! becomes free, for example because clients send nothing, further clients do not wait.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// If a place became free within this time, another one is expected soon.
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
    /// The time at which a place last became free.
    freed: Option<Instant>,
}

/// A place in use, released on drop.
#[derive(Debug)]
pub(crate) struct Place<'p>(&'p Places);

impl Places {
    pub(crate) fn new(max: usize) -> Self {
        Self { most: max, state: Mutex::default(), is_free: Condvar::new() }
    }

    /// Waits for a free place; `None` if none is expected soon.
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
