//! Events of `@virtio`, and how they are combined (`crates/record/agent/src/probe_sets/virtio.rs` creates them).

use ftrace::eventfmt::EventFormat;
use rustc_hash::FxHashMap;
use timeline::trace_events::{EventRequest, MAX_FIELDS, TraceEvent};

use super::by_thread::ByThread;

/// Fields to read of an added buffer. Each event has at most [`MAX_FIELDS`] of them.
pub(super) const ADD_FIELDS: &[&str] = &[
    "vq", "token", "parts", "out", "in", "n0", "n1", "d0", "d1", "none", "ma0", "ma1", "ma2",
    "ma3", "ma4", "ma5", "a0", "a1", "a2", "a3", "a4", "a5", "mb0", "mb1", "mb2", "mb3", "mb4",
    "mb5", "b0", "b1", "b2", "b3", "b4", "b5", "mc0", "c0",
];
/// Number of events per added buffer.
const ADD_EVENTS: u16 = ADD_FIELDS.len().div_ceil(MAX_FIELDS) as u16;

/// Max open calls per thread: interrupts can nest.
const MAX_OPEN: usize = 8;
/// Max threads with open calls.
const MAX_THREADS: usize = 1 << 16;

/// A function with events for call and return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Call {
    /// A buffer is returned: its token, or 0.
    Get,
    /// Whether the host must be notified; if so, it is. Some callers call `virtqueue_notify` inside.
    KickPrepare,
    /// Whether an interrupt belonged to the queue.
    Interrupt,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Add,
    Call(Call),
    Return(Call),
    /// A disk driver starts a request: its bytes, and the disk's device number.
    DiskRequest,
    /// A network driver receives a packet in several fragments: its bytes, and those outside the first fragment.
    Packet,
}

const CALLS: [Call; 3] = [Call::Get, Call::KickPrepare, Call::Interrupt];
/// The first tag after those of added buffers: calls, then their returns.
const CALL_TAG: u16 = ADD_EVENTS;
const RETURN_TAG: u16 = CALL_TAG + CALLS.len() as u16;
const DISK_TAG: u16 = RETURN_TAG + CALLS.len() as u16;
/// Has the byte count of a disk request.
const DISK_EVENT: &str = "block_rq_issue";
const PACKET_TAG: u16 = DISK_TAG + 1;
/// Has the byte count of a packet.
const PACKET_EVENT: &str = "net_dev_start_xmit";

/// The fields to read of an event.
pub(super) fn wanted(format: &EventFormat) -> Option<EventRequest> {
    let name = format.name();
    let (function, is_return) = match name.strip_suffix("_return") {
        Some(function) => (function, true),
        None => (name, false),
    };
    if function.starts_with("virtqueue_add_") {
        return format.field("vq").map(|_| EventRequest { tag: 0, fields: ADD_FIELDS });
    }
    if name == DISK_EVENT {
        return Some(EventRequest { tag: DISK_TAG, fields: &["bytes", "dev"] });
    }
    if name == PACKET_EVENT {
        return Some(EventRequest { tag: PACKET_TAG, fields: &["len", "data_len"] });
    }
    let call = match function {
        "virtqueue_kick_prepare" => Call::KickPrepare,
        "vring_interrupt" => Call::Interrupt,
        _ if function.starts_with("virtqueue_get_buf") => Call::Get,
        _ => return None,
    };
    let at = CALLS
        .iter()
        .position(|known_call| *known_call == call)
        .and_then(|at| u16::try_from(at).ok())?;
    // Only the first field of a return always exists.
    let (tag, fields): (_, &'static [&'static str]) = if is_return {
        (RETURN_TAG + at, &["token|needed|handled", "len"])
    } else {
        (CALL_TAG + at, &["vq"])
    };
    let has = |names: &&str| names.split('|').any(|name| format.field(name).is_some());
    fields.first().is_some_and(has).then_some(EventRequest { tag, fields })
}

/// Whether an event shows that queues were recorded.
pub(super) fn is_of_queue(format: &EventFormat) -> bool {
    wanted(format).is_some_and(|wanted_event| wanted_event.tag < DISK_TAG)
}

/// Kind of an event with this tag.
pub(super) fn kind(tag: u16) -> Option<Kind> {
    let call = |from: u16| CALLS.get(usize::from(tag.checked_sub(from)?)).copied();
    match tag {
        0..CALL_TAG => Some(Kind::Add),
        CALL_TAG..RETURN_TAG => call(CALL_TAG).map(Kind::Call),
        RETURN_TAG..DISK_TAG => call(RETURN_TAG).map(Kind::Return),
        DISK_TAG => Some(Kind::DiskRequest),
        PACKET_TAG => Some(Kind::Packet),
        _ => None,
    }
}

/// Values of [`ADD_FIELDS`]; `None` if the event lacks the field.
pub(super) type AddFields = [Option<u64>; ADD_FIELDS.len()];

/// Incomplete events.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Buffers by recording and CPU that lack some fields.
    added: FxHashMap<(u16, u16), AddFields>,
    /// Open calls with their queues.
    open: ByThread<Vec<(Call, u64)>, MAX_THREADS>,
}

impl Parts {
    /// Adds an event's fields of a buffer; returns all fields after the last event.
    pub(super) fn complete(&mut self, event: &TraceEvent) -> Option<AddFields> {
        let key = (event.recording, event.cpu);
        let fields = self.added.entry(key).or_insert([None; ADD_FIELDS.len()]);
        let from = usize::from(event.tag).saturating_mul(MAX_FIELDS);
        if from == 0 {
            *fields = [None; ADD_FIELDS.len()];
        }
        for (at, field) in fields.iter_mut().skip(from).take(MAX_FIELDS).enumerate() {
            *field = event.value(at);
        }
        let is_last = event.tag + 1 == ADD_EVENTS;
        is_last.then_some(*fields)
    }

    pub(super) fn call(&mut self, event: &TraceEvent, call: Call, vq: u64) {
        let open = self.open.get_or_default((event.recording, event.thread));
        if open.len() >= MAX_OPEN {
            // Drops the oldest call, whose return is missing: the kernel limits the number of concurrent calls
            // that it follows.
            open.remove(0);
        }
        open.push((call, vq));
    }

    /// The queue of a returning call.
    pub(super) fn returned(&mut self, event: &TraceEvent, call: Call) -> Option<u64> {
        let open = self.open.get_mut((event.recording, event.thread))?;
        let at = open.iter().rposition(|(open_call, _)| *open_call == call)?;
        let (_, vq) = open.get(at).copied()?;
        open.truncate(at);
        Some(vq)
    }

    /// Drops open calls after a loss.
    pub(super) fn lost(&mut self, recording: u16) {
        self.open.lost(recording);
    }
}
