//! Writes the part of a table that a query needs: the rest is left out before the recordings are read.

use anyhow::Context;
use fleet::lake::{Files, NeededEvents, Written, write_needed_events};
use sources::TimeRange;

use super::SessionTables;
use crate::args::{NeededArgs, TableArgs};
use command::progress::reading;

impl SessionTables {
    /// Leaves out other VMs' vCPUs; an empty list leaves out nothing. Rows of the selected VMs do not change: their
    /// tables use only the vCPU's own thread.
    ///
    /// # Errors
    /// When no event has such a name.
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

    /// Skips blocks outside the needed times.
    fn leave_out_other_times(&mut self, needed: &NeededEvents) {
        // A recording is read in one range, and the user's range is mostly the shorter one. If time stamps may be
        // wrong, any block may contain a row of this time.
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

/// Writes the part of the table of events that a query needs, and reads only as much of the recordings as that takes.
///
/// # Errors
/// When it can't be written.
pub fn convert_needed_events<F: Files>(
    mut tables: SessionTables,
    args: &TableArgs,
    needed: &NeededArgs,
    files: &mut F,
) -> anyhow::Result<Written> {
    // Ids are those of the complete table, so they are determined before anything is left out.
    let ids = tables.identify(args, &[])?;
    let origin = tables.origin(args);
    let ns = |unix_ns: i64| origin.clock.trace_ns(unix_ns);
    let from_ns = needed.needed_from.map(ns);
    // If no stamp reaches the end of the range, all are before it; if none reaches its beginning, no row is needed.
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
