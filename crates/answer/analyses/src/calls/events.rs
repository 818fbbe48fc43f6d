//! Events of calls, and the fields that are read.

use ftrace::eventfmt::EventFormat;
use sources::Recording;
use timeline::trace_events::{EventRequest, TraceEventPass};

use super::CallTracer;

/// A call that function_graph follows until it returns.
pub(super) const ENTRY: u16 = 0;
/// A return.
pub(super) const EXIT: u16 = 1;
/// A call by the function tracer, without a return.
pub(super) const CALL: u16 = 2;
/// A thread switch.
pub(super) const SWITCH: u16 = 3;

/// Indexes of the fields of [`EXIT`].
pub(super) const OVERRUN: usize = 2;
pub(super) const CALLTIME: usize = 3;
pub(super) const RETTIME: usize = 4;

/// Fields to read of an event. Fields are found by name, because kernel versions move fields and add others (a
/// return value since 6.5, arguments since 6.15), and a textual trace has its own address fields.
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

/// The tracer whose events a pass saw in recording `at`; `None` without calls.
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
