//! Guests that are not up yet when a recording begins: asked again and again until they answer. What
//! they have recorded since they booted is taken then.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use channel::Signal;

use crate::error::{RecordError, Result, with_causes};
use crate::guests::{self, Guests, SharedGuests};
use crate::plan::Plan;
use crate::pump::stop_signal;
use crate::session_folder::SessionFolder;

/// How long after one try the next is made.
const BETWEEN_TRIES: Duration = Duration::from_millis(500);

/// Guests that are waited for, by a thread.
#[derive(Debug)]
pub(crate) struct Awaited {
    stop: Signal,
    thread: JoinHandle<Vec<String>>,
}

/// What the thread knows.
struct Waiter {
    plan: Plan,
    folder: SessionFolder,
    host_clock: String,
    /// The host's.
    trace_id: u64,
    to: SharedGuests,
    stop: Signal,
}

/// A guest that has not answered yet.
struct Absent {
    asked: String,
    /// What the last try came to.
    why: String,
}

impl Awaited {
    /// Begins to wait for the guests of a plan; the host's recording has this `trace_id`.
    pub(crate) fn begin(
        plan: &Plan,
        folder: &SessionFolder,
        host_clock: String,
        trace_id: u64,
        to: SharedGuests,
    ) -> Result<Self> {
        let stop = stop_signal()?;
        let (plan, session) = (plan.clone(), folder.clone());
        let waiter = Waiter { plan, folder: session, host_clock, trace_id, to, stop: stop.clone() };
        let thread = thread::Builder::new().name("awaited".into()).spawn(move || waiter.run());
        let thread = thread.map_err(RecordError::io("wait for the guests of", folder.path()))?;
        Ok(Self { stop, thread })
    }

    /// Waits no longer; what is to be said of guests that are not recorded.
    pub(crate) fn end(self) -> Vec<String> {
        self.stop.give();
        self.thread.join().unwrap_or_else(|_| vec!["the thread that waited panicked".into()])
    }
}

impl Waiter {
    fn run(self) -> Vec<String> {
        let absent =
            |asked: &String| Absent { asked: asked.clone(), why: "it was not asked".into() };
        let mut absent: Vec<Absent> = self.plan.guests.iter().map(absent).collect();
        let mut faults = Vec::new();
        while !absent.is_empty() && !self.stop.wait(BETWEEN_TRIES) {
            absent.retain_mut(|guest| self.is_absent(guest, &mut faults));
        }
        let told = |guest: Absent| format!("{} is not recorded: {}", guest.asked, guest.why);
        faults.extend(absent.into_iter().map(told));
        faults
    }

    /// Asks a guest; one that has answered is recorded, unless it refuses.
    fn is_absent(&self, guest: &mut Absent, faults: &mut Vec<String>) -> bool {
        let asked = std::slice::from_ref(&guest.asked);
        let what = &self.plan.in_guests;
        let ready = match guests::connect(asked, what, &self.host_clock, self.trace_id) {
            Ok(ready) => ready,
            Err(error) => {
                guest.why = with_causes(&error);
                return true;
            }
        };
        let taken = self.to.lock().names();
        if let Some(twin) = ready.iter().find(|one| taken.iter().any(|name| name == one.name())) {
            faults.push(guests::same_name(twin.name()).to_string());
            return false;
        }
        let mut begun = Guests::default();
        let began = begun.begin(ready, what, &self.host_clock, &self.folder);
        // One that failed to begin has said why, and may have sent something all the same.
        self.to.lock().add(begun);
        faults.extend(began.err().map(|error| with_causes(&error)));
        false
    }
}
