//! Events of all recordings in time order, each with a few numeric fields.
//!
//! Exits need no global order (see `lanes`). Relations between threads and machines do: which
//! thread woke which, how a vCPU's state changed, which path a request took. A caller selects
//! events and fields ([`EventRequest`]); an event then takes 64 bytes, independent of the kernel,
//! its byte order and its field names. The events of aligned guests are merged with those of their
//! host.

mod batch;
mod decode;
mod live;
mod merge;
mod name_fields;
mod name_histories;
mod names;
mod sightings;

use ftrace::eventfmt::EventFormat;
use sources::Recording;

use crate::losses::Losses;

pub(crate) use batch::TraceEventBatch;
pub(crate) use decode::Decoder;
pub(crate) use merge::{Merger, StreamQueues};
pub(crate) use sightings::{SightingBatch, WithSightings};

pub use live::LiveTraceEvents;
pub use names::ThreadNames;

/// Maximum fields per event.
pub const MAX_FIELDS: usize = 5;

/// A request for events of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRequest {
    /// The caller's tag, which [`TraceEvent::tag`] returns.
    pub tag: u16,
    /// Names of the wanted fields; `"exit_reason|ret"` selects the first of the two that the event
    /// has, `"args[1]"` an element of an array. Fields beyond the first [`MAX_FIELDS`] arrive as
    /// separate events right after it, with the following tags.
    pub fields: &'static [&'static str],
}

/// A requested event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// Time on its recording's corrected clock.
    pub stamp_ns: u64,
    /// Thread id (`common_pid`) of the thread that ran.
    pub thread: u32,
    /// Index of its recording in the input list.
    pub recording: u16,
    /// CPU on which it was recorded.
    pub cpu: u16,
    /// See [`EventRequest::tag`].
    pub tag: u16,
    has: u8,
    /// A bit for each field of the format that the record is too short for.
    cut: u8,
    values: [u64; MAX_FIELDS],
}

const _: () = assert!(size_of::<TraceEvent>() == 64);

impl TraceEvent {
    /// The number in field `at` of [`EventRequest::fields`], sign-extended if it is signed; `None`
    /// if the event has no such field.
    #[inline]
    #[must_use]
    pub fn value(&self, at: usize) -> Option<u64> {
        self.values.get(at).copied().filter(|_| self.has & (1 << at) != 0)
    }

    /// Whether the record is too short for a field of its format, other than field `but`.
    pub(crate) fn is_cut(&self, but: Option<usize>) -> bool {
        let others = but.map_or(u8::MAX, |at| !(1u8.checked_shl(at as u32).unwrap_or(0)));
        self.cut & others != 0
    }

    /// [`TraceEvent::value`] for a thread id, which has at most 22 bits in the kernel.
    #[inline]
    #[must_use]
    pub fn thread_value(&self, at: usize) -> Option<u32> {
        u32::try_from(self.value(at)?).ok()
    }
}

/// Missing events of a CPU: dropped by the kernel, or not readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Index of its recording in the input list.
    pub recording: u16,
    /// The CPU.
    pub cpu: u16,
    /// The last known time before the gap; 0: start of the recording.
    pub from_ns: u64,
    /// The first known time after the gap; `u64::MAX`: none.
    pub to_ns: u64,
}

/// Receives the events of all recordings in time order.
pub trait TraceEventSink: Send {
    /// Whether [`TraceEventPass::names`] includes names from events: reading them takes time.
    const WITH_NAMES: bool = true;

    /// An event. At equal times the events of a CPU are in recorded order.
    fn event(&mut self, event: &TraceEvent);

    /// The state of this CPU is unknown from `gap.from_ns` to `gap.to_ns`. Precedes all later
    /// events of the CPU.
    fn gap(&mut self, gap: &Gap);
}

/// A sink that requests events.
pub trait WantsTraceEvents: TraceEventSink {
    /// The request for events of this format in the recording with this index, if wanted. Called
    /// once per format, before any data is read.
    fn wanted(&self, recording: usize, format: &EventFormat) -> Option<EventRequest>;
}

/// The result of a pass over events, besides what its sink collected.
#[derive(Debug, Default)]
pub struct TraceEventPass {
    /// Losses by recording.
    pub losses: Vec<Losses>,
    /// Thread names by recording.
    pub names: Vec<ThreadNames>,
    /// By recording: first and last time of its pages; `None` if it has no readable pages.
    pub spans_ns: Vec<Option<(u64, u64)>>,
    /// By recording: ids of all events in it, wanted or not, ascending; without events that lack a
    /// format.
    pub event_ids: Vec<Vec<u16>>,
}

impl TraceEventPass {
    /// Adds the result of a pass over further recordings.
    pub fn append(&mut self, mut further: Self) {
        self.losses.append(&mut further.losses);
        self.names.append(&mut further.names);
        self.spans_ns.append(&mut further.spans_ns);
        self.event_ids.append(&mut further.event_ids);
    }
}

/// The result before any data has been read.
pub(crate) fn nothing_yet(recordings: &[Recording]) -> TraceEventPass {
    TraceEventPass {
        losses: recordings.iter().map(Losses::of_container).collect(),
        names: recordings.iter().map(ThreadNames::saved_in).collect(),
        spans_ns: vec![None; recordings.len()],
        event_ids: Vec::new(),
    }
}
