//! Rows of handlers.

use std::cmp::Reverse;

use sources::Recording;
use timeline::NumberedNames;

use super::names::Names;
use super::sink::{HandlersFound, IrqSink};
use super::{HandlerRow, Irqs, has_handlers};
use crate::states::States;
use crate::view::View;

impl IrqSink {
    /// The result for a view's recordings, from the `states` and the names of interrupts that their pass found.
    pub(crate) fn answer(self, states: &States, irqs: &NumberedNames, view: View<'_>) -> Irqs {
        let View { recordings, .. } = view;
        let HandlersFound { sources, sums, ends_alone } = self.finish();
        let threads = &states.pass.names;
        let names = Names { recordings, sources: &sources, irqs, threads };
        let (by, left_out) = (sums.by, sums.left_out);
        let mut rows: Vec<HandlerRow> =
            sums.rows.into_iter().map(|(key, sums)| names.row(by, key, sums)).collect();
        rows.sort_by_key(|row| (row.recording, Reverse((row.sums.own_ns, row.sums.run_count))));
        Irqs {
            rows,
            machines: view.machine_names(),
            spans_ns: states.pass.spans_ns.clone(),
            is_recorded: recordings.iter().map(has_handlers).collect(),
            ends_alone,
            left_out,
            losses: states.pass.losses.clone(),
            nanoseconds: recordings.iter().all(Recording::is_nanoseconds),
        }
    }
}
