//! Reads text from trace-cmd report, perf script or the kernel's `trace` file as a recording.
//!
//! A first pass over all lines finds recordings, CPUs, events with their fields, and the CPU of
//! each line (`machines.rs`, `first_look.rs`); a CPU's lines are converted to records on demand
//! (`stream.rs`). Each event gets a format of its own, as a kernel would write it (`layout.rs`):
//! fields come from the line (`template.rs`, `known.rs`), and one more field has the full line,
//! which the print fmt prints. Text has no numbers of exit reasons: names are numbered in order of
//! appearance (`reasons.rs`). It has no function addresses either: names get synthetic ones
//! (`functions.rs`). Lines of the function_graph tracer look like source code, and are converted to
//! the events behind them (`graph.rs`).

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

/// Maximum length of a line: no kernel page holds more.
const MAX_LINE_BYTES: usize = 2048;
/// Bytes to check whether a file is text.
const FIRST_BYTES: usize = 64 << 10;

/// First byte of a trace.dat.
const TRACE_DAT: u8 = 0x17;

/// Whether a file starts like text. Only reading it shows whether it has a trace.
pub(crate) fn is_text(file: &[u8]) -> bool {
    let first = file.get(..FIRST_BYTES).unwrap_or(file);
    first.first() != Some(&TRACE_DAT) && !first.iter().any(|&byte| byte < b'\t' || byte == 0x7f)
}

/// Whether a binary file looks like the kernel's output with the option `bin`: an event's numbers
/// in memory format, then `type: 372` instead of its name.
pub(crate) fn is_printed_in_binary(file: &[u8]) -> bool {
    const TYPE: &[u8] = b"type: ";
    let first = file.get(..FIRST_BYTES).unwrap_or(file);
    let types = first.windows(TYPE.len()).filter(|bytes| *bytes == TYPE).take(2).count();
    file.starts_with(b"# tracer: ") || types == 2
}

/// A line with its offset.
#[derive(Clone, Copy, Debug)]
struct LineAt<'f> {
    offset: usize,
    bytes: &'f [u8],
}

impl<'f> LineAt<'f> {
    /// The line at an offset, without its line break.
    fn at(file: &'f [u8], offset: usize) -> Option<Self> {
        let rest = file.get(offset..).filter(|rest| !rest.is_empty())?;
        let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        Some(Self { offset, bytes: rest.get(..end)? })
    }

    /// The line as text, up to the maximum length.
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

/// A recording of a text, after the first pass over its lines.
#[derive(Debug)]
struct Text {
    file: Arc<FileMap>,
    events: Events,
    reasons: Reasons,
    functions: Functions,
}

/// Makes recordings from a text: one, or one per recording that was printed to it.
///
/// # Errors
/// If it has no trace.
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
        // The ABI of records made here; that of the recorded kernel is unknown.
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
/// The format texts as in a trace.dat.
fn format_texts(text: &Text) -> Formats {
    let event = |event: &Event| EventText {
        system: event.system().into(),
        text: event.exported_format_text(&text.reasons),
    };
    let events = text.events.list.iter().map(event).collect();
    let (header_page, header_event) = (HEADER_PAGE.to_owned(), HEADER_EVENT.to_owned());
    Formats { header_page, header_event, events, ..Formats::default() }
}

/// The page layout for exported records, in the kernel's format.
pub(crate) const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:8176;\tsigned:1;\n";
/// The record header layout for exported records.
pub(crate) const HEADER_EVENT: &str = "# compressed entry header\n\
    \ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\
    \tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\
    \tdata max type_len  == 28\n";
