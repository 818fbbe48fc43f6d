//! The events of `@virtio`, and how they are put together (`crates/record/agent/src/probe_sets/virtio.rs` makes them).

use ftrace::eventfmt::EventFormat;
use rustc_hash::FxHashMap;
use timeline::trace_events::{EventRequest, MAX_FIELDS, TraceEvent};

use super::by_thread::ByThread;

/// What is read of a buffer that is handed over. Fields come [`MAX_FIELDS`] at a time.
pub(super) const ADD_FIELDS: &[&str] = &[
    "vq", "token", "parts", "out", "in", "n0", "n1", "d0", "d1", "none", "ma0", "ma1", "ma2",
    "ma3", "ma4", "ma5", "a0", "a1", "a2", "a3", "a4", "a5", "mb0", "mb1", "mb2", "mb3", "mb4",
    "mb5", "b0", "b1", "b2", "b3", "b4", "b5", "mc0", "c0",
];
/// Events that those come in.
const ADD_EVENTS: u16 = ADD_FIELDS.len().div_ceil(MAX_FIELDS) as u16;

/// Calls that are open at once in a thread: interrupts within interrupts.
const MAX_OPEN: usize = 8;
/// Threads that are remembered in a call.
const MAX_THREADS: usize = 1 << 16;

/// A function of which both the call and the return are events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Call {
    /// A buffer is taken back: its token, or 0.
    Get,
    /// Whether the host has to be notified: then it is. Some callers have `virtqueue_notify` within them.
    KickPrepare,
    /// Whether an interrupt was the queue's.
    Interrupt,
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Add,
    Call(Call),
    Return(Call),
    /// A driver of a disk begins a request: its bytes, and the disk's number.
    DiskRequest,
    /// A packet in several places of memory goes to a network's driver: its bytes, and those of them that are not in the first.
    Packet,
}

const CALLS: [Call; 3] = [Call::Get, Call::KickPrepare, Call::Interrupt];
/// The first tag after those of buffers: calls, then their returns.
const CALL_TAG: u16 = ADD_EVENTS;
const RETURN_TAG: u16 = CALL_TAG + CALLS.len() as u16;
const DISK_TAG: u16 = RETURN_TAG + CALLS.len() as u16;
/// Says how many bytes a request to a disk has.
const DISK_EVENT: &str = "block_rq_issue";
const PACKET_TAG: u16 = DISK_TAG + 1;
/// Says how many bytes a packet has.
const PACKET_EVENT: &str = "net_dev_start_xmit";

/// What is read of an event.
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
    // Of what a return has, only the first is always there.
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

/// What an event of that tag is.
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

/// The numbers of [`ADD_FIELDS`], each where the event has it.
pub(super) type AddFields = [Option<u64>; ADD_FIELDS.len()];

/// Events that are not complete.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// By recording and CPU: a buffer of which not all fields have come.
    added: FxHashMap<(u16, u16), AddFields>,
    /// Calls that have not returned, and their queues.
    open: ByThread<Vec<(Call, u64)>, MAX_THREADS>,
}

impl Parts {
    /// Takes some fields of a buffer; all of them, when these are the last.
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
            // A return that is missing: the kernel follows only as many calls at once.
            open.remove(0);
        }
        open.push((call, vq));
    }

    /// The queue of the call that returns.
    pub(super) fn returned(&mut self, event: &TraceEvent, call: Call) -> Option<u64> {
        let open = self.open.get_mut((event.recording, event.thread))?;
        let at = open.iter().rposition(|(open_call, _)| *open_call == call)?;
        let (_, vq) = open.get(at).copied()?;
        open.truncate(at);
        Some(vq)
    }

    /// Events of a recording are missing.
    pub(super) fn lost(&mut self, recording: u16) {
        self.open.lost(recording);
    }
}
