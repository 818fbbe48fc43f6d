//! How guests boot and shut down, with the facts that only sessions hold.

use analyses::boot::{BootMarks, boot, has_boot_events};
use report::BootReport;
use sources::{Collected, OpenError};

use crate::opened::Session;

/// Initcalls that tables show by default.
pub const DEFAULT_STEPS: usize = 10;

impl Session {
    /// Boots and shutdowns of machines.
    ///
    /// # Errors
    /// When a collector's files next to a recording can't be read.
    pub fn boots(
        &self,
        marks: &BootMarks,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<BootReport, OpenError> {
        let view = self.view();
        let collected =
            view.recordings.iter().map(Collected::for_recording).collect::<Result<Vec<_>, _>>()?;
        let mut boot = boot(view, &collected, marks, progress);
        for machine in &mut boot.machines {
            let reported = machine.guest.and_then(|at| self.reported().get(at));
            machine.event_cost = reported.and_then(|reported| reported.event_cost.clone());
        }
        Ok(BootReport {
            sources: self.paths(),
            alignment: self.alignment(),
            boot,
            top: DEFAULT_STEPS,
        })
    }

    /// Boots and shutdowns for a report of everything: only of machines that recorded theirs. Skips the reading if no
    /// recording holds events of a boot.
    ///
    /// # Errors
    /// As those of [`Session::boots`].
    pub fn recorded_boots(
        &self,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Option<BootReport>, OpenError> {
        if !self.recordings().iter().any(has_boot_events) {
            return Ok(None);
        }
        let mut report = self.boots(&BootMarks::default(), progress)?;
        report.boot.machines.retain(|machine| machine.guest.is_some());
        Ok(Some(report).filter(|report| !report.boot.machines.is_empty()))
    }
}
