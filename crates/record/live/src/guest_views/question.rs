//! The state shared between the viewer and the thread that queries a guest's agent: questions and answers.

use std::time::{Duration, Instant};

use channel::wire::GuestView;
use parking_lot::{Condvar, Mutex, MutexGuard};
use vms::GuestAddress;

use crate::guest_views::SeenGuest;

/// A guest, and its number of questions.
#[derive(Debug)]
pub(crate) struct Question {
    state: Mutex<State>,
    has_changed: Condvar,
}

#[derive(Debug)]
struct State {
    seen: SeenGuest,
    /// Number of questions so far.
    ask_count: u64,
    /// The last question that was answered, or that will have no answer.
    settled: u64,
    /// The last question whose answer was shown.
    shown: u64,
    /// Its agent answers.
    is_ready: bool,
    /// At least one query has failed.
    has_failed: bool,
    is_over: bool,
}

/// The next action of the thread.
pub(crate) enum Next {
    /// Request a view for this question.
    Ask(u64),
    /// After a long time without a query: send a keepalive message.
    Alive,
    /// The receiver has ended.
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

    /// Waits until the condition is true or the time is over.
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

    // For the viewer.

    /// A late answer belongs to the next question, so that the views cover the guest's time without gaps.
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

    // For the querying thread.

    /// Notes the guest's current VM and channel.
    pub(crate) fn reached(&self, address: &GuestAddress) {
        self.change(|state| {
            state.seen.process = address.vm.as_ref().map(|vm| vm.pid);
            state.seen.channel = address.channel.to_string();
            if !state.has_failed {
                state.seen.view = Err("connecting to its agent".to_owned());
            }
        });
    }

    /// The agent answers and starts counting: earlier questions have no answer.
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

    /// The query failed.
    pub(crate) fn fail(&self, why: String) {
        self.change(|state| {
            (state.is_ready, state.has_failed) = (false, true);
            (state.settled, state.shown) = (state.ask_count, state.ask_count);
            state.seen.view = Err(why);
        });
    }

    /// Waits for the next action, until the timeout.
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

    /// Waits until the receiver ends or the timeout expires; returns whether it ended.
    pub(crate) fn is_over_within(&self, timeout: Duration) -> bool {
        self.wait_until(Instant::now() + timeout, |state| state.is_over).is_over
    }
}
