//! Which events make cycles, and what they say of threads: the rules of the exits, asked of moments.

use eventfmt::EventFormat;

use crate::kvm_events::{
    ARM64_EXIT, FLAG, HOST_WORK_SYSTEMS, ONLY_IF, RULES, SCHED_SWITCH, SLEEP_STATES, THREAD, VALUE,
};
use crate::thread_event::{Kind, ThreadEvent};
use crate::trace_events::{TraceEvent, Wanted};

/// Tag of `sched_switch`.
pub const SWITCH_TAG: u16 = 0xfe;
/// Fields of a trace_event tagged [`SWITCH_TAG`].
pub const SWITCH_FIELDS: &[&str] = &["prev_pid", "prev_state", "next_pid"];
/// Tag of events that show the host at work, and nothing else.
pub const HOST_WORK_TAG: u16 = 0xff;
/// Tags from here on are for callers.
pub const OWN_TAGS: u16 = 0x100;

/// Fields of arm64's `kvm_exit`, the code's low half first.
const ARM64_FIELDS: &[&str] = &[ARM64_EXIT.1, "isa", ARM64_EXIT.0];
/// Place of the code's high half among them.
const HIGH: usize = 2;

const _: () = assert!(RULES.len() < SWITCH_TAG as usize);

/// Whether the event, in a vCPU thread's context, shows that the hardware has left the guest.
#[must_use]
pub fn is_host_work(format: &EventFormat) -> bool {
    HOST_WORK_SYSTEMS.contains(&format.system())
}

pub(super) fn wanted(format: &EventFormat, is_nanoseconds: bool) -> Option<Wanted> {
    let name = format.full_name();
    if name == SCHED_SWITCH {
        return Some(Wanted { tag: SWITCH_TAG, fields: SWITCH_FIELDS });
    }
    if let Some((tag, rule)) = (0..).zip(RULES).find(|(_, rule)| rule.event == name) {
        if rule.kind == Kind::VcpuWakeup && !is_nanoseconds {
            // Its duration is in nanoseconds and can't be laid over stamps that are not.
            return None;
        }
        let has_code = rule.fields[VALUE].split('|').any(|name| format.field(name).is_some());
        let pair = rule.kind == Kind::Exit && !has_code;
        return Some(Wanted { tag, fields: if pair { ARM64_FIELDS } else { &rule.fields } });
    }
    is_host_work(format).then_some(Wanted { tag: HOST_WORK_TAG, fields: &[] })
}

/// What a trace_event says of threads, of the one that ran first; of none, if it is not whole.
pub(super) fn of(trace_event: &TraceEvent) -> [Option<ThreadEvent>; 2] {
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
    let Some(rule) = RULES.get(usize::from(trace_event.tag)) else { return [Some(ran), None] };
    if !rule.fields[ONLY_IF].is_empty() && trace_event.value(ONLY_IF) != Some(rule.only_if) {
        return [None; 2];
    }
    let mut event = ThreadEvent { kind: rule.kind, ..ran };
    if !rule.fields[THREAD].is_empty() {
        let Some(thread) = trace_event.value(THREAD) else { return [None; 2] };
        event.thread = thread as u32;
    }
    event.flag = trace_event.value(FLAG).unwrap_or(0) as u8;
    match (rule.kind, trace_event.value(VALUE)) {
        // 1 tells "vCPU 0" from "no vCPU id".
        (Kind::Entry, Some(id)) => event.value = (id & u64::from(u32::MAX)) + 1,
        (Kind::Exit, Some(code)) => {
            let pair = |high: u64| high << 32 | (code & u64::from(u32::MAX));
            event.value = trace_event.value(HIGH).map_or(code, pair);
        }
        (_, value) => event.value = value.unwrap_or(0),
    }
    let work = (rule.kind == Kind::Wake).then_some(ran);
    [work, Some(event)]
}

fn switch(trace_event: &TraceEvent, ran: ThreadEvent) -> Option<[ThreadEvent; 2]> {
    let runnable = trace_event.value(1)? & SLEEP_STATES == 0;
    let of = |place, kind, flag| {
        let thread = trace_event.value(place)? as u32;
        Some(ThreadEvent { thread, kind, flag, ..ran })
    };
    Some([of(0, Kind::SchedOut, u8::from(runnable))?, of(2, Kind::SchedIn, 0)?])
}
