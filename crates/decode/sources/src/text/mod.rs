//! Text that trace-cmd report or perf script printed, or the kernel's own `trace` file, as a recording.
//!
//! A first look at all lines finds CPUs, events and their fields, and which lines are whose; a CPU's
//! lines become records when they are asked for (`stream.rs`). Each event gets a format of its own, as
//! a kernel would write it (`layout.rs`): fields come from the line (`template.rs`, `known.rs`), and the
//! whole line is kept as one more field, which is what the format prints. What no text has is the
//! number of an exit's reason: names are numbered as they come (`reasons.rs`).

mod known;
mod layout;
mod line;
mod reasons;
mod stream;
mod template;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use raw_bytes::{Abi, ByteOrder, LongSize};
use sys::FileMap;
use tracedat::{Cmdlines, Correction, EventFormat as EventText, Formats};

pub(crate) use self::known::system_of;
pub use self::known::{TEXT_REASON, X86_VECTORS};
use self::layout::Event;
use self::line::{EventLine, Line};
use self::reasons::Reasons;
pub use self::reasons::TEXT_REASON_WAITS;
use self::stream::{CpuLines, TextStream};
use crate::clock::Clock;
use crate::container::Container;
use crate::names::{Names, Text as NameText};
use crate::recording::{BufferInfo, Recording, RecordingInfo};
use crate::stream::{Stream, StreamRecords};
use crate::{Damage, Ending, FormatTable};

/// A line is read up to here: what follows fits no page of the kernel's.
const MOST_LINE_BYTES: usize = 2048;
/// Different events, at most.
const MOST_EVENTS: usize = 4096;
/// Threads whose names are kept, at most.
const MOST_THREADS: usize = 1 << 20;
/// Lines that can't be read which are reported one by one.
const MOST_UNREADABLE: usize = 100;
/// How much of a file is looked at to see whether it is such a text.
const FIRST_BYTES: usize = 64 << 10;

/// Whether a file begins as such a text: it is text, and has a line that is an event or a loss.
pub(crate) fn is_text(file: &[u8]) -> bool {
    let first = file.get(..FIRST_BYTES).unwrap_or(file);
    if first.iter().any(|&one| one < b'\t' || one == 0x7f) {
        return false;
    }
    lines(first).any(|line| matches!(Line::read(&line.text()), Line::Event(_) | Line::Lost { .. }))
}

/// A line, and where it stands.
#[derive(Clone, Copy, Debug)]
struct LineAt<'f> {
    offset: usize,
    bytes: &'f [u8],
}

impl<'f> LineAt<'f> {
    /// The line from an offset on, without its end.
    fn at(file: &'f [u8], offset: usize) -> Option<Self> {
        let rest = file.get(offset..).filter(|rest| !rest.is_empty())?;
        let end = rest.iter().position(|&one| one == b'\n').unwrap_or(rest.len());
        Some(Self { offset, bytes: rest.get(..end)? })
    }

    /// As text, as far as it is read.
    fn text(&self) -> std::borrow::Cow<'f, str> {
        String::from_utf8_lossy(self.bytes.get(..MOST_LINE_BYTES).unwrap_or(self.bytes))
    }

    fn is_cut(&self) -> bool {
        self.bytes.len() > MOST_LINE_BYTES
    }
}

fn lines(file: &[u8]) -> impl Iterator<Item = LineAt<'_>> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let line = LineAt::at(file, offset)?;
        offset += line.bytes.len() + 1;
        Some(line)
    })
}

/// A text whose lines have been looked at.
#[derive(Debug)]
struct Text {
    file: FileMap,
    events: Events,
    reasons: Reasons,
}

/// Events by what lines call them.
#[derive(Debug, Default)]
struct Events {
    list: Vec<Event>,
    /// Those that some line calls by their name alone, and all by system and name.
    places: HashMap<String, usize>,
    with_system: HashMap<String, HashMap<String, usize>>,
}

impl Events {
    fn place(&self, line: &EventLine<'_>) -> Option<usize> {
        let places = match line.system {
            None => &self.places,
            Some(system) => self.with_system.get(system)?,
        };
        places.get(line.name).copied()
    }

    fn get(&self, line: &EventLine<'_>) -> Option<&Event> {
        self.list.get(self.place(line)?)
    }

    /// The event of a line, which may be a new one; `None`: there are too many.
    fn get_or_add(&mut self, line: &EventLine<'_>) -> Option<&mut Event> {
        let place = match self.place(line) {
            Some(place) => place,
            None => self.add(line)?,
        };
        self.list.get_mut(place)
    }

    /// The place of an event that no line called so before; `None`: there are too many.
    fn add(&mut self, line: &EventLine<'_>) -> Option<usize> {
        let system = line.system.unwrap_or_else(|| known::system_of(line.name));
        // Lines that name the system and lines that don't are of one event.
        let known = self.with_system.get(system).and_then(|places| places.get(line.name)).copied();
        let place = known.unwrap_or(self.list.len());
        if known.is_none() {
            let id = u16::try_from(place + 1).ok().filter(|_| place < MOST_EVENTS)?;
            self.list.push(Event::new(id, system, line.name));
            let places = self.with_system.entry(system.to_owned()).or_default();
            places.insert(line.name.to_owned(), place);
        }
        if line.system.is_none() {
            self.places.insert(line.name.to_owned(), place);
        }
        Some(place)
    }
}

/// What the first look at all lines finds.
#[derive(Debug, Default)]
struct FirstLook {
    events: Events,
    reasons: Reasons,
    cpus: BTreeMap<u32, CpuLines>,
    comms: HashMap<u32, String>,
    cpu_count: Option<u32>,
    /// Digits behind the points of times, the fewest.
    digits: Option<u32>,
    damage: Vec<Damage>,
    /// Lines that can't be read beyond those in `damage`.
    more: u64,
}

impl FirstLook {
    fn new(file: &[u8]) -> Self {
        let mut look = Self::default();
        for (number, line) in (1_u64..).zip(lines(file)) {
            let text = line.text();
            match Line::read(&text) {
                Line::Event(event) => look.event(number, &line, &event),
                Line::Lost { cpu, count } => {
                    look.cpus.entry(cpu).or_default().lost(line.offset, count);
                }
                Line::Cpus(count) => look.cpu_count = Some(count),
                Line::Nothing => {}
                Line::Unreadable(why) => look.unreadable(number, &line, why),
            }
        }
        look.events.list.iter_mut().for_each(Event::lay_out);
        look
    }

    fn event(&mut self, number: u64, line: &LineAt<'_>, event: &EventLine<'_>) {
        let Some(known) = self.events.get_or_add(event) else {
            return self.unreadable(number, line, "it is of one event more than can be told apart");
        };
        known.look_at(event, &mut self.reasons);
        self.cpus.entry(event.cpu).or_default().event(line.offset);
        self.digits = Some(self.digits.map_or(event.digits, |digits| digits.min(event.digits)));
        // trace-cmd and perf script write these where they don't know the thread's name.
        let unknown = event.comm == "<...>"
            || event.comm.strip_prefix(':').is_some_and(|id| id.parse() == Ok(event.thread));
        let is_name = !unknown && event.thread != 0;
        if is_name {
            let room = self.comms.len() < MOST_THREADS;
            match self.comms.get_mut(&event.thread) {
                Some(comm) if comm == event.comm => {}
                Some(comm) => event.comm.clone_into(comm),
                None if room => drop(self.comms.insert(event.thread, event.comm.to_owned())),
                None => {}
            }
        }
        if line.is_cut() {
            self.unreadable(number, line, "it is longer than 2048 bytes: the rest is left out");
        }
    }

    fn unreadable(&mut self, number: u64, line: &LineAt<'_>, why: &str) {
        if self.damage.len() >= MOST_UNREADABLE {
            self.more += 1;
            return;
        }
        let shown: String = line.text().chars().take(60).collect();
        let what = format!("line {number}: {why}: {shown:?}");
        self.damage.push(Damage::at(line.offset as u64, what));
    }

    fn info(&self) -> RecordingInfo {
        let resolution_ns = self.digits.map(|digits| 10_u64.pow(9_u32.saturating_sub(digits)));
        RecordingInfo {
            format: "text".to_owned(),
            buffers: vec![BufferInfo::default()],
            cpu_count: self.cpu_count,
            resolution_ns,
            ..RecordingInfo::default()
        }
    }
}

/// Makes a recording of a text.
pub(crate) fn recording(path: &Path, file: FileMap) -> Recording {
    let mut look = FirstLook::new(&file);
    if look.more > 0 {
        let what = format!("{} more lines can't be read", look.more);
        look.damage.push(Damage::at(0, what));
    }
    let info = look.info();
    let FirstLook { events, reasons, cpus, comms, damage, .. } = look;
    let formats: FormatTable = events.list.iter().filter_map(|one| one.format(&reasons)).collect();
    let comms: String = comms.iter().map(|(thread, comm)| format!("{thread} {comm}\n")).collect();
    let text = Arc::new(Text { file, events, reasons });
    let stream = |(cpu, lines)| {
        let records = Arc::new(TextStream::new(cpu, Arc::clone(&text), lines));
        Stream { cpu, buffer: 0, records: StreamRecords::Listed(records), cut: false }
    };
    let streams: Vec<Stream> = cpus.into_iter().map(stream).collect();
    let container = Container::Text(Box::new(format_texts(&text)));
    let ending = Ending::of(path, &container, &streams, &info.buffers);
    Recording {
        path: path.to_owned(),
        files: Vec::new(),
        container,
        info,
        abi: Abi { order: ByteOrder::Little, long: LongSize::Eight },
        formats,
        streams,
        clock: Clock::new(vec![Correction::identity()]),
        names: Names::new(Cmdlines::parse(comms.as_bytes()), NameText::Missing, NameText::Missing),
        damage,
        ending,
        part: None,
        bytes_read: AtomicU64::new(0),
        lacks_events: AtomicBool::new(false),
    }
}

/// The formats as a trace.dat has them.
fn format_texts(text: &Text) -> Formats {
    let event = |event: &Event| EventText {
        system: event.system().into(),
        text: event.exported_format_text(&text.reasons),
    };
    let events = text.events.list.iter().map(event).collect();
    let (header_page, header_event) = (HEADER_PAGE.to_owned(), HEADER_EVENT.to_owned());
    Formats { header_page, header_event, events, ..Formats::default() }
}

/// How pages are laid out that records are exported to, in the kernel's form.
pub(crate) const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:8176;\tsigned:1;\n";
/// The heads of records on them.
pub(crate) const HEADER_EVENT: &str = "# compressed entry header\n\
    \ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\
    \tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\
    \tdata max type_len  == 28\n";
