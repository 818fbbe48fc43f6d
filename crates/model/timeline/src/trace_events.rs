//! Events of all recordings in the order of their times, each with the few numbers asked for.
//!
//! Exits need no global order (see `lanes`). Relations between threads and machines do: which
//! thread woke which, which state a vCPU left for which, which path a request took. A caller
//! chooses events and their fields ([`EventRequest`]); an event then takes 64 bytes, whatever the kernel,
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

/// Fields that one event has room for.
pub const MAX_FIELDS: usize = 5;

/// An event that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRequest {
    /// What the caller calls it; handed back in [`TraceEvent::tag`].
    pub tag: u16,
    /// Fields whose numbers are wanted; `"exit_reason|ret"` takes the first of the two that the event has,
    /// `"args[1]"` an element of an array. Those
    /// after the first [`MAX_FIELDS`] come as events of their own right after it, with the tags that follow.
    pub fields: &'static [&'static str],
}

/// An event that was wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// Time, on the clock that its recording was corrected to.
    pub stamp_ns: u64,
    /// Thread id (`common_pid`) of the thread that ran.
    pub thread: u32,
    /// Index of its recording among those given.
    pub recording: u16,
    /// CPU it was recorded on.
    pub cpu: u16,
    /// See [`EventRequest::tag`].
    pub tag: u16,
    has: u8,
    /// A bit for each field that its format has and the record is too short for.
    cut: u8,
    values: [u64; MAX_FIELDS],
}

const _: () = assert!(size_of::<TraceEvent>() == 64);

impl TraceEvent {
    /// The number in field `at` of [`EventRequest::fields`], with its sign extended where it has one;
    /// `None` if the event has no such field.
    #[inline]
    #[must_use]
    pub fn value(&self, at: usize) -> Option<u64> {
        self.values.get(at).copied().filter(|_| self.has & (1 << at) != 0)
    }

    /// Whether the record is too short for a field that its format has, other than the one at `but`.
    pub(crate) fn is_cut(&self, but: Option<usize>) -> bool {
        let others = but.map_or(u8::MAX, |at| !(1u8.checked_shl(at as u32).unwrap_or(0)));
        self.cut & others != 0
    }

    /// [`TraceEvent::value`] of a thread id, which the kernel never lets grow past 22 bits.
    #[inline]
    #[must_use]
    pub fn thread_value(&self, at: usize) -> Option<u32> {
        u32::try_from(self.value(at)?).ok()
    }
}

/// Events of one CPU that are missing: lost by the kernel, or not readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Index of its recording among those given.
    pub recording: u16,
    /// The CPU.
    pub cpu: u16,
    /// The last moment known before; 0: the recording's beginning.
    pub from_ns: u64,
    /// The first known after; `u64::MAX`: none is.
    pub to_ns: u64,
}

/// Takes the events of all recordings in the order of their times.
pub trait TraceEventSink: Send {
    /// Whether [`TraceEventPass::names`] are to have those that events carry: reading them takes time.
    const WITH_NAMES: bool = true;

    /// An event. At equal times those of one CPU are in the order recorded.
    fn event(&mut self, event: &TraceEvent);

    /// From `gap.from_ns` on nothing is known of that CPU until `gap.to_ns`. Comes before all
    /// moments of the CPU after it.
    fn gap(&mut self, gap: &Gap);
}

/// A sink that says which events it takes.
pub trait WantsTraceEvents: TraceEventSink {
    /// Whether events of this format are wanted of the recording with this index, and which of their fields. Asked once
    /// for each format, before anything is read.
    fn wanted(&self, recording: usize, format: &EventFormat) -> Option<EventRequest>;
}

/// What a pass over moments leaves besides what its sink gathered.
#[derive(Debug, Default)]
pub struct TraceEventPass {
    /// By recording: what was lost.
    pub losses: Vec<Losses>,
    /// By recording: names of threads.
    pub names: Vec<ThreadNames>,
    /// By recording: first and last time of its pages; `None` if it has none that can be read.
    pub spans_ns: Vec<Option<(u64, u64)>>,
    /// By recording: ids of the events that it has, wanted or not, ascending; without those that no
    /// format describes.
    pub event_ids: Vec<Vec<u16>>,
}

impl TraceEventPass {
    /// Adds what a pass over further recordings leaves.
    pub fn append(&mut self, mut further: Self) {
        self.losses.append(&mut further.losses);
        self.names.append(&mut further.names);
        self.spans_ns.append(&mut further.spans_ns);
        self.event_ids.append(&mut further.event_ids);
    }
}

/// What a pass leaves, before anything was read.
pub(crate) fn nothing_yet(recordings: &[Recording]) -> TraceEventPass {
    TraceEventPass {
        losses: recordings.iter().map(Losses::of_container).collect(),
        names: recordings.iter().map(ThreadNames::saved_in).collect(),
        spans_ns: vec![None; recordings.len()],
        event_ids: Vec::new(),
    }
}
