//! The guests' part of a recording.

use std::time::Duration;

use os::waits::{Deadline, Signal};
use session_json::ModuleSummary;

use crate::ending::{Ending, STOP_MESSAGE, Stop};
use crate::error::Result;
use crate::guest::ReadyGuest;
use crate::guests::SharedGuests;
use crate::module::{self, Module};
use crate::pending_guests::{PendingGuests, Surroundings};
use crate::plan::RecordPlan;
use crate::session_folder::SessionFolder;

/// Guests with agents, pending guests, and guests whose modules store events.
#[derive(Debug)]
pub(super) struct GuestSide {
    pub(super) guests: SharedGuests,
    /// Number of requested guests.
    pub(super) guest_count: usize,
    pending: Option<PendingGuests>,
    modules: Vec<module::RecordedModule>,
    /// Max time to wait for guests after the end.
    wait: Duration,
    pub(super) ending: Ending,
}

impl GuestSide {
    /// Records no guests yet.
    pub(super) fn new(plan: &RecordPlan, outside: &Stop) -> Result<Self> {
        Ok(Self {
            guests: SharedGuests::default(),
            guest_count: plan.guests.len(),
            pending: None,
            modules: Vec::new(),
            wait: plan.in_guests.wait(),
            ending: outside.ending()?,
        })
    }

    /// Starts reading modules' frames, until `stop` is set.
    pub(super) fn begin_modules(
        &mut self,
        modules: Vec<Module>,
        to: &SessionFolder,
        stop: &Signal,
        quota: u64,
    ) -> Result<()> {
        for module in modules {
            self.modules.push(module.begin(to, stop, quota)?);
        }
        Ok(())
    }

    /// Starts recording the guests that are up, on the host's clock.
    pub(super) fn begin(
        &self,
        ready: Vec<Box<dyn ReadyGuest>>,
        plan: &RecordPlan,
        clock: &str,
        to: &SessionFolder,
        stop: &Signal,
    ) -> Result<()> {
        self.guests.lock().begin(ready, &plan.in_guests, clock, to, stop, &self.ending)
    }

    /// Waits for pending guests: those with a boot recording, and those of a flight recorder, which are recorded again
    /// when they come back.
    pub(super) fn await_guests(
        &mut self,
        plan: &RecordPlan,
        to: &SessionFolder,
        clock: &str,
        trace_id: u64,
        outside: &Stop,
    ) -> Result<()> {
        if plan.takes_guests_later() && !plan.guests.is_empty() {
            let around = Surroundings {
                plan: plan.clone(),
                folder: to.clone(),
                host_clock: clock.to_owned(),
                trace_id,
                guests: self.guests.clone(),
                outside: outside.clone(),
                ending: self.ending.clone(),
            };
            self.pending = Some(PendingGuests::begin(&around)?);
        }
        Ok(())
    }

    /// Bytes of modules' frames.
    pub(super) fn module_bytes(&self) -> u64 {
        self.modules.iter().map(module::RecordedModule::bytes).sum()
    }

    /// Asks guests to stop. The host continues to record until all have stopped, for the effects of their last events,
    /// but at most [`STOP_MESSAGE`]. They send the rest while the host's recording ends. Returns errors of guests that
    /// never came.
    pub(super) fn stop(&mut self) -> Vec<String> {
        let (stop_sent, until) = (Deadline::after(STOP_MESSAGE), Deadline::after(self.wait));
        self.ending.begin(until);
        let stop_sent = stop_sent.min(until);
        let pending = self.pending.take();
        let faults = pending.map(|pending| pending.end(stop_sent)).unwrap_or_default();
        self.guests.lock().begin_end(until);
        self.guests.lock().are_over(stop_sent, &self.ending);
        faults
    }

    /// Waits for the last frames of modules until the deadline.
    pub(super) fn end_modules(&mut self, until: Deadline) -> Vec<ModuleSummary> {
        self.modules.drain(..).map(|module| module.end(until)).collect()
    }
}
