//! How guests boot and shut down, with what only sessions know of it.

use analyses::boot::{BootMarks, boot, has_boot_events};
use report::BootReport;
use sources::{Collected, OpenError};

use crate::Session;

/// Initcalls that tables show, when nobody says otherwise.
pub const USUAL_TOP: usize = 10;

/// See [`Session::boots`].
pub(crate) fn found(
    session: &Session,
    marks: &BootMarks,
    tick: &(dyn Fn(u64) + Sync),
) -> Result<BootReport, OpenError> {
    let view = session.view();
    let collected = view.recordings.iter().map(Collected::of).collect::<Result<Vec<_>, _>>()?;
    let mut boot = boot(view, &collected, marks, tick);
    for machine in &mut boot.machines {
        let reported = machine.guest.and_then(|at| session.reported().get(at));
        machine.event_cost = reported.and_then(|reported| reported.event_cost.clone());
    }
    Ok(BootReport {
        sources: session.paths(),
        alignment: session.alignment(),
        boot,
        top: USUAL_TOP,
    })
}

/// See [`Session::recorded_boots`].
pub(crate) fn of_machines_recorded(
    session: &Session,
    tick: &(dyn Fn(u64) + Sync),
) -> Result<Option<BootReport>, OpenError> {
    if !session.recordings().iter().any(has_boot_events) {
        return Ok(None);
    }
    let mut report = found(session, &BootMarks::default(), tick)?;
    report.boot.machines.retain(|machine| machine.guest.is_some());
    Ok(Some(report).filter(|report| !report.boot.machines.is_empty()))
}
