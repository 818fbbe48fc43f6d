//! Guests that are not up yet when a recording begins: asked again and again until they answer. What
//! they have recorded since they booted is taken then.

use std::time::Duration;

use os::confine::Confined;
use os::waits::{Deadline, Signal, Wait};
use printable::with_causes;

use crate::ending::{Ending, stop_signal};
use crate::error::{RecordError, Result};
use crate::guests::{self, CONNECTS, Guests, SharedGuests};
use crate::plan::RecordPlan;
use crate::session_folder::SessionFolder;
use crate::task::{Outcome, Task};

/// How long after one try the next is made.
const BETWEEN_TRIES: Duration = Duration::from_millis(500);

/// Guests that are waited for, by a thread.
#[derive(Debug)]
pub(crate) struct PendingGuests {
    stop: Signal,
    task: Task<Vec<String>>,
}

/// What the thread knows.
struct Waiter {
    plan: RecordPlan,
    folder: SessionFolder,
    host_clock: String,
    /// The host's.
    trace_id: u64,
    to: SharedGuests,
    stop: Signal,
    ending: Ending,
}

/// A guest that has not answered yet.
struct Absent {
    asked: String,
    /// What the last try came to.
    why: String,
}

impl PendingGuests {
    /// Begins to wait for the guests of a plan; the host's recording has this `trace_id`.
    pub(crate) fn begin(
        plan: &RecordPlan,
        folder: &SessionFolder,
        host_clock: String,
        trace_id: u64,
        to: SharedGuests,
        ending: &Ending,
    ) -> Result<Self> {
        let stop = stop_signal()?;
        let waiter = Waiter {
            plan: plan.clone(),
            folder: folder.clone(),
            host_clock,
            trace_id,
            to,
            stop: stop.clone(),
            ending: ending.clone(),
        };
        let task = Task::spawn("pending".into(), Confined::Worker(CONNECTS), move || waiter.run());
        let task = task.map_err(RecordError::io("wait for the guests of", folder.path()))?;
        Ok(Self { stop, task })
    }

    /// Stops waiting; returns why guests are not recorded, as far as that is known by then.
    pub(crate) fn end(self, until: Deadline) -> Vec<String> {
        self.stop.give();
        match self.task.end(Wait::until(until)) {
            Outcome::Done(faults) => faults,
            Outcome::Panicked => vec!["the thread that waited for guests panicked".into()],
            Outcome::StillBusy => vec!["guests that did not answer yet are not recorded".into()],
        }
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
        let fault = |guest: Absent| format!("{} is not recorded: {}", guest.asked, guest.why);
        faults.extend(absent.into_iter().map(fault));
        faults
    }

    /// Asks a guest; one that has answered is recorded, unless it refuses.
    fn is_absent(&self, guest: &mut Absent, faults: &mut Vec<String>) -> bool {
        let asked = std::slice::from_ref(&guest.asked);
        let what = &self.plan.in_guests;
        let (clock, stop) = (&self.host_clock, &self.stop);
        let ready = match guests::connect(asked, what, clock, self.trace_id, stop) {
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
        let began = begun.begin(ready, what, clock, &self.folder, stop, &self.ending);
        // One that failed to begin has said why, and may have sent something all the same.
        self.to.lock().add(begun);
        faults.extend(began.err().map(|error| with_causes(&error)));
        false
    }
}
