//! Reads a trace.dat file as a recording.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use ftrace::eventfmt::EventFormat;
use ftrace::ringbuf::PageLayout;
use raw_bytes::Abi;
use sys::FileMap;
use tracedat::{Align, Buffer, Cmdlines, Correction, TraceDat};

use crate::clock::Clock;
use crate::container::Container;
use crate::names::{Names, Text};
use crate::recording::Recording;
use crate::stream::{Pages, Stream, StreamRecords};
use crate::{CutFile, Damage, Ending, FormatTable};

/// Makes a recording from a parsed file.
pub(crate) fn recording(path: &Path, file: FileMap, dat: TraceDat) -> Recording {
    let mut damage: Vec<Damage> = dat.damage.iter().cloned().map(Damage::from).collect();
    let formats = formats(&dat, &mut damage);
    let abi = dat.abi();
    let mut streams = Vec::new();
    for (buffer_at, buffer) in dat.buffers.iter().enumerate() {
        add_streams(&file, abi, buffer_at, buffer, &mut streams, &mut damage);
    }
    let corrections =
        dat.buffers.iter().map(|buffer| Correction::new(&dat, buffer, Align::ToAnyPeer)).collect();
    let cmdlines = dat.cmdlines.as_ref().and_then(|section| match section.read(&file) {
        Ok(text) => Some(Cmdlines::parse(&text)),
        Err(bad) => {
            damage.push(bad.into());
            None
        }
    });
    damage.extend(symbols_damage(&file, &dat));
    let mut info = Container::info(&dat);
    info.cut = CutFile::from_damages(&dat.damage, file.len());
    let names = Names::new(
        cmdlines.unwrap_or_default(),
        Text::in_file(dat.kallsyms.as_ref()),
        Text::in_file(dat.printk.as_ref()),
    );
    let container = Container::TraceDat(Box::new(dat));
    let ending = Ending::read(path, &container, &streams, &info.buffers);
    Recording {
        path: path.to_owned(),
        files: vec![file],
        container,
        info,
        abi,
        formats,
        streams,
        clock: Clock::new(corrections),
        names,
        damage,
        ending,
        part: None,
        bytes_read: AtomicU64::new(0),
        lacks_events: AtomicBool::new(false),
    }
}

/// Damage in the kernel's symbol table. The table is read on demand, and symbols that it lacks are
/// shown as addresses, so the damage is reported in advance.
fn symbols_damage(file: &FileMap, dat: &TraceDat) -> Option<Damage> {
    let section = dat.kallsyms.as_ref()?;
    let what = match section.read(file) {
        Err(bad) => bad.what,
        Ok(text) if are_symbols(&text) => return None,
        Ok(_) => "some of its lines have no address".to_owned(),
    };
    let what = format!("the kernel's symbol table: {what}; functions are shown by address");
    Some(Damage::at(section.offset, what))
}

/// Distance between checked lines of a symbol table, in bytes: a table has megabytes.
const SYMBOLS_STEP: usize = 4096;

/// Whether a text is a symbol table: ASCII lines that start with an address.
fn are_symbols(text: &[u8]) -> bool {
    let places = (0..text.len()).step_by(SYMBOLS_STEP).filter_map(|at| text.get(at..));
    let lines = places.filter_map(|rest| rest.split(|&byte| byte == b'\n').nth(1));
    text.is_ascii() && lines.take_while(|line| !line.is_empty()).all(is_symbol)
}

fn is_symbol(line: &[u8]) -> bool {
    let address = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    address >= 8 && line.get(address) == Some(&b' ')
}

fn formats(dat: &TraceDat, damage: &mut Vec<Damage>) -> FormatTable {
    let ftrace = dat.formats.ftrace.iter().map(|text| ("ftrace", text));
    let events = dat.formats.events.iter().map(|format| (&*format.system, &format.text));
    let mut table = FormatTable::default();
    for (system, text) in ftrace.chain(events) {
        match EventFormat::parse(system, text.as_bytes()) {
            Ok(format) => table.insert(format),
            Err(error) => damage.push(Damage::at(0, format!("a format of {system}: {error}"))),
        }
    }
    table
}

fn add_streams(
    file: &FileMap,
    abi: Abi,
    buffer_at: usize,
    buffer: &Buffer,
    streams: &mut Vec<Stream>,
    damage: &mut Vec<Damage>,
) {
    let page_size = buffer.page_size as usize;
    let layout = PageLayout { order: abi.order, commit: abi.long, page_size };
    // Hosts can have hundreds of CPUs without events, which get no stream.
    for cpu in &buffer.cpus {
        let chunks = cpu.chunks(file);
        let cut = cpu.data.cut || !chunks.damage.is_empty();
        let on_cpu = |bad: tracedat::Damage| Damage::on_cpu(cpu.cpu, bad.offset, bad.what);
        damage.extend(chunks.damage.into_iter().map(on_cpu));
        if cut || !chunks.list.is_empty() {
            let records = StreamRecords::Pages(Pages { file: 0, layout, chunks: chunks.list });
            streams.push(Stream { cpu: cpu.cpu, buffer: buffer_at, records, cut });
        }
    }
}
