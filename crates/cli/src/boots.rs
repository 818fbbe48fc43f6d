//! How guests boot and shut down, with what only sessions know of it.

use analyses::align::GuestAlignment;
use analyses::boot::{BootMarks, boot, has_boot_events};
use report::{BootReport, align_summary};
use sources::{Collected, OpenError, Recording};

use crate::recorded::event_cost;

/// Initcalls that tables show, when nobody says otherwise.
pub(crate) const USUAL_TOP: usize = 10;

/// How machines of these recordings boot and go down.
///
/// # Errors
/// When what a collector wrote next to one can't be read.
pub(crate) fn found(
    recordings: &[Recording],
    guests: &[GuestAlignment],
    marks: &BootMarks,
    tick: &(dyn Fn(u64) + Sync),
) -> Result<BootReport, OpenError> {
    let collected = recordings.iter().map(Collected::of).collect::<Result<Vec<_>, _>>()?;
    let mut boot = boot(recordings, &collected, guests, marks, tick);
    for machine in &mut boot.machines {
        let guest = machine.guest.and_then(|at| recordings.get(at));
        machine.event_cost = guest.and_then(|guest| event_cost(guest.path()));
    }
    Ok(BootReport {
        sources: recordings.iter().map(|one| one.path().display().to_string()).collect(),
        alignment: guests.iter().map(align_summary).collect(),
        boot,
        top: USUAL_TOP,
    })
}

/// Boots and shutdowns for a report of all that there is: only machines that recorded theirs. Nothing
/// is read where no recording holds events of one.
pub(crate) fn of(
    recordings: &[Recording],
    guests: &[GuestAlignment],
    tick: &(dyn Fn(u64) + Sync),
) -> Result<Option<BootReport>, OpenError> {
    if !recordings.iter().any(has_boot_events) {
        return Ok(None);
    }
    let mut report = found(recordings, guests, &BootMarks::default(), tick)?;
    report.boot.machines.retain(|machine| machine.guest.is_some());
    Ok(Some(report).filter(|report| !report.boot.machines.is_empty()))
}
