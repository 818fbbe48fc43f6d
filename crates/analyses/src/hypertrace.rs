//! What guests told by hypercall, or in memory: their events on the host's clock.
//!
//! Each vCPU's thread makes a stream of its own ([`hypertrace::Decoder`]). A frame comes after the
//! events in it, by as long as the guest let them wait, so events of several vCPUs are put in order
//! in a window that is longer than that.

mod stored;
mod window;

use eventfmt::EventFormat;
use hypertrace::{Decoder, Event, Losses, Mark, Marks};
use rustc_hash::FxHashMap;
use sources::Recording;
use timeline::moments::{Gap, Moment, MomentSink, Wanted, each_moment};

use self::stored::Ordered;
pub use self::stored::StoredFrames;
use self::window::Window;

/// Something that a guest told.
#[derive(Clone, Debug)]
pub enum Told {
    /// An event of its kernel.
    Event(Event),
    /// A text that one of its programs put, with the guest's CPU if that is known.
    Mark(Mark, Option<u16>),
}

impl Told {
    /// When, on the host's clock.
    #[must_use]
    pub fn stamp_ns(&self) -> u64 {
        match self {
            Self::Event(event) => event.stamp_ns,
            Self::Mark(mark, _) => mark.stamp_ns,
        }
    }
}

/// The thread of the host that runs a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VcpuThread {
    /// Index of the recording; files of frames are numbered behind recordings.
    pub recording: u16,
    /// Thread id on the host; of a file of frames the guest's CPU.
    pub thread: u32,
}

/// Takes what guests told, mostly in the order of time: see [`HypertraceSummary::late`].
pub trait ToldSink: Send {
    /// Something from a vCPU.
    fn told(&mut self, from: VcpuThread, told: &Told);
}

/// What brought frames here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A hypercall each.
    Hypercall,
    /// Memory that guest and host share.
    Memory,
}

/// A vCPU's stream.
#[derive(Clone, Debug)]
pub struct StreamSummary {
    /// Whose it is.
    pub from: VcpuThread,
    /// What brought its frames.
    pub carried_by: Carrier,
    /// Its frames.
    pub frames: u64,
    /// Events in them.
    pub events: u64,
    /// What is missing.
    pub losses: Losses,
}

/// What was found besides the events.
#[derive(Debug)]
pub struct HypertraceSummary {
    /// Streams, by recording and thread.
    pub streams: Vec<StreamSummary>,
    /// Pieces of marks that belong to no whole one.
    pub marks_damaged: u64,
    /// What came too late to be put in its order.
    pub late: u64,
    /// By recording, what its recorder lost.
    pub losses: Vec<timeline::Losses>,
}

impl HypertraceSummary {
    /// What is missing of all streams.
    #[must_use]
    pub fn sum(&self) -> Losses {
        let mut sum = Losses::default();
        self.streams.iter().for_each(|stream| sum.add(&stream.losses));
        sum
    }
}

const FRAME: u16 = 0;

/// Gives `sink` what guests told by hypercalls of this number (marks: of the next one), and what is in
/// files of frames; `tick` hears of the bytes done.
pub fn hypertrace<S: ToldSink>(
    recordings: &[Recording],
    files: &[StoredFrames<'_>],
    number: u64,
    sink: &mut S,
    tick: &(dyn Fn(u64) + Sync),
) -> HypertraceSummary {
    let wanted = |_: usize, format: &EventFormat| {
        let fields = &["nr", "a0", "a1", "a2", "a3"];
        (format.name() == "kvm_hypercall").then_some(Wanted { tag: FRAME, fields })
    };
    let mut reader = Reader {
        number,
        streams: FxHashMap::default(),
        marks: Marks::default(),
        window: Window::default(),
        new: Vec::new(),
        sink: Merged { stored: Ordered::new(files, recordings), sink },
    };
    let pass = each_moment(recordings, &wanted, &mut reader, tick);
    reader.window.rest(&mut |from, told| reader.sink.told(from, told));
    let Merged { mut stored, sink } = reader.sink;
    stored.up_to(None, sink);
    let mut streams: Vec<StreamSummary> = reader.streams.into_iter().map(summary).collect();
    streams.extend(stored.summaries());
    streams.sort_unstable_by_key(|stream| stream.from);
    let (marks_damaged, late) = (reader.marks.damaged(), reader.window.late());
    HypertraceSummary { streams, marks_damaged, late, losses: pass.losses }
}

fn summary((from, stream): (VcpuThread, Stream)) -> StreamSummary {
    let Stream { decoder, hypercalls, events } = stream;
    let (carried_by, losses) = (Carrier::Hypercall, decoder.losses());
    StreamSummary { from, carried_by, frames: hypercalls, events, losses }
}

/// Puts what is in files before what comes later.
struct Merged<'s, S> {
    stored: Ordered<'s>,
    sink: &'s mut S,
}

impl<S: ToldSink> ToldSink for Merged<'_, S> {
    fn told(&mut self, from: VcpuThread, told: &Told) {
        self.stored.up_to(Some(told.stamp_ns()), self.sink);
        self.sink.told(from, told);
    }
}

#[derive(Default)]
struct Stream {
    decoder: Decoder,
    hypercalls: u64,
    events: u64,
}

struct Reader<'s, S> {
    number: u64,
    streams: FxHashMap<VcpuThread, Stream>,
    marks: Marks,
    window: Window,
    /// Of one frame.
    new: Vec<Event>,
    sink: Merged<'s, S>,
}

impl<S: ToldSink> Reader<'_, S> {
    fn frame(&mut self, from: VcpuThread, words: &[u64], stamp_ns: u64) {
        let stream = self.streams.entry(from).or_default();
        stream.decoder.frame(words, stamp_ns, &mut self.new);
        stream.hypercalls += 1;
        stream.events += self.new.len() as u64;
        for event in self.new.drain(..) {
            self.window.add(from, Told::Event(event));
        }
        self.release(stamp_ns);
    }

    fn mark(&mut self, from: VcpuThread, words: [u64; 4], stamp_ns: u64) {
        // A program may be moved to another vCPU between two pieces, not to another host.
        if let Some(mark) = self.marks.piece(from.recording.into(), words, stamp_ns) {
            let cpu = self.streams.get(&from).and_then(|stream| stream.decoder.cpu());
            self.window.add(from, Told::Mark(mark, cpu));
        }
        self.release(stamp_ns);
    }

    fn release(&mut self, now_ns: u64) {
        self.window.release(now_ns, &mut |from, told| self.sink.told(from, told));
    }
}

impl<S: ToldSink> MomentSink for Reader<'_, S> {
    fn moment(&mut self, moment: &Moment) {
        let all = [0, 1, 2, 3, 4].map(|at| moment.value(at));
        let [Some(number), Some(a0), Some(a1), Some(a2), Some(a3)] = all else { return };
        let from = VcpuThread { recording: moment.recording, thread: moment.thread };
        let words = [a0, a1, a2, a3];
        if number == self.number {
            self.frame(from, &words, moment.stamp_ns);
        } else if number == self.number.wrapping_add(1) {
            self.mark(from, words, moment.stamp_ns);
        }
    }

    fn gap(&mut self, gap: &Gap) {
        // A frame's number tells of missing frames only up to 255. Which threads ran there is not
        // known, so all streams of the recording start again with their next tables.
        for (from, stream) in &mut self.streams {
            if from.recording == gap.recording {
                stream.decoder.gap();
            }
        }
    }
}
