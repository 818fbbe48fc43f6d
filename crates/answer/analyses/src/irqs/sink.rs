//! Combines handlers with the states of the vCPUs on which they run.

use rustc_hash::FxHashMap;
use timeline::cycles::SWITCH_TAG;
use timeline::trace_events::{Gap, TraceEvent};

use super::By;
use super::open_handlers::OpenHandlers;
use super::sources::{SOFTIRQ, Sources};
use super::sums::{AllSums, Handler};
use crate::states::{
    GuestCpu, HandlerEdge, OccupantSpan, StateNeeds, StateSink, StateSpan, VcpuRef, VcpuState,
    handler_of,
};
use crate::view::View;

/// Receives handler events and vCPU states.
pub(crate) struct IrqSink {
    sources: Sources,
    cpus: FxHashMap<GuestCpu, OpenHandlers>,
    /// By CPU and soft interrupt number: when it was raised.
    due: FxHashMap<GuestCpu, [Option<u64>; MAX_SOFTIRQS]>,
    /// Guest CPUs by host recording and vCPU thread.
    guest_cpus: FxHashMap<(u16, u32), GuestCpu>,
    vcpus: FxHashMap<VcpuRef, GuestCpu>,
    sums: AllSums,
    ends_alone: u64,
}

/// Results.
pub(super) struct HandlersFound {
    pub(super) sources: Sources,
    pub(super) sums: AllSums,
    /// Ends without a start.
    pub(super) ends_alone: u64,
}

impl IrqSink {
    /// For the recordings of `view`; `by` is the grouping of rows.
    pub(crate) fn new(view: View<'_>, by: By) -> Self {
        let mut sink = Self {
            sources: Sources::new(view.recordings),
            cpus: FxHashMap::default(),
            due: FxHashMap::default(),
            guest_cpus: FxHashMap::default(),
            vcpus: FxHashMap::default(),
            sums: AllSums::new(by),
            ends_alone: 0,
        };
        for alignment in view.guests {
            let rows = alignment.result().map_or(&[][..], |result| &result.rows);
            let host = u16::try_from(alignment.host).unwrap_or(u16::MAX);
            let recording = u16::try_from(alignment.guest).unwrap_or(u16::MAX);
            for row in rows {
                let Ok(cpu) = u16::try_from(row.guest_cpu) else { continue };
                let cpu = GuestCpu { recording, cpu };
                sink.guest_cpus.insert((host, row.thread), cpu);
                sink.cpus.insert(cpu, OpenHandlers::new(true));
            }
        }
        sink
    }

    pub(super) fn finish(mut self) -> HandlersFound {
        for (cpu, open) in self.cpus {
            open.finish(&mut |handler| self.sums.add(cpu.recording, handler));
        }
        HandlersFound { sources: self.sources, sums: self.sums, ends_alone: self.ends_alone }
    }

    fn begin(&mut self, at: GuestCpu, event: &TraceEvent, source: u8) {
        let number = event.value(0).unwrap_or(0);
        let (from_ns, cpu, thread) = (event.stamp_ns, event.cpu, event.thread);
        let is_soft = source == SOFTIRQ;
        let due = if is_soft { self.due(at, number).and_then(Option::take) } else { None };
        let due_ns = due.map(|since_ns| from_ns.saturating_sub(since_ns));
        let handler =
            Handler { source, number, cpu, thread, from_ns, due_ns, ..Handler::default() };
        let sums = &mut self.sums;
        sums.begin(at.recording, &handler);
        let open = self.cpus.entry(at).or_default();
        open.begin(handler, &mut |handler| sums.add(at.recording, handler));
    }

    /// When a soft interrupt of a CPU was raised.
    fn due(&mut self, at: GuestCpu, number: u64) -> Option<&mut Option<u64>> {
        self.due.entry(at).or_default().get_mut(usize::try_from(number).ok()?)
    }

    fn end(&mut self, at: GuestCpu, event: &TraceEvent, source: u8) {
        let handler_id = (source, event.value(0).unwrap_or(0));
        let sums = &mut self.sums;
        let open = self.cpus.entry(at).or_default();
        let had_begun = open.end(handler_id, event.stamp_ns, &mut |handler: &Handler| {
            sums.add(at.recording, handler)
        });
        self.ends_alone = self.ends_alone.saturating_add(u64::from(!had_begun));
    }
}

/// Max soft interrupt numbers; kernels have ten.
const MAX_SOFTIRQS: usize = 32;

impl StateSink for IrqSink {
    fn needs(&self) -> StateNeeds<'_> {
        StateNeeds { events: true, handlers: Some(&self.sources), ..StateNeeds::default() }
    }

    fn vcpu(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        let Some(&at) = self.vcpus.get(&vcpu) else { return };
        // An unknown state does not show whether the vCPU was in the guest.
        if span.state == VcpuState::Unknown {
            return;
        }
        let sums = &mut self.sums;
        let Some(open) = self.cpus.get_mut(&at) else { return };
        open.state((span.from_ns, span.to_ns), span.state.is_guest(), &mut |handler| {
            sums.add(at.recording, handler);
        });
    }

    fn runs_in(&mut self, vcpu: VcpuRef, thread: u32) {
        if let Some(&at) = self.guest_cpus.get(&(vcpu.recording, thread)) {
            self.vcpus.insert(vcpu, at);
        }
    }

    fn task(&mut self, _: GuestCpu, _: u32, _: &StateSpan) {}

    fn cpu(&mut self, _: GuestCpu, _: &OccupantSpan) {}

    fn event(&mut self, event: &TraceEvent) {
        let at = GuestCpu { recording: event.recording, cpu: event.cpu };
        if event.tag == SWITCH_TAG {
            // Handlers never span a thread switch: an open one has lost its end.
            if let Some(open) = self.cpus.get_mut(&at) {
                open.abandon();
            }
            return;
        }
        match handler_of(event.tag) {
            Some((source, HandlerEdge::Begins)) => self.begin(at, event, source),
            Some((source, HandlerEdge::Ends)) => self.end(at, event, source),
            Some((_, HandlerEdge::Due)) => {
                if let Some(due) = event.value(0).and_then(|number| self.due(at, number)) {
                    due.get_or_insert(event.stamp_ns);
                }
            }
            None => {}
        }
    }

    fn gap(&mut self, gap: &Gap) {
        let at = GuestCpu { recording: gap.recording, cpu: gap.cpu };
        if let Some(open) = self.cpus.get_mut(&at) {
            open.abandon();
        }
        self.due.remove(&at);
    }
}
