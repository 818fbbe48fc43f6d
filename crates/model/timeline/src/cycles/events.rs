//! The events that form cycles, and their meaning for threads: the rules for exits, applied to
//! trace events.

use ftrace::eventfmt::EventFormat;

use crate::arch::{
    self, FLAG, GUEST_PC_AT, HIGH, HOST_WORK_SYSTEMS, RULE_TAGS, SCHED_SWITCH, THREAD, VALUE,
};
use crate::thread_event::{Kind, ThreadEvent};
use crate::trace_events::{EventRequest, TraceEvent};

/// Tag of `sched_switch`.
pub const SWITCH_TAG: u16 = 0xfe;
/// Fields of a trace event with the tag [`SWITCH_TAG`].
pub const SWITCH_FIELDS: &[&str] = &["prev_pid", "prev_state", "next_pid"];
/// Tag of events that only show that the host is at work.
pub const HOST_WORK_TAG: u16 = 0xff;
/// Tags from here on are free for callers.
pub const OWN_TAGS: u16 = 0x100;

const _: () = assert!(RULE_TAGS <= SWITCH_TAG);

/// Whether the event, in a vCPU thread's context, shows that the hardware has exited the guest.
#[must_use]
pub fn is_host_work(format: &EventFormat) -> bool {
    HOST_WORK_SYSTEMS.contains(&format.system())
}

pub(super) fn wanted(
    format: &EventFormat,
    is_nanoseconds: bool,
    guest_pc: bool,
) -> Option<EventRequest> {
    if format.full_name() == SCHED_SWITCH {
        return Some(EventRequest { tag: SWITCH_TAG, fields: SWITCH_FIELDS });
    }
    if let Some((tag, rule)) = arch::rule_for(format) {
        // The duration in a wake-up event is in nanoseconds, which does not fit time stamps in
        // ticks.
        let fits = rule.kind != Kind::VcpuWakeup || is_nanoseconds;
        let fields = if guest_pc { rule.fields_with_pc() } else { rule.fields() };
        return fits.then_some(EventRequest { tag, fields });
    }
    is_host_work(format).then_some(EventRequest { tag: HOST_WORK_TAG, fields: &[] })
}

/// Converts a trace event to thread events, first that of the thread that ran; to none if the
/// record is too short.
pub(super) fn thread_events(trace_event: &TraceEvent) -> [Option<ThreadEvent>; 2] {
    let ran = ThreadEvent {
        stamp_ns: trace_event.stamp_ns,
        value: 0,
        thread: trace_event.thread,
        stream: trace_event.cpu,
        kind: Kind::HostWork,
        flag: 0,
    };
    if trace_event.tag == SWITCH_TAG {
        return switch(trace_event, ran).map_or([None; 2], |both| both.map(Some));
    }
    let Some(rule) = arch::rule(trace_event.tag) else { return [Some(ran), None] };
    // The exits' reader ignores an event with a missing field, so ignore it here as well.
    let has_thread = !rule.field(THREAD).is_empty();
    let guest_pc = (!has_thread).then_some(GUEST_PC_AT);
    if trace_event.is_cut(guest_pc) || !rule.counts(trace_event) {
        return [None; 2];
    }
    let mut event = ThreadEvent { kind: rule.kind, ..ran };
    if has_thread {
        let Some(thread) = trace_event.value(THREAD) else { return [None; 2] };
        event.thread = thread as u32;
    }
    event.flag = trace_event.value(FLAG).unwrap_or(0) as u8;
    match (rule.kind, trace_event.value(VALUE)) {
        // Adding 1 separates "vCPU 0" from "no vCPU id".
        (Kind::Entry, Some(id)) => event.value = (id & u64::from(u32::MAX)) + 1,
        (Kind::Exit, Some(_)) => event.value = exit_code(trace_event),
        (_, value) => event.value = value.unwrap_or(0),
    }
    match (rule.kind, trace_event.value(GUEST_PC_AT)) {
        (Kind::Wake, _) => [Some(ran), Some(event)],
        (Kind::Exit, Some(value)) => {
            [Some(event), Some(ThreadEvent { kind: Kind::GuestPc, value, ..event })]
        }
        _ => [None, Some(event)],
    }
}

/// The exit code of a trace event that has the [fields of its rule](arch::Rule::fields).
#[must_use]
pub fn exit_code(trace_event: &TraceEvent) -> u64 {
    let code = trace_event.value(VALUE).unwrap_or(0);
    trace_event.value(HIGH).map_or(code, |high| high << 32 | (code & u64::from(u32::MAX)))
}

fn switch(trace_event: &TraceEvent, ran: ThreadEvent) -> Option<[ThreadEvent; 2]> {
    let runnable = !arch::sleeps(trace_event.value(1)?);
    let thread_event = |place, kind, flag| {
        let thread = trace_event.value(place)? as u32;
        Some(ThreadEvent { thread, kind, flag, ..ran })
    };
    Some([thread_event(0, Kind::SchedOut, u8::from(runnable))?, thread_event(2, Kind::SchedIn, 0)?])
}
