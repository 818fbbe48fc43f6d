//! Reads a trace in the Common Trace Format as a recording: from LTTng, barectf, or `perf data
//! convert --to-ctf`.
//!
//! The metadata describes the events; each gets a format of its own, as a kernel would write it,
//! with the kernel's names (`aliases.rs`, `shape.rs`). All packet headers are read on opening;
//! packets are converted to records on demand (`stream.rs`). Thread ids come from contexts,
//! otherwise from the switches on the CPU (`threads.rs`); CPUs come from events, otherwise from
//! packets (`cpus.rs`).

mod aliases;
mod clocks;
mod comms;
mod cpus;
mod folder;
mod format;
mod parts;
mod shape;
mod stream;
mod symbols;
mod threads;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use ::ctf::{ByteOrder, FieldType, Layout, Packet, Packets};
use ftrace::eventfmt::EventFormat;
use raw_bytes::{Abi, LongSize, counted};
use sys::FileMap;
use tracedat::{Correction, EventFormat as EventText, Formats};

use self::clocks::Clocks;
use self::comms::Comms;
use self::cpus::Parted;
pub(crate) use self::folder::trace;
use self::parts::{Lost, Part};
use self::shape::{Of, Shape};
use self::stream::{CtfStream, Trace};
use crate::clock::Clock;
use crate::container::Container;
use crate::names::Names;
use crate::open_error::{OpenError, OpenFault};
use crate::recording::{BufferInfo, Recording, RecordingInfo, Tracer};
use crate::stream::{Stream, StreamRecords};
use crate::text::{HEADER_EVENT, HEADER_PAGE};
use crate::{Damage, Ending, FormatTable, KernelCount};

/// Maximum size of metadata: that of all kernel events has 2 MB.
const MAX_METADATA_BYTES: usize = 256 << 20;
/// Upper bound of CPU numbers; no kernel has more.
const MAX_CPUS: u64 = 1 << 14;

/// Whether a file is part of a trace, so that its folder should be opened instead.
pub(crate) fn is_part(file: &[u8]) -> bool {
    ::ctf::is_metadata(file) || ::ctf::is_stream(file)
}

/// Opens the trace in the folder `dir`; messages call it `path`.
///
/// # Errors
/// If its files cannot be read, or its metadata cannot be parsed.
pub(crate) fn open(path: &Path, dir: &Path) -> Result<Recording, OpenError> {
    let failed = |what: String| OpenError::new(dir, OpenFault::Refused(what));
    let metadata = FileMap::open(&folder::metadata(dir))?;
    if metadata.len() > MAX_METADATA_BYTES {
        return Err(failed(
            "its metadata is longer than 256 MiB; no tracer writes that much".into(),
        ));
    }
    let layout = Layout::parse(&metadata)
        .map_err(|source| OpenError::new(&folder::metadata(dir), OpenFault::Ctf(source)))?;
    if layout.streams.iter().all(|stream| stream.events.is_empty()) {
        return Err(failed(
            "the metadata of this CTF trace describes no event: it is cut short or damaged; copy \
            the trace again"
                .into(),
        ));
    }
    let names = folder::streams(dir).map_err(|error| failed(error.to_string()))?;
    if names.is_empty() {
        return Err(failed(
            "a CTF trace without streams: was it recorded to another folder?".into(),
        ));
    }
    let mut files = Vec::new();
    for name in &names {
        files.push(FileMap::open(name)?);
    }
    if files.iter().all(|file| file.is_empty()) {
        return Err(failed(
            "a CTF trace whose streams are empty; was the recording stopped before it wrote anything?".into(),
        ));
    }
    Ok(recording(path, layout, files, &names))
}

/// The packets of a stream, each with the index of its file.
type Found = Vec<(usize, Packet)>;

/// Identifies a stream.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct StreamKey {
    class: usize,
    cpu: Option<u64>,
    instance: Option<u64>,
    /// The file, if packets have neither a stream nor a CPU.
    file: Option<usize>,
}

fn packets(
    layout: &Layout,
    files: &[FileMap],
    damage: &mut Vec<Damage>,
) -> BTreeMap<StreamKey, Found> {
    let mut streams: BTreeMap<StreamKey, Found> = BTreeMap::new();
    for (file, bytes) in files.iter().enumerate() {
        for packet in Packets::new(layout, bytes) {
            match packet {
                Ok(packet) => {
                    if packet.is_cut {
                        let what = "the file ends within a packet, whose rest is missing";
                        damage.push(Damage::at(packet.offset, what.to_owned()));
                    }
                    let (class, cpu, instance) = (packet.stream, packet.cpu, packet.instance);
                    let cpu = cpu.filter(|&cpu| cpu < MAX_CPUS);
                    let is_named = cpu.is_some() || instance.is_some();
                    let key = StreamKey { class, cpu, instance, file: (!is_named).then_some(file) };
                    streams.entry(key).or_default().push((file, packet));
                }
                Err(bad) => damage.push(Damage::at(bad.offset, bad.what)),
            }
        }
    }
    streams
}

/// The byte order of most numbers in a trace.
fn order_of(layout: &Layout) -> ByteOrder {
    if layout.version == "1.8" {
        return layout.order;
    }
    let heads = layout.streams.iter().filter_map(|stream| stream.event_header.as_ref());
    let payloads = layout.streams.iter().flat_map(|stream| &stream.events);
    let payloads = payloads.filter_map(|event| event.payload.as_ref());
    let fields = heads.chain(payloads).flat_map(|structure| &structure.fields);
    let orders = fields.filter_map(|field| match &field.field_type {
        FieldType::Integer(integer) if integer.bits > 8 => Some(integer.order),
        _ => None,
    });
    let (big, little): (Vec<_>, Vec<_>) = orders.partition(|&order| order == ByteOrder::Big);
    if big.len() > little.len() { ByteOrder::Big } else { ByteOrder::Little }
}

/// The shapes of all events, by stream class and event class.
fn shapes(
    layout: &Layout,
    order: ByteOrder,
    damage: &mut Vec<Damage>,
    notes: &mut Vec<String>,
) -> Vec<Vec<Shape>> {
    let tracer = layout.env("tracer_name").unwrap_or_default();
    let (mut first, mut more, mut all) = (1_usize, 0, Vec::new());
    for stream in &layout.streams {
        let exits_have_vcpus = stream.events.iter().any(|event| {
            let fields = event.payload.iter().flat_map(|payload| &payload.fields);
            event.name == "kvm_x86_exit" && fields.into_iter().any(|field| field.name == "vcpu_id")
        });
        let make = |has_threads| -> Vec<Shape> {
            let context = Of { tracer, order, has_threads, exits_have_vcpus };
            let ids = (first..).map_while(|id| u16::try_from(id).ok());
            ids.zip(&stream.events).map(|(id, event)| Shape::new(id, event, &context)).collect()
        };
        let mut shapes = make(true);
        let is_of_kvm = shapes.iter().any(|shape| shape.system == "kvm");
        if is_of_kvm && !shapes.iter().any(Shape::says_thread) {
            shapes = make(false);
            notes.push(NO_THREADS.to_owned());
        }
        first += shapes.len();
        more += stream.events.len() - shapes.len();
        all.push(shapes);
    }
    if more > 0 {
        let more = counted(more, "event exceeds", "events exceed");
        damage.push(Damage::at(0, more + " the 65,535 that can be distinguished"));
    }
    all
}

/// The note for a trace whose exits cannot be paired with entries.
const NO_THREADS: &str = "its events have no thread ids, and it has no sched_switch that shows which thread \
    ran, so exits cannot be paired with entries; record with `lttng add-context -k -t tid`, or sched_switch in \
    the same channel";

/// The note for a trace whose packets do not name their CPU.
const NO_CPUS: &str = "its streams do not name their CPU: each is shown as a separate CPU";

fn format_table(shapes: &[Vec<Shape>], damage: &mut Vec<Damage>) -> FormatTable {
    let mut table = FormatTable::default();
    for shape in shapes.iter().flatten() {
        match EventFormat::parse(&shape.system, shape.text.as_bytes()) {
            Ok(format) => table.insert(format),
            Err(error) => {
                let what = format!("the format of {}:{}: {error}", shape.system, shape.name);
                damage.push(Damage::at(0, what));
            }
        }
    }
    table
}

/// The format texts as in a trace.dat.
fn format_texts(shapes: &[Vec<Shape>]) -> Formats {
    let event = |shape: &Shape| EventText {
        system: shape.system.as_str().into(),
        text: shape.text.clone(),
    };
    let events = shapes.iter().flatten().map(event).collect();
    let (header_page, header_event) = (HEADER_PAGE.to_owned(), HEADER_EVENT.to_owned());
    Formats { header_page, header_event, events, ..Formats::default() }
}

fn info(layout: &Layout, buffers: Vec<BufferInfo>, notes: Vec<String>) -> RecordingInfo {
    let env = |name: &str| layout.env(name).filter(|text| !text.is_empty());
    let number = |name: &str| {
        layout.env.iter().find(|(key, _)| key == name).and_then(|(_, value)| match value {
            ::ctf::EnvValue::Number(number) => Some(*number),
            ::ctf::EnvValue::Text(_) => None,
        })
    };
    let version = [number("tracer_major"), number("tracer_minor"), number("tracer_patchlevel")];
    let version: Vec<String> = version.iter().flatten().map(ToString::to_string).collect();
    let version = version.join(".");
    let recorder = env("tracer_name").map(|name| format!("{name} {version}").trim_end().to_owned());
    let host = env("hostname").or_else(|| env("host"));
    let release = env("kernel_release").or_else(|| env("release"));
    let parts: Vec<&str> =
        [env("sysname"), host, release, env("machine")].into_iter().flatten().collect();
    RecordingInfo {
        format: format!("CTF {}", layout.version),
        recorder,
        clock: layout.clocks.first().map(|clock| clock_name(&clock.name).to_owned()),
        uname: (!parts.is_empty()).then(|| parts.join(" ")),
        buffers,
        tracer: tracer(layout),
        notes,
        ..RecordingInfo::default()
    }
}

/// The tracer, from the environment in the metadata.
fn tracer(layout: &Layout) -> Tracer {
    let name = layout.env("tracer_name").unwrap_or_default();
    let is_of_kernel = layout.env("domain").is_none_or(|domain| domain == "kernel");
    match (name, is_of_kernel) {
        ("perf", _) => Tracer::Perf,
        (name, true) if name.starts_with("lttng") => Tracer::Lttng,
        (name, false) if name.starts_with("lttng") => Tracer::LttngOfPrograms,
        (_, true) => Tracer::Kernel,
        (_, false) => Tracer::Program,
    }
}

/// The clock of the events, with the name that tracefs uses. LTTng's offset turns its monotonic
/// clock into the real-time clock.
fn clock_name(name: &str) -> &str {
    match name {
        "monotonic" => "mono",
        "perf_clock" => "perf",
        other => other,
    }
}

/// The channel of a stream file: LTTng names its files after the channel and the CPU.
fn channel(path: Option<&std::path::PathBuf>) -> String {
    let name = path.and_then(|path| path.file_name()).unwrap_or_default().to_string_lossy();
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
    if plain.is_empty() { name.into_owned() } else { plain.to_owned() }
}

/// The streams of a channel, which form a buffer.
#[derive(Default)]
struct Channel {
    name: String,
    streams: Vec<Parted>,
    /// Whether events have their CPU.
    says_cpus: bool,
    /// Lost events by the CPU of packets, and whether some packets lack the count.
    lost: Vec<(u32, u64)>,
    is_uncounted: bool,
}

/// The channels of a trace, in the order of their streams.
fn channels(
    found: BTreeMap<StreamKey, Found>,
    trace: &Trace,
    names: &[std::path::PathBuf],
    is_lttng: bool,
) -> Vec<Channel> {
    let mut channels: Vec<Channel> = Vec::new();
    for (number, (key, packets)) in found.into_iter().enumerate() {
        let name = channel(packets.first().and_then(|(file, _)| names.get(*file)));
        let at = channels.iter().position(|channel| channel.name == name).unwrap_or_else(|| {
            channels.push(Channel { name, ..Channel::default() });
            channels.len() - 1
        });
        let Some(channel) = channels.get_mut(at) else { continue };
        let cpu = key.cpu.and_then(|cpu| u32::try_from(cpu).ok());
        let (parts, lost) = parts::ordered(packets, is_lttng);
        let parts = parts::parted(parts, &trace.layout, &trace.files);
        let Lost { events, is_counted } = lost;
        channel.is_uncounted |= !is_counted;
        let shown = cpu.unwrap_or(u32::try_from(number).unwrap_or(u32::MAX));
        channel.lost.push((shown, events));
        let says_cpus = cpus::are_said(&trace.shapes, key.class);
        channel.says_cpus |= says_cpus;
        let cpu = if says_cpus { cpu } else { Some(shown) };
        channel.streams.push(Parted { cpu, parts });
    }
    channels
}

impl Channel {
    /// Its parts by the CPUs of events, otherwise of packets, with the number of lost events.
    fn by_cpu(&mut self, trace: &Trace) -> Vec<(u32, Vec<Part>, u64)> {
        let parts_by_cpu = if self.says_cpus { cpus::by_cpu(trace, &self.streams) } else { None };
        let Some(parts_by_cpu) = parts_by_cpu else {
            let streams = std::mem::take(&mut self.streams).into_iter().zip(&self.lost);
            return streams.map(|(stream, &(cpu, lost))| (cpu, stream.parts, lost)).collect();
        };
        // The channel lost these events on an unknown CPU: one CPU gets the count.
        let mut lost = self.lost.iter().map(|(_, lost)| *lost).fold(0, u64::saturating_add);
        let with_lost = |(cpu, parts)| (cpu, parts, std::mem::take(&mut lost));
        parts_by_cpu.into_iter().map(with_lost).collect()
    }
}

fn recording(
    path: &Path,
    layout: Layout,
    files: Vec<FileMap>,
    names: &[std::path::PathBuf],
) -> Recording {
    let (mut damage, mut notes) = (Vec::new(), Vec::new());
    let order = order_of(&layout);
    let shapes = shapes(&layout, order, &mut damage, &mut notes);
    let table = format_table(&shapes, &mut damage);
    let formats = format_texts(&shapes);
    let found = packets(&layout, &files, &mut damage);
    let is_without = |key: &StreamKey| key.cpu.is_none() && !cpus::are_said(&shapes, key.class);
    if found.keys().any(is_without) {
        notes.push(NO_CPUS.to_owned());
    }
    let (clocks, note) = Clocks::new(&layout, &files, found.values());
    notes.extend(note);
    let is_lttng = matches!(tracer(&layout), Tracer::Lttng | Tracer::LttngOfPrograms);
    let trace = Arc::new(Trace { layout, files, shapes, order, clocks });
    let mut channels = channels(found, &trace, names, is_lttng);
    let (mut streams, mut sources, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    for (buffer, channel) in channels.iter_mut().enumerate() {
        for (cpu, parts, lost) in channel.by_cpu(&trace) {
            counts.push((buffer, KernelCount { cpu, lost, ..KernelCount::default() }));
            let source = Arc::new(CtfStream::new(cpu, Arc::clone(&trace), parts));
            sources.push(Arc::clone(&source));
            streams.push(Stream {
                cpu,
                buffer,
                records: StreamRecords::Listed(source),
                cut: false,
            });
        }
    }
    let is_counted = !channels.iter().any(|channel| channel.is_uncounted);
    let mut channels: Vec<String> = channels.into_iter().map(|channel| channel.name).collect();
    // A single channel is the recording's only buffer, and needs no name.
    if channels.len() <= 1 {
        channels = vec![String::new()];
    }
    for (buffer, count) in &mut counts {
        count.buffer = channels.get(*buffer).cloned().unwrap_or_default();
    }
    let named = |name: String| BufferInfo { name, ..BufferInfo::default() };
    let info = info(&trace.layout, channels.into_iter().map(named).collect(), notes);
    let container = Container::Ctf(Box::new(formats));
    let ending = if is_counted && damage.is_empty() {
        let counts = counts.into_iter().map(|(_, count)| count).collect();
        Ending { counts, ..Ending::default() }
    } else {
        Ending::read(path, &container, &streams, &info.buffers)
    };
    let corrections = info.buffers.iter().map(|_| Correction::identity()).collect();
    Recording {
        path: path.to_owned(),
        files: Vec::new(),
        container,
        info,
        abi: Abi { order, long: LongSize::Eight },
        formats: table,
        streams,
        clock: Clock::new(corrections),
        names: Names::of_events(Arc::new(Comms { trace, streams: sources })),
        damage,
        ending,
        part: None,
        bytes_read: AtomicU64::new(0),
        lacks_events: AtomicBool::new(false),
    }
}
