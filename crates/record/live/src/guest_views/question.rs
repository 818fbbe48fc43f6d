//! What is asked of one guest, and what it answers: between whoever shows that and the thread that speaks to its
//! agent.

use std::time::{Duration, Instant};

use channel::wire::GuestView;
use parking_lot::{Condvar, Mutex, MutexGuard};
use vms::GuestAddress;

use crate::guest_views::SeenGuest;

/// A guest, and how often it was asked.
#[derive(Debug)]
pub(crate) struct Question {
    state: Mutex<State>,
    has_changed: Condvar,
}

#[derive(Debug)]
struct State {
    seen: SeenGuest,
    /// How often it was asked.
    ask_count: u64,
    /// Up to which of those there is an answer, or none will come.
    settled: u64,
    /// Up to which of those the answer was shown.
    shown: u64,
    /// Its agent answers.
    is_ready: bool,
    /// The agent could not be asked, once at least.
    has_failed: bool,
    is_over: bool,
}

/// What the thread is to do.
pub(crate) enum Next {
    /// Ask for a view, and settle this question by it.
    Ask(u64),
    /// After a long time without a query: send a sign of life.
    Alive,
    /// Nobody wants to know any more.
    End,
}

impl Question {
    pub(crate) fn new(requested_name: &str, address: &GuestAddress) -> Self {
        let seen = SeenGuest {
            requested_name: requested_name.to_owned(),
            name: address.name.clone(),
            channel: address.channel.to_string(),
            process: None,
            view: Err(String::new()),
        };
        let state = State {
            seen,
            ask_count: 0,
            settled: 0,
            shown: 0,
            is_ready: false,
            has_failed: false,
            is_over: false,
        };
        let question = Self { state: Mutex::new(state), has_changed: Condvar::new() };
        question.reached(address);
        question
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.has_changed.notify_all();
    }

    /// Waits until that is so, or the time has come.
    fn wait_until(&self, end: Instant, is_so: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        loop {
            let remaining = end.saturating_duration_since(Instant::now());
            if is_so(&state) || remaining.is_zero() {
                return state;
            }
            self.has_changed.wait_for(&mut state, remaining);
        }
    }

    // For whoever shows it.

    /// An answer that comes late is the next one, so that no time of the guest's is in none.
    pub(crate) fn ask(&self) {
        self.change(|state| {
            if state.shown == state.ask_count {
                state.ask_count += 1;
            }
        });
    }

    pub(crate) fn wait_until_ready(&self, end: Instant) {
        drop(self.wait_until(end, |state| state.is_ready || state.has_failed));
    }

    pub(crate) fn answer(&self, end: Instant) -> SeenGuest {
        let mut state =
            self.wait_until(end, |state| state.shown < state.settled || !state.is_ready);
        let is_new = state.shown < state.settled;
        state.shown = state.settled;
        let mut seen = state.seen.clone();
        if seen.view.is_ok() && !is_new {
            seen.view = Err("its agent has not answered yet".to_owned());
        }
        seen
    }

    pub(crate) fn end(&self) {
        self.change(|state| state.is_over = true);
    }

    // For the thread that speaks to its agent.

    /// Which VM it is now, and how its agent is reached.
    pub(crate) fn reached(&self, address: &GuestAddress) {
        self.change(|state| {
            state.seen.process = address.vm.as_ref().map(|vm| vm.pid);
            state.seen.channel = address.channel.to_string();
            if !state.has_failed {
                state.seen.view = Err("connecting to its agent".to_owned());
            }
        });
    }

    /// The agent answers, and counts from now on: what was asked before has no answer.
    pub(crate) fn ready(&self) {
        self.change(|state| {
            state.is_ready = true;
            (state.settled, state.shown) = (state.ask_count, state.ask_count);
            state.seen.view = Err("its agent has just started to count".to_owned());
        });
    }

    pub(crate) fn settle(&self, question: u64, view: GuestView) {
        self.change(|state| {
            state.settled = question;
            state.seen.view = Ok(view);
        });
    }

    /// The agent can't be asked.
    pub(crate) fn fail(&self, why: String) {
        self.change(|state| {
            (state.is_ready, state.has_failed) = (false, true);
            (state.settled, state.shown) = (state.ask_count, state.ask_count);
            state.seen.view = Err(why);
        });
    }

    /// Waits for what to do next, at most so long.
    pub(crate) fn next(&self, timeout: Duration) -> Next {
        let end = Instant::now() + timeout;
        let state = self.wait_until(end, |state| state.is_over || state.settled < state.ask_count);
        if state.is_over {
            Next::End
        } else if state.settled < state.ask_count {
            Next::Ask(state.ask_count)
        } else {
            Next::Alive
        }
    }

    /// Waits at most this long until the receiver ends, and returns whether it did.
    pub(crate) fn is_over_within(&self, timeout: Duration) -> bool {
        self.wait_until(Instant::now() + timeout, |state| state.is_over).is_over
    }
}
