//! What is recorded of guests along with their host.

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

/// Guests with agents, those that are not up yet, and those whose modules store events.
#[derive(Debug)]
pub(super) struct GuestSide {
    pub(super) guests: SharedGuests,
    /// Guests that are to be recorded.
    pub(super) guest_count: usize,
    pending: Option<PendingGuests>,
    modules: Vec<module::RecordedModule>,
    /// How long guests are waited for after the end.
    wait: Duration,
    pub(super) ending: Ending,
}

impl GuestSide {
    /// None are recorded yet.
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

    /// Begins to take what modules store, until `stop` is given.
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

    /// Begins to record guests that are up, on the host's clock.
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

    /// Takes guests in as they come up: those that have recorded since they booted, and those of a flight recorder
    /// again when they come back.
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

    /// Bytes that modules stored.
    pub(super) fn module_bytes(&self) -> u64 {
        self.modules.iter().map(module::RecordedModule::bytes).sum()
    }

    /// Asks guests to stop. The host is recorded on until all of them have, for what their last
    /// events cause on it, but no longer than for a moment: then they send the rest during what is
    /// done after this. What went wrong with guests that never came.
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

    /// Waits until then for what modules stored last.
    pub(super) fn end_modules(&mut self, until: Deadline) -> Vec<ModuleSummary> {
        self.modules.drain(..).map(|module| module.end(until)).collect()
    }
}
