//! Text that trace-cmd report or perf script printed, or the kernel's own `trace` file, as a recording.
//!
//! A first look at all lines finds recordings, CPUs, events and their fields, and which lines are whose
//! (`machines.rs`, `first_look.rs`); a CPU's lines become records when they are asked for (`stream.rs`).
//! Each event gets a format of its own, as a kernel would write it (`layout.rs`): fields come from the
//! line (`template.rs`, `known.rs`), and the whole line is kept as one more field, which is what the
//! format prints. What no text has is the number of an exit's reason: names are numbered as they come
//! (`reasons.rs`), and of a function its address: names are given some (`functions.rs`). Lines of the
//! function_graph tracer look like a program, and become the events that they were made of (`graph.rs`).

mod events;
mod first_look;
mod functions;
mod graph;
mod known;
mod layout;
mod line;
mod machines;
mod reasons;
mod refusal;
mod stream;
mod template;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use raw_bytes::{Abi, ByteOrder, LongSize};
use sys::FileMap;
use tracedat::{Cmdlines, EventFormat as EventText, Formats, Guest};

use self::events::Events;
use self::first_look::FirstLook;
use self::functions::Functions;
pub(crate) use self::known::system_of;
pub use self::known::{TEXT_REASON, X86_VECTORS};
use self::layout::Event;
use self::machines::{Machine, Machines};
use self::reasons::Reasons;
pub use self::reasons::TEXT_REASON_WAITS;
use self::stream::TextStream;
use crate::clock::Clock;
use crate::container::Container;
use crate::names::{Names, Text as NameText};
use crate::open_error::{OpenError, OpenFault};
use crate::recording::Recording;
use crate::stream::{Stream, StreamRecords};
use crate::{Ending, FormatTable};

/// Maximum length of a line: no page of the kernel holds more.
const MAX_LINE_BYTES: usize = 2048;
/// How much of a file is looked at to see whether it is text.
const FIRST_BYTES: usize = 64 << 10;

/// What a trace.dat begins with, however little there is of it.
const TRACE_DAT: u8 = 0x17;

/// Whether a file begins as text. That it holds a trace is seen when it is read.
pub(crate) fn is_text(file: &[u8]) -> bool {
    let first = file.get(..FIRST_BYTES).unwrap_or(file);
    first.first() != Some(&TRACE_DAT) && !first.iter().any(|&byte| byte < b'\t' || byte == 0x7f)
}

/// Whether a file that is no text looks like what the kernel prints with its option `bin`: some numbers of an
/// event as they are in memory, then `type: 372` in place of its name.
pub(crate) fn is_printed_in_binary(file: &[u8]) -> bool {
    const TYPE: &[u8] = b"type: ";
    let first = file.get(..FIRST_BYTES).unwrap_or(file);
    let types = first.windows(TYPE.len()).filter(|bytes| *bytes == TYPE).take(2).count();
    file.starts_with(b"# tracer: ") || types == 2
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
        let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        Some(Self { offset, bytes: rest.get(..end)? })
    }

    /// As text, as far as it is read.
    fn text(&self) -> std::borrow::Cow<'f, str> {
        String::from_utf8_lossy(self.bytes.get(..MAX_LINE_BYTES).unwrap_or(self.bytes))
    }

    fn is_cut(&self) -> bool {
        self.bytes.len() > MAX_LINE_BYTES
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

/// A recording of a text whose lines have been looked at.
#[derive(Debug)]
struct Text {
    file: Arc<FileMap>,
    events: Events,
    reasons: Reasons,
    functions: Functions,
}

/// Makes recordings of a text: one, or one for each that it was printed of.
///
/// # Errors
/// When it holds no trace.
pub(crate) fn recordings(path: &Path, file: FileMap) -> Result<Vec<Recording>, OpenError> {
    let machines = Machines::read(&file);
    let (first, lack) = machines.refusal.reason();
    let machines = machines.traces();
    if machines.is_empty() {
        return Err(OpenError::new(path, OpenFault::Text { first, lack }));
    }
    let several = machines.len() > 1;
    let (host, file) = (machines::host(&machines), Arc::new(file));
    let guests: Vec<Guest> = (1_u64..)
        .zip(&machines)
        .enumerate()
        .filter(|(at, _)| several && *at != host)
        .map(|(_, (trace_id, machine))| Guest {
            name: machine.vm().to_owned(),
            trace_id,
            vcpus: Vec::new(),
        })
        .collect();
    let made = machines.into_iter().enumerate().map(|(at, machine)| {
        let path = machine.path(path, several);
        let mut made = recording(path, Arc::clone(&file), machine);
        made.info.trace_id = several.then_some(at as u64 + 1);
        if at == host {
            made.info.guests.clone_from(&guests);
        }
        made
    });
    Ok(made.collect())
}

fn recording(path: PathBuf, file: Arc<FileMap>, machine: Machine) -> Recording {
    let look = machine.look;
    let (info, correction, ending) = (look.info(), look.correction(), look.ending());
    let FirstLook { events, reasons, functions, cpus, comms, damage, .. } = look;
    let formats: FormatTable =
        events.list.iter().filter_map(|event| event.format(&reasons)).collect();
    let comms: String = comms.iter().map(|(thread, comm)| format!("{thread} {comm}\n")).collect();
    let symbols = functions.kallsyms().map_or(NameText::Missing, NameText::Here);
    let text = Arc::new(Text { file, events, reasons, functions });
    let stream = |((buffer, cpu), lines)| {
        let records = Arc::new(TextStream::new(cpu, Arc::clone(&text), lines));
        Stream { cpu, buffer, records: StreamRecords::Listed(records), cut: false }
    };
    let streams: Vec<Stream> = cpus.into_iter().map(stream).collect();
    let container = Container::Text(Box::new(format_texts(&text)));
    let ending = ending.unwrap_or_else(|| Ending::read(&path, &container, &streams, &info.buffers));
    let corrections = vec![correction; info.buffers.len().max(1)];
    Recording {
        path,
        files: Vec::new(),
        container,
        info,
        // How records are made here; that of the recorded kernel is not known.
        abi: Abi { order: ByteOrder::Little, long: LongSize::Eight },
        formats,
        streams,
        clock: Clock::new(corrections),
        names: Names::new(Cmdlines::parse(comms.as_bytes()), symbols, NameText::Missing),
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
