//! A folder with raw ring-buffer pages, as from virtio-trace or `cat trace_pipe_raw`.
//!
//! ```text
//! DIR/events/header_page, DIR/events/SYSTEM/EVENT/format   copied from the guest's tracefs
//! DIR/*cpu0*, DIR/*cpu1*, …                                pages, one file per CPU
//! DIR/per_cpu/cpu0/trace_pipe_raw, …                       the same, in the layout of tracefs
//! DIR/per_cpu/cpu0/stats, …                                the kernel's counts, read at the end
//! DIR/kallsyms, DIR/printk_formats, DIR/saved_cmdlines, DIR/trace_clock   optional
//! ```

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};

use ftrace::eventfmt::{EventFormat, HeaderPage};
use ftrace::ringbuf::{Page, PageLayout};
use raw_bytes::{Abi, ByteOrder, LongSize};
use sys::FileMap;
use tracedat::{Chunk, Cmdlines, Compression, Correction};

use crate::clock::Clock;
use crate::container::Container;
use crate::names::{Names, Text};
use crate::open_error::{OpenError, OpenFault};
use crate::recording::{BufferInfo, Recording, RecordingInfo};
use crate::session_member::SessionMember;
use crate::stream::{Pages, Stream, StreamRecords};
use crate::{Damage, Ending, FormatTable};

/// Bytes of pages per block.
const BLOCK_BYTES: usize = 256 << 10;
/// Page size if `header_page` has none: the default of every kernel so far.
const DEFAULT_PAGE_SIZE: usize = 4096;
/// Maximum size of a `format` file.
pub(crate) const MAX_TEXT_BYTES: u64 = 1 << 20;
/// Maximum size of a symbol table, which usually has megabytes.
const MAX_KALLSYMS_BYTES: u64 = 256 << 20;

/// Opens the folder `dir`.
pub(crate) fn open(dir: &Path) -> Result<Recording, OpenError> {
    let folder = |what: &str| OpenError::new(dir, OpenFault::Refused(what.to_owned()));
    let events = dir.join("events");
    if !events.is_dir() {
        return Err(folder(
            "not a recording: the folder needs an events folder next to its pages, copied from the tracefs of \
             the recorded machine",
        ));
    }
    let mut damage = Vec::new();
    let header = read_text(&events.join("header_page"), MAX_TEXT_BYTES)
        .and_then(|text| HeaderPage::parse(&text).ok());
    if header.is_none() {
        damage
            .push(Damage::at(0, "events/header_page is missing; 64-bit pages are assumed".into()));
    }
    let formats = formats(&events, &mut damage);
    let pages = page_files(dir);
    // A recorder that is killed early leaves formats but no pages.
    if pages.is_empty() && SessionMember::from_path(dir).is_none() {
        return Err(folder("no pages: no file has cpu and a number in its name"));
    }
    let long = header.as_ref().map_or(LongSize::Eight, |page| page.long);
    let page_size = header.as_ref().map_or(DEFAULT_PAGE_SIZE, page_size);
    let mut files = Vec::new();
    for (_, path) in &pages {
        files.push(FileMap::open(path)?);
    }
    if files.iter().all(|file| file.is_empty()) && SessionMember::from_path(dir).is_none() {
        return Err(folder(
            "all its page files are empty; was the recording stopped before it wrote anything?",
        ));
    }
    let order = byte_order(&files, long, page_size);
    let layout = PageLayout { order, commit: long, page_size };
    let streams: Vec<Stream> = pages
        .iter()
        .zip(&files)
        .enumerate()
        .filter(|(_, (_, file))| !file.is_empty())
        .map(|(at, ((cpu, _), file))| stream(at, *cpu, file, layout))
        .collect();
    let clock = read_text(&dir.join("trace_clock"), MAX_TEXT_BYTES).and_then(|text| {
        let text = String::from_utf8_lossy(&text).into_owned();
        Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
    });
    let text = |name, max| read_text(&dir.join(name), max).unwrap_or_default();
    let names = Names::new(
        Cmdlines::parse(&text("saved_cmdlines", MAX_TEXT_BYTES)),
        Text::Here(text("kallsyms", MAX_KALLSYMS_BYTES)),
        Text::Here(text("printk_formats", MAX_TEXT_BYTES)),
    );
    let corrections = vec![Correction::of_clock(clock.as_deref())];
    let container = Container::RawPages;
    let page_size = u32::try_from(page_size).ok();
    let info = RecordingInfo {
        format: "ring-buffer pages".to_owned(),
        clock,
        buffers: vec![BufferInfo { page_size, ..BufferInfo::default() }],
        // A file without pages belongs to a CPU without events.
        cpu_count: pages.iter().map(|(cpu, _)| cpu.saturating_add(1)).max(),
        ..RecordingInfo::default()
    };
    let ending = Ending::read(dir, &container, &streams, &info.buffers);
    Ok(Recording {
        path: dir.to_owned(),
        files,
        container,
        info,
        abi: Abi { order, long },
        formats,
        streams,
        clock: Clock::new(corrections),
        names,
        damage,
        ending,
        part: None,
        bytes_read: AtomicU64::new(0),
        lacks_events: AtomicBool::new(false),
    })
}

/// The size of a page: header and data.
fn page_size(header: &HeaderPage) -> usize {
    let size = u64::from(header.data_offset) + u64::from(header.data_size);
    usize::try_from(size).ok().filter(|size| size.is_power_of_two()).unwrap_or(DEFAULT_PAGE_SIZE)
}

/// The content of a small file; `None` if it is missing or too long.
pub(crate) fn read_text(path: &Path, max: u64) -> Option<Vec<u8>> {
    let metadata = fs::metadata(path).ok()?;
    (metadata.is_file() && metadata.len() <= max).then(|| fs::read(path).ok()).flatten()
}

fn formats(events: &Path, damage: &mut Vec<Damage>) -> FormatTable {
    let mut table = FormatTable::default();
    for system in sorted_entries(events) {
        let name = system.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for event in sorted_entries(&system) {
            let path = event.join("format");
            let Some(text) = read_text(&path, MAX_TEXT_BYTES) else { continue };
            match EventFormat::parse(&name, &text) {
                Ok(format) => table.insert(format),
                Err(error) => damage.push(Damage::at(0, format!("{}: {error}", path.display()))),
            }
        }
    }
    table
}

/// The entries of a folder, sorted by name; empty if it is not a folder.
pub(crate) fn sorted_entries(dir: &Path) -> Vec<PathBuf> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotADirectory => return Vec::new(),
        Err(_) => return Vec::new(),
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The files with pages, by CPU.
fn page_files(dir: &Path) -> Vec<(u32, PathBuf)> {
    let in_tracefs_layout = sorted_entries(&dir.join("per_cpu"))
        .into_iter()
        .map(|cpu| (cpu.clone(), cpu.join("trace_pipe_raw")));
    let flat = sorted_entries(dir).into_iter().map(|path| (path.clone(), path));
    let mut files: Vec<(u32, PathBuf)> = flat
        .chain(in_tracefs_layout)
        .filter(|(_, file)| file.is_file())
        .filter_map(|(named, file)| Some((cpu_number(&named)?, file)))
        .collect();
    files.sort();
    files
}

/// The number after `cpu` in a file name.
fn cpu_number(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let (_, from) = name.rsplit_once("cpu")?;
    let end = from.find(|c: char| !c.is_ascii_digit()).unwrap_or(from.len());
    from.get(..end)?.parse().ok()
}

/// Raw pages do not state their byte order; this selects the one with plausible headers.
fn byte_order(files: &[FileMap], commit: LongSize, page_size: usize) -> ByteOrder {
    let sound = |order| {
        let layout = PageLayout { order, commit, page_size };
        let pages = files.iter().filter_map(|file| file.get(..page_size.min(file.len())));
        let filled = pages.filter(|page| !page.is_empty());
        filled
            .filter(|page| Page::parse(page, &layout).is_ok_and(|page| page.data_len() > 0))
            .count()
    };
    if sound(ByteOrder::Big) > sound(ByteOrder::Little) {
        ByteOrder::Big
    } else {
        ByteOrder::Little
    }
}

fn stream(file_at: usize, cpu: u32, file: &FileMap, layout: PageLayout) -> Stream {
    let step = BLOCK_BYTES.next_multiple_of(layout.page_size.max(1));
    let chunks = (0..file.len())
        .step_by(step)
        .map(|offset| {
            let size = step.min(file.len() - offset) as u32;
            let compression = Compression::None;
            Chunk { offset: offset as u64, stored: size, size, compression }
        })
        .collect();
    let records = StreamRecords::Pages(Pages { file: file_at, layout, chunks });
    Stream { cpu, buffer: 0, records, cut: false }
}
