//! Which interrupts vCPUs send to one another, by their vector in Linux.

use ftrace::eventfmt::EventFormat;
use rustc_hash::FxHashMap;
use timeline::trace_events::{EventRequest, Gap, TraceEvent, TraceEventSink, WantsTraceEvents};

/// Vectors of Linux on x86 (arch/x86/include/asm/irq_vectors.h): `RESCHEDULE_VECTOR`, `CALL_FUNCTION_VECTOR`,
/// `CALL_FUNCTION_SINGLE_VECTOR`.
const RESCHEDULE: u64 = 0xfd;
const CALLS: [u64; 2] = [0xfc, 0xfb];

/// Interrupts sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) reschedules: u64,
    /// The receiver runs a function.
    pub(super) calls: u64,
}

/// By recording and thread of the sending vCPU.
#[derive(Debug, Default)]
pub(super) struct Ipis(FxHashMap<(u16, u32), Sent>);

impl Ipis {
    /// What these vCPU threads sent.
    pub(super) fn sent(&self, threads: impl Iterator<Item = (usize, u32)>) -> Sent {
        let mut all = Sent::default();
        for (recording, thread) in threads {
            let key = u16::try_from(recording).ok().map(|recording| (recording, thread));
            if let Some(sent) = key.and_then(|key| self.0.get(&key)) {
                all.reschedules += sent.reschedules;
                all.calls += sent.calls;
            }
        }
        all
    }
}

#[derive(Debug, Default)]
pub(super) struct IpiSink(FxHashMap<(u16, u32), Sent>);

impl IpiSink {
    pub(super) fn answer(self) -> Ipis {
        Ipis(self.0)
    }
}

impl WantsTraceEvents for IpiSink {
    fn wanted(&self, _: usize, format: &EventFormat) -> Option<EventRequest> {
        let is_sent = format.full_name() == "kvm:kvm_apic_ipi";
        is_sent.then_some(EventRequest { tag: 0, fields: &["icr_low"] })
    }
}

impl TraceEventSink for IpiSink {
    const WITH_NAMES: bool = false;

    fn event(&mut self, event: &TraceEvent) {
        let Some(vector) = event.value(0).map(|icr_low| icr_low & 0xff) else { return };
        let sent = self.0.entry((event.recording, event.thread)).or_default();
        sent.reschedules += u64::from(vector == RESCHEDULE);
        sent.calls += u64::from(CALLS.contains(&vector));
    }

    fn gap(&mut self, _: &Gap) {}
}
