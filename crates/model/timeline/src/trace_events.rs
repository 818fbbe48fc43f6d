//! Events of all recordings in the order of their times, each with the few numbers asked for.
//!
//! Exits need no global order (see `lanes`); what spans threads and machines does: who woke whom,
//! which state a vCPU left for which, which way a request took. A caller says which events it wants
//! and which of their fields ([`Wanted`]); a moment is then 64 bytes, whatever the kernel, its byte
//! order and its field names. Guests whose recordings were aligned stand among the events of their
//! host.

mod batch;
mod decode;
mod live;
mod merge;
mod name_fields;
mod name_histories;
mod names;
mod sightings;
mod with_vcpus;

use std::fmt;

use eventfmt::EventFormat;
use sources::Recording;

use self::decode::Decoder;
use self::merge::Merger;
use crate::losses::Losses;
use crate::numbered_names::{NameDecoder, NameGatherer, NamedNumber, NumberedNames};
use crate::rounds::{self, Input};

pub(crate) use batch::TraceEventBatch;
pub(crate) use merge::StreamQueues;
pub(crate) use sightings::WithSightings;

pub use live::LiveTraceEvents;
pub use names::ThreadNames;
pub use with_vcpus::each_trace_event_and_vcpus;

/// Fields that one event has room for.
pub const MOST_FIELDS: usize = 5;

/// An event that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// What the caller calls it; handed back in [`TraceEvent::tag`].
    pub tag: u16,
    /// Fields whose numbers are wanted; `"exit_reason|ret"` takes the first of the two that the event has,
    /// `"args[1]"` an element of an array. Those
    /// after the first [`MOST_FIELDS`] come as events of their own right after it, with the tags that follow.
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
    /// See [`Wanted::tag`].
    pub tag: u16,
    has: u8,
    /// A bit for each field that its format has and the record is too short for.
    cut: u8,
    values: [u64; MOST_FIELDS],
}

const _: () = assert!(size_of::<TraceEvent>() == 64);

impl TraceEvent {
    /// The number in field `at` of [`Wanted::fields`], with its sign extended where it has one;
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

/// A sink, and the events that it is given: `wanted` gets a recording's index and a format.
pub struct Asked<'q, S> {
    /// Which events, and which of their fields.
    pub wanted: &'q dyn Fn(usize, &EventFormat) -> Option<Wanted>,
    /// Takes them.
    pub sink: &'q mut S,
}

impl<S> fmt::Debug for Asked<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").finish_non_exhaustive()
    }
}

/// Gives `sink` every event of `recordings` for which `wanted` returns something (it is given the
/// recording's index); `tick` gets the bytes done.
///
/// Of an event that several buffers of a recording have, a thread's are taken from the buffer in
/// which it is first seen. Streams on another clock than their recording's are left out.
pub fn each_trace_event<S: TraceEventSink>(
    recordings: &[Recording],
    wanted: &dyn Fn(usize, &EventFormat) -> Option<Wanted>,
    sink: &mut S,
    tick: &(dyn Fn(u64) + Sync),
) -> TraceEventPass {
    let (inputs, owners) = inputs(recordings);
    let decoder = Decoder::new::<S>(recordings, &owners, wanted);
    let mut merger = Merger::new(&inputs, &owners, nothing_yet(recordings), sink);
    rounds::run(&inputs, &decoder, &mut merger, tick);
    TraceEventPass { event_ids: decoder.seen(), ..merger.finish() }
}

/// [`each_trace_event`] for two sinks, with the names that `named` has for numbers, of one reading.
pub fn each_trace_event_for_two<A: TraceEventSink, B: TraceEventSink>(
    recordings: &[Recording],
    (a, b): (Asked<'_, A>, Asked<'_, B>),
    named: NamedNumber,
    tick: &(dyn Fn(u64) + Sync),
) -> ((TraceEventPass, TraceEventPass), NumberedNames) {
    let (inputs, owners) = inputs(recordings);
    let decoders = [
        Decoder::new::<A>(recordings, &owners, a.wanted),
        Decoder::new::<B>(recordings, &owners, b.wanted),
    ];
    let mut for_a = Merger::new(&inputs, &owners, nothing_yet(recordings), a.sink);
    let mut for_b = Merger::new(&inputs, &owners, nothing_yet(recordings), b.sink);
    let name_decoder = NameDecoder::new(recordings, &owners, named);
    let mut gatherer = NameGatherer::new(&owners);
    let [of_a, of_b] = &decoders;
    let mut for_both = (&mut for_a, &mut for_b);
    let all = (&(of_a, of_b), &name_decoder);
    rounds::run(&inputs, &all, &mut (&mut for_both, &mut gatherer), tick);
    let passes = (
        TraceEventPass { event_ids: of_a.seen(), ..for_a.finish() },
        TraceEventPass { event_ids: of_b.seen(), ..for_b.finish() },
    );
    (passes, gatherer.names)
}

/// [`each_trace_event`], with the names that `named` has for numbers, of one reading.
pub fn each_trace_event_and_names<S: TraceEventSink>(
    recordings: &[Recording],
    asked: Asked<'_, S>,
    named: NamedNumber,
    tick: &(dyn Fn(u64) + Sync),
) -> (TraceEventPass, NumberedNames) {
    let (inputs, owners) = inputs(recordings);
    let decoder = Decoder::new::<S>(recordings, &owners, asked.wanted);
    let name_decoder = NameDecoder::new(recordings, &owners, named);
    let mut merger = Merger::new(&inputs, &owners, nothing_yet(recordings), asked.sink);
    let mut gatherer = NameGatherer::new(&owners);
    rounds::run(&inputs, &(&decoder, &name_decoder), &mut (&mut merger, &mut gatherer), tick);
    (TraceEventPass { event_ids: decoder.seen(), ..merger.finish() }, gatherer.names)
}

/// The streams of all recordings on the clocks of those, and by stream the recording.
fn inputs(recordings: &[Recording]) -> (Vec<Input<'_>>, Vec<u16>) {
    let mut inputs = Vec::new();
    let mut owners = Vec::new();
    for (owner, recording) in (0u16..).zip(recordings) {
        for input in Input::on_clock_of(recording) {
            inputs.push(input);
            owners.push(owner);
        }
    }
    (inputs, owners)
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
