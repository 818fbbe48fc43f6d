//! Tables of which a query needs a part: what it doesn't need is left out before anything is read for it.

use anyhow::Context;
use fleet::lake::{Files, NeededEvents, Written, write_needed_events};
use sources::TimeRange;

use super::SessionTables;
use crate::args::{NeededArgs, TableArgs};
use command::progress::reading;

impl SessionTables {
    /// Leaves out what vCPUs of other VMs did; no names: nothing. Rows of these VMs stay what they are, with their names: those
    /// of tables that know of a vCPU by what its own thread did.
    ///
    /// # Errors
    /// When no event is called so.
    pub fn leave_out_other_vms(
        &mut self,
        args: &TableArgs,
        events: &[String],
        vms: &[String],
    ) -> anyhow::Result<()> {
        if vms.is_empty() {
            return Ok(());
        }
        self.named = Some(self.identify(args, events)?);
        for (at, machine) in self.machines.iter().enumerate() {
            if machine.level == 0 {
                self.session.keep_vms(at, vms);
            }
        }
        Ok(())
    }

    /// Has blocks of other times than those needed skipped.
    fn leave_out_other_times(&mut self, needed: &NeededEvents) {
        // One range is read of a recording: that which was asked for is no longer than this, most often. Where stamps may be
        // wrong, any block may have a row of this time.
        if needed.comm || self.range_ns.is_some() || self.damaged_places() > 0 {
            return;
        }
        let (from_ns, to_ns) = (needed.from_ns.unwrap_or(0), needed.to_ns.unwrap_or(u64::MAX));
        if from_ns > 0 || to_ns < u64::MAX {
            let times = TimeRange { from_ns, to_ns: to_ns.max(from_ns) };
            self.session.keep_times(times);
        }
    }
}

/// Writes the part of the table of events that a query needs, and reads no more of the recordings than that takes.
///
/// # Errors
/// When it can't be written.
pub fn convert_needed_events<F: Files>(
    mut tables: SessionTables,
    args: &TableArgs,
    needed: &NeededArgs,
    files: &mut F,
) -> anyhow::Result<Written> {
    // As of the whole table: named before anything is left out.
    let ids = tables.identify(args, &[])?;
    let origin = tables.origin(args);
    let ns = |unix_ns: i64| origin.clock.trace_ns(unix_ns);
    let from_ns = needed.needed_from.map(ns);
    // Where no stamp is as late as the end, all are before it; where none is as late as the beginning, none is wanted.
    let to_ns = if from_ns == Some(None) { Some(0) } else { needed.needed_to.and_then(ns) };
    let needed = NeededEvents {
        ids,
        from_ns: from_ns.flatten(),
        to_ns,
        events: needed.needed_event.clone(),
        fields: needed.has("fields"),
        comm: needed.has("comm"),
    };
    tables.leave_out_other_times(&needed);
    let (filter, wanted) = (tables.filter(&[])?, args.wanted(false));
    let question = tables.question(&origin, &filter, &wanted);
    let written = reading(&tables.session, 1, |progress| {
        write_needed_events(question, &needed, files, progress)
    });
    sys::check_mapped_files()?;
    written.context("cannot write the table")
}
