//! Handlers found in a reading of recordings that other answers may be made of, too.

use std::cmp::Reverse;

use eventfmt::EventFormat;
use sources::Recording;
use timeline::NumberedNames;
use timeline::trace_events::{Gap, TraceEvent};

use super::names::Names;
use super::sink::IrqSink;
use super::sources::Sources;
use super::{By, HandlerRow, Irqs, has_handlers};
use crate::align::GuestAlignment;
use crate::machine_names::machine_names;
use crate::states::{GuestCpu, OccupantSpan, StateSink, StateSpan, States, VcpuRef};
use crate::view::View;

/// What is looked for: handlers of interrupts, by the events that some recordings have for them.
#[derive(Debug)]
pub(crate) struct HandlerSearch {
    sources: Sources,
    by: By,
}

impl HandlerSearch {
    /// A search in all recordings; rows are to be of `by`.
    pub(crate) fn new(recordings: &[Recording], by: By) -> Self {
        Self { sources: Sources::new(recordings), by }
    }

    /// As [`Besides::handlers`](crate::states::Besides::handlers) asks for it.
    pub(crate) fn source_of(&self, format: &EventFormat) -> Option<(u8, &'static [&'static str])> {
        self.sources.of(format)
    }

    /// What takes the reading's events, and the states that they are made into.
    pub(crate) fn sink(&self, guests: &[GuestAlignment]) -> IrqSink {
        IrqSink::new(guests, self.by)
    }

    /// What the sink found; the reading left `states` and the names of interrupts.
    pub(crate) fn answer(
        &self,
        sink: IrqSink,
        (states, irqs): (&States, &NumberedNames),
        view: View<'_>,
    ) -> Irqs {
        let View { recordings, .. } = view;
        let (sums, ends_alone) = sink.finish();
        let threads = &states.pass.names;
        let names = Names { recordings, sources: &self.sources, irqs, threads };
        let left_out = sums.left_out;
        let mut rows: Vec<HandlerRow> =
            sums.rows.into_iter().map(|(key, sums)| names.row(self.by, key, sums)).collect();
        rows.sort_by_key(|row| (row.recording, Reverse((row.sums.own_ns, row.sums.begun))));
        Irqs {
            rows,
            machines: machine_names(view),
            spans_ns: states.pass.spans_ns.clone(),
            is_recorded: recordings.iter().map(has_handlers).collect(),
            ends_alone,
            left_out,
            losses: states.pass.losses.clone(),
            nanoseconds: recordings.iter().all(Recording::is_nanoseconds),
        }
    }
}

/// Gives states to another sink and, if handlers are looked for, to the one that finds them. Only that gets events and
/// gaps.
pub(crate) struct WithHandlers<'s, S> {
    pub(crate) states: &'s mut S,
    pub(crate) handlers: Option<IrqSink>,
}

impl<S: StateSink> StateSink for WithHandlers<'_, S> {
    fn vcpu(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        self.states.vcpu(vcpu, span);
        if let Some(handlers) = &mut self.handlers {
            handlers.vcpu(vcpu, span);
        }
    }

    fn runs_in(&mut self, vcpu: VcpuRef, thread: u32) {
        self.states.runs_in(vcpu, thread);
        if let Some(handlers) = &mut self.handlers {
            handlers.runs_in(vcpu, thread);
        }
    }

    fn task(&mut self, guest: GuestCpu, task: u32, span: &StateSpan) {
        self.states.task(guest, task, span);
    }

    fn cpu(&mut self, cpu: GuestCpu, span: &OccupantSpan) {
        self.states.cpu(cpu, span);
    }

    fn event(&mut self, event: &TraceEvent) {
        if let Some(handlers) = &mut self.handlers {
            handlers.event(event);
        }
    }

    fn gap(&mut self, gap: &Gap) {
        if let Some(handlers) = &mut self.handlers {
            handlers.gap(gap);
        }
    }
}
