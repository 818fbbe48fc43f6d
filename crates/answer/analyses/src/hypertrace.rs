//! Events that guests report by hypercall, on the host's clock, from the host's recording.
//!
//! Each vCPU thread is a stream ([`hypertrace::Decoder`]). A guest buffers events before it sends a frame, so
//! frames arrive later than their events. A window longer than this delay sorts the events of several vCPUs.
//!
//! Hypercalls are in the recording's events, with four words each, or in a file that the BPF collector wrote, with
//! all words and the cost of the hypercall. Both are read the same way. Frames in shared memory have their own
//! times and are merged at the end.

mod hypercalls;
mod stored;
mod window;

use ftrace::eventfmt::EventFormat;
use hypertrace::{Decoder, Event, Losses, Mark, Marks};
use rustc_hash::FxHashMap;
use sources::{Collected, Recording, TimeRange};
use timeline::reading::each_trace_event;
use timeline::trace_events::{EventRequest, Gap, TraceEvent, TraceEventSink, WantsTraceEvents};

use self::hypercalls::Hypercalls;
use self::stored::Ordered;
pub use self::stored::StoredFrames;
use self::window::Window;
use crate::distribution::Distribution;

/// An event or mark that a guest reported.
#[derive(Clone, Debug)]
pub enum GuestEvent {
    /// An event of the guest's kernel.
    Event(Event),
    /// A text that a program in the guest wrote, with the guest's CPU if it is known.
    Mark(Mark, Option<u16>),
}

impl GuestEvent {
    /// Time on the host's clock.
    #[must_use]
    pub fn stamp_ns(&self) -> u64 {
        match self {
            Self::Event(event) => event.stamp_ns,
            Self::Mark(mark, _) => mark.stamp_ns,
        }
    }
}

/// The host thread of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VcpuThread {
    /// Index of the recording.
    pub recording: u16,
    /// Thread id on the host.
    pub thread: u32,
}

/// The hypercall that carried an event. Only the collector knows these values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carrier {
    /// From the guest's exit to its next entry: the cost of reporting.
    pub overhead_ns: Option<u64>,
    /// Address of the hypercall instruction in the guest.
    pub guest_rip: Option<u64>,
}

/// Receives guests' events, mostly in the order of time: see [`HypertraceSummary::late`].
pub trait GuestEventSink: Send {
    /// An event of a vCPU.
    fn event(&mut self, from: VcpuThread, event: &GuestEvent, by: &Carrier);
}

/// Transport of frames to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    Hypercall,
    /// Memory shared between guest and host.
    Memory,
}

/// Files to read besides recordings.
#[derive(Clone, Copy, Debug, Default)]
pub struct HypertraceFiles<'f> {
    /// By recording: the hypercalls that a collector wrote.
    pub collected: &'f [Option<Collected>],
    /// Files with frames from shared memory.
    pub stored: &'f [StoredFrames<'f>],
    /// Time range of the events to emit, on the host's clock; `None`: all. All frames are decoded, because the
    /// first frames of a stream define tables for later ones.
    pub times: Option<TimeRange>,
}

/// A vCPU's stream.
#[derive(Clone, Debug)]
pub struct StreamSummary {
    /// The vCPU's thread.
    pub from: VcpuThread,
    pub route: Route,
    pub frames: u64,
    /// Events in all frames.
    pub events: u64,
    pub losses: Losses,
}

/// Results besides the events.
#[derive(Debug)]
pub struct HypertraceSummary {
    /// Streams, by recording and thread.
    pub streams: Vec<StreamSummary>,
    /// Pieces of marks that do not form a complete mark.
    pub marks_damaged: u64,
    /// Events that arrived after the window and are out of order.
    pub late: u64,
    /// Recorders' losses by recording, if its events were read.
    pub losses: Vec<timeline::Losses>,
    /// Durations of hypercalls with frames, from exit to entry, if known.
    pub overheads_ns: Distribution,
    /// Delays of the host's timestamps of hypercalls with frames, if streams report them: see
    /// [`hypertrace::Event::late_ns`].
    pub late_ns: Distribution,
    /// Hypercalls without a time: the collector's clock was not compared with the recording's.
    pub untimed: u64,
}

impl HypertraceSummary {
    /// Losses of all streams.
    #[must_use]
    pub fn sum(&self) -> Losses {
        let mut sum = Losses::default();
        self.streams.iter().for_each(|stream| sum.add(&stream.losses));
        sum
    }
}

impl HypertraceFiles<'_> {
    /// Whether these recordings or files can have guest events.
    #[must_use]
    pub fn may_have_events(&self, recordings: &[Recording]) -> bool {
        let has = |recording: &Recording| {
            recording.formats().iter().any(|(_, format)| is_hypercall(format))
        };
        !self.stored.is_empty()
            || self.collected.iter().any(Option::is_some)
            || recordings.iter().any(has)
    }
}

/// Whether this is KVM's event with a hypercall's number and words.
fn is_hypercall(format: &EventFormat) -> bool {
    format.name() == "kvm_hypercall"
}

const FRAME: u16 = 0;

/// Gives `sink` the events that guests sent by hypercall `number` (marks: `number + 1`) and the frames in shared
/// memory; `progress` receives the number of bytes read. If a collector wrote a file for a recording, hypercalls
/// come from the file and not from the recording's events.
pub fn hypertrace<S: GuestEventSink>(
    recordings: &[Recording],
    files: HypertraceFiles<'_>,
    number: u64,
    sink: &mut S,
    progress: &(dyn Fn(u64) + Sync),
) -> HypertraceSummary {
    let sink = &mut Within { times: files.times, recordings, sink };
    let is_collected = |at: usize| files.collected.get(at).is_some_and(Option::is_some);
    let is_collected: Vec<bool> = (0..recordings.len()).map(is_collected).collect();
    let are_all_collected = !is_collected.contains(&false);
    let mut reader = Reader {
        is_collected,
        number,
        files: Hypercalls::new(recordings, files.collected),
        streams: FxHashMap::default(),
        losses: FxHashMap::default(),
        marks: Marks::default(),
        window: Window::default(),
        new: Vec::new(),
        overheads_ns: Distribution::default(),
        late_ns: Distribution::default(),
        untimed: 0,
        sink: Merged { stored: Ordered::new(files.stored, recordings), sink },
    };
    let mut losses = Vec::new();
    // Pages without selected events are not read.
    if !are_all_collected {
        losses = each_trace_event(recordings, &mut reader, progress).losses;
    }
    reader.until(u64::MAX);
    reader.window.rest(&mut |from, event, by| reader.sink.event(from, event, by));
    let Reader { streams, marks, window, overheads_ns, late_ns, untimed, sink, .. } = reader;
    let Merged { mut stored, sink } = sink;
    stored.up_to(None, sink);
    let mut streams: Vec<StreamSummary> = streams.into_iter().map(summary).collect();
    streams.extend(stored.summaries());
    streams.sort_unstable_by_key(|stream| stream.from);
    let (marks_damaged, late) = (marks.damaged(), window.late());
    HypertraceSummary { streams, marks_damaged, late, losses, overheads_ns, late_ns, untimed }
}

fn summary((from, stream): (VcpuThread, Stream)) -> StreamSummary {
    let Stream { decoder, hypercalls, events, .. } = stream;
    let (route, losses) = (Route::Hypercall, decoder.losses());
    StreamSummary { from, route, frames: hypercalls, events, losses }
}

/// Passes on events in a time range, from vCPUs that are not excluded.
struct Within<'s, S> {
    times: Option<TimeRange>,
    recordings: &'s [Recording],
    sink: &'s mut S,
}

impl<S: GuestEventSink> GuestEventSink for Within<'_, S> {
    fn event(&mut self, from: VcpuThread, event: &GuestEvent, by: &Carrier) {
        let recording = self.recordings.get(usize::from(from.recording));
        let is_left_out = recording.is_some_and(|recording| recording.leaves_out_vcpu(from.thread));
        if !is_left_out && self.times.is_none_or(|times| times.contains(event.stamp_ns())) {
            self.sink.event(from, event, by);
        }
    }
}

/// Merges stored events into the others by time.
struct Merged<'s, S> {
    stored: Ordered<'s>,
    sink: &'s mut S,
}

impl<S: GuestEventSink> GuestEventSink for Merged<'_, S> {
    fn event(&mut self, from: VcpuThread, event: &GuestEvent, by: &Carrier) {
        self.stored.up_to(Some(event.stamp_ns()), self.sink);
        self.sink.event(from, event, by);
    }
}

#[derive(Default)]
struct Stream {
    decoder: Decoder,
    hypercalls: u64,
    events: u64,
    /// The collector's last count of lost hypercalls.
    lost: u16,
    /// Losses of the recording that this stream already handled.
    losses_seen: u64,
}

/// A hypercall from a recording or a collector's file.
struct Hypercall<'w> {
    from: VcpuThread,
    number: u64,
    words: &'w [u64],
    stamp_ns: u64,
    by: Carrier,
}

struct Reader<'s, S> {
    /// By recording: whether a collector's file replaces its events.
    is_collected: Vec<bool>,
    number: u64,
    files: Hypercalls<'s>,
    streams: FxHashMap<VcpuThread, Stream>,
    /// By recording: number of losses.
    losses: FxHashMap<u16, u64>,
    marks: Marks,
    window: Window,
    /// Scratch buffer for the events of one frame.
    new: Vec<Event>,
    overheads_ns: Distribution,
    late_ns: Distribution,
    untimed: u64,
    sink: Merged<'s, S>,
}

impl<S: GuestEventSink> Reader<'_, S> {
    fn hypercall(&mut self, hypercall: &Hypercall<'_>) {
        if hypercall.number == self.number {
            self.frame(hypercall);
        } else if hypercall.number == self.number.wrapping_add(1) {
            self.mark(hypercall);
        }
    }

    fn frame(&mut self, frame: &Hypercall<'_>) {
        let losses = self.losses.get(&frame.from.recording).copied().unwrap_or(0);
        let stream = self.streams.entry(frame.from).or_default();
        if std::mem::replace(&mut stream.losses_seen, losses) != losses {
            stream.decoder.gap();
        }
        stream.decoder.frame(frame.words, frame.stamp_ns, &mut self.new);
        stream.hypercalls += 1;
        stream.events += self.new.len() as u64;
        frame.by.overhead_ns.into_iter().for_each(|took_ns| self.overheads_ns.add(took_ns));
        let late_ns = self.new.first().and_then(|event| event.late_ns);
        late_ns.into_iter().for_each(|late_ns| self.late_ns.add(late_ns));
        for event in self.new.drain(..) {
            self.window.add(frame.from, GuestEvent::Event(event), frame.by);
        }
        self.release(frame.stamp_ns);
    }

    fn mark(&mut self, piece: &Hypercall<'_>) {
        let Some(words) = piece.words.first_chunk() else { return };
        let from = piece.from;
        // A program can move to another vCPU between two pieces, but not to another host.
        if let Some(mark) = self.marks.piece(from.recording.into(), *words, piece.stamp_ns) {
            let cpu = self.streams.get(&from).and_then(|stream| stream.decoder.cpu());
            self.window.add(from, GuestEvent::Mark(mark, cpu), piece.by);
        }
        self.release(piece.stamp_ns);
    }

    fn release(&mut self, now_ns: u64) {
        self.window.release(now_ns, &mut |from, event, by| self.sink.event(from, event, by));
    }

    /// Reads collectors' hypercalls up to a time.
    fn until(&mut self, now_ns: u64) {
        while let Some((from, stamp_ns, collected)) = self.files.next_until(now_ns) {
            let Some(stamp_ns) = stamp_ns else {
                self.untimed += 1;
                continue;
            };
            if let Some(stream) = self.streams.get_mut(&from)
                && std::mem::replace(&mut stream.lost, collected.lost) != collected.lost
            {
                stream.decoder.gap();
            }
            let by = Carrier {
                overhead_ns: collected.entry_after_ns.map(u64::from),
                guest_rip: collected.guest_rip,
            };
            let (number, words) = (collected.number, collected.words.as_slice());
            self.hypercall(&Hypercall { from, number, words, stamp_ns, by });
        }
    }
}

impl<S: GuestEventSink> WantsTraceEvents for Reader<'_, S> {
    fn wanted(&self, at: usize, format: &EventFormat) -> Option<EventRequest> {
        let fields = &["nr", "a0", "a1", "a2", "a3"];
        let is_wanted =
            is_hypercall(format) && !self.is_collected.get(at).copied().unwrap_or(false);
        is_wanted.then_some(EventRequest { tag: FRAME, fields })
    }
}

impl<S: GuestEventSink> TraceEventSink for Reader<'_, S> {
    fn event(&mut self, event: &TraceEvent) {
        self.until(event.stamp_ns);
        let all = [0, 1, 2, 3, 4].map(|at| event.value(at));
        let [Some(number), Some(a0), Some(a1), Some(a2), Some(a3)] = all else { return };
        let from = VcpuThread { recording: event.recording, thread: event.thread };
        let (words, stamp_ns, by) = ([a0, a1, a2, a3], event.stamp_ns, Carrier::default());
        self.hypercall(&Hypercall { from, number, words: &words, stamp_ns, by });
    }

    fn gap(&mut self, gap: &Gap) {
        if self.files.has(gap.recording) {
            return;
        }
        // Frame numbers wrap at 256, and the threads of the lost events are unknown. So all streams of the
        // recording restart with their next tables.
        *self.losses.entry(gap.recording).or_default() += 1;
    }
}
