//! The events of calls, and which of their fields are read.

use ftrace::eventfmt::EventFormat;
use sources::Recording;
use timeline::trace_events::{EventRequest, TraceEventPass};

use super::CallTracer;

/// A function was called, and is followed until it returns.
pub(super) const ENTRY: u16 = 0;
/// It returned.
pub(super) const EXIT: u16 = 1;
/// A function was called, by the tracer that doesn't follow it.
pub(super) const CALL: u16 = 2;
/// Another thread got a CPU.
pub(super) const SWITCH: u16 = 3;

/// Places of the fields of [`EXIT`].
pub(super) const OVERRUN: usize = 2;
pub(super) const CALLTIME: usize = 3;
pub(super) const RETTIME: usize = 4;

/// What is wanted of an event. Fields go by their names: kernels move them, and add others (a return
/// value since 6.5, arguments since 6.15), and a text has addresses of its own.
pub(super) fn wanted(format: &EventFormat) -> Option<EventRequest> {
    let want = |tag, fields| Some(EventRequest { tag, fields });
    match (format.system(), format.name()) {
        ("ftrace", "funcgraph_entry" | "funcgraph_retaddr_entry") => {
            want(ENTRY, &["text_func|func", "depth"])
        }
        ("ftrace", "funcgraph_exit") => {
            want(EXIT, &["text_func|func", "depth", "overrun", "calltime", "rettime"])
        }
        ("ftrace", "function") => want(CALL, &["text_ip|ip", "text_parent_ip|parent_ip"]),
        ("sched", "sched_switch") => want(SWITCH, &["prev_pid", "next_pid"]),
        _ => None,
    }
}

/// Which tracer's events are in the recording, as a pass over anything saw that had it as number
/// `at`; `None`: it has no calls.
#[must_use]
pub fn tracer_recorded(
    recording: &Recording,
    at: usize,
    pass: &TraceEventPass,
) -> Option<CallTracer> {
    let ids = pass.event_ids.get(at)?.iter();
    let tags = ids.filter_map(|&id| wanted(recording.formats().by_id(id)?));
    tags.fold(None, |tracer, wanted_event| match wanted_event.tag {
        ENTRY | EXIT => Some(CallTracer::Graph),
        CALL => tracer.or(Some(CallTracer::Function)),
        _ => tracer,
    })
}
