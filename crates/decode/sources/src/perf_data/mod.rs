//! Reads a perf.data as a recording: its tracepoints become records, its other samples are counted.
//!
//! A first pass over all records finds CPUs, samples, thread names and losses; a CPU's samples are
//! converted to records on demand (`stream.rs`). Records in a file are in the order in which perf
//! drained its buffers: those of a CPU are sorted by time. Compressed records are unpacked once,
//! into the spool (`bytes.rs`).

mod bytes;
mod first_look;
mod losses;
pub(crate) mod running_kernel;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use ftrace::eventfmt::EventFormat;
use perfdata::{BuildId, CpuMode, Events, Form, PerfData};
use raw_bytes::{Abi, LongSize};
use sys::FileMap;
use tracedat::{Cmdlines, Correction, Formats, TracingData};

pub(crate) use self::bytes::Bytes;
use self::first_look::{FirstLook, MAX_CPUS, NameSince};
use self::running_kernel::RecordedKernel;
use self::stream::PerfStream;
use crate::clock::Clock;
use crate::container::Container;
use crate::names::{Names, Text};
use crate::open_error::OpenError;
use crate::recording::{BufferInfo, Recording, RecordingInfo, Tracer};
use crate::stream::{Stream, StreamRecords};
use crate::{Damage, Ending, FormatTable};

/// Samples that are not tracepoints, by event and by the CPU mode that the kernel reports.
pub type SampleCounts = BTreeMap<String, [u64; CpuMode::ALL.len()]>;

/// Parts of a perf.data besides its tracepoints.
#[derive(Debug)]
pub(crate) struct PerfDataParts {
    /// The event formats in the file.
    pub(crate) formats: Formats,
    /// The records.
    pub(crate) bytes: Arc<Bytes>,
    pub(crate) events: Events,
    /// Build ids of executed files.
    pub(crate) build_ids: Arc<[(BuildId, String)]>,
}

/// Whether a file starts like a perf.data of any version.
pub(crate) fn is_perf_data(file: &[u8]) -> bool {
    [b"PERFILE2", b"2ELIFREP", b"PERFFILE", b"ELIFFREP"]
        .iter()
        .any(|magic| file.starts_with(*magic))
}

/// Whether a folder is the output of `perf record --threads`.
pub(crate) fn is_folder(path: &Path) -> bool {
    let mut magic = [0; 8];
    let read = File::open(path.join("data")).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && is_perf_data(&magic)
}

/// Makes a recording from a file whose header has been read.
///
/// # Errors
/// If its compressed records unpack to more than the spool's limit.
pub(crate) fn recording(
    path: &Path,
    file: FileMap,
    perf: &PerfData,
) -> Result<Recording, OpenError> {
    let mut damage: Vec<Damage> = perf.damage.iter().cloned().map(Damage::from).collect();
    let tracing = tracing_data(perf, &file, &mut damage);
    let bytes = Bytes::new(path, file, perf, &mut damage)?;
    let mut look = FirstLook::new(&perf.events, &bytes);
    look.damage.splice(..0, damage);
    let (abi, formats, table) = match &tracing {
        Some(tracing) => (tracing.abi, tracing.formats.clone(), table(tracing, &mut look.damage)),
        None => {
            let abi = Abi { order: perf.order, long: LongSize::Eight };
            (abi, Formats::default(), FormatTable::default())
        }
    };
    let info = RecordingInfo { cut: look.cut(perf, bytes.file_len), ..info(perf, &mut look) };
    let is_counted = losses::are_counted(perf) && look.damage.is_empty();
    let counts = is_counted.then(|| look.lost_by_cpu());
    let FirstLook { cpus, comms, mut damage, kernel, .. } = look;
    if tracing.is_none() && !cpus.is_empty() {
        let what = "the formats of its tracepoints are missing; in a complete file they follow the records";
        damage.push(Damage::at(0, what.to_owned()));
    }
    let bytes = Arc::new(bytes);
    let stream = |(cpu, samples)| {
        let records = Arc::new(PerfStream::new(cpu, Arc::clone(&bytes), samples));
        Stream { cpu, buffer: 0, records: StreamRecords::Listed(records), cut: false }
    };
    let streams: Vec<Stream> = cpus.into_iter().map(stream).collect();
    let events = perf.events.clone();
    let build_ids = perf.features.build_ids.as_slice().into();
    let container =
        Container::PerfData(Box::new(PerfDataParts { formats, bytes, events, build_ids }));
    let ending = match counts {
        Some(counts) => Ending { counts, ..Ending::default() },
        None => Ending::read(path, &container, &streams, &info.buffers),
    };
    let tracing = tracing.as_ref();
    let here = |text: Option<&Vec<u8>>| text.map_or(Text::Missing, |text| Text::Here(text.clone()));
    let saved = tracing.map_or(&[][..], |tracing| &tracing.cmdlines);
    let names = Names::new(
        cmdlines(saved, &comms),
        match RecordedKernel::from_build_ids(&perf.features.build_ids, kernel) {
            Some(kernel) if tracing.is_none_or(|tracing| tracing.kallsyms.is_empty()) => {
                Text::OfRunningKernel(kernel)
            }
            _ => here(tracing.map(|tracing| &tracing.kallsyms)),
        },
        here(tracing.map(|tracing| &tracing.printk)),
    );
    Ok(Recording {
        path: path.to_owned(),
        files: Vec::new(),
        container,
        info,
        abi,
        formats: table,
        streams,
        clock: Clock::new(vec![Correction::identity()]),
        names,
        damage,
        ending,
        part: None,
        bytes_read: AtomicU64::new(0),
        lacks_events: AtomicBool::new(false),
    })
}

fn tracing_data(perf: &PerfData, file: &[u8], damage: &mut Vec<Damage>) -> Option<TracingData> {
    let range = perf.features.tracing_data?;
    match TracingData::parse(range.bytes_in(file), range.offset) {
        Ok(tracing) => {
            damage.extend(tracing.damage.iter().cloned().map(Damage::from));
            Some(tracing)
        }
        Err(error) => {
            damage.push(Damage::at(range.offset, format!("formats of tracepoints: {error}")));
            None
        }
    }
}

fn table(tracing: &TracingData, damage: &mut Vec<Damage>) -> FormatTable {
    let mut table = FormatTable::default();
    for event in &tracing.formats.events {
        match EventFormat::parse(&event.system, event.text.as_bytes()) {
            Ok(format) => table.insert(format),
            Err(error) => {
                damage.push(Damage::at(0, format!("a format of {}: {error}", event.system)));
            }
        }
    }
    table
}

fn info(perf: &PerfData, look: &mut FirstLook) -> RecordingInfo {
    let features = &perf.features;
    let parts = [&features.hostname, &features.os_release, &features.arch];
    let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
    let is_pipe = perf.form == Form::Pipe;
    RecordingInfo {
        format: if is_pipe { "perf.data of a pipe" } else { "perf.data" }.to_owned(),
        compression: features.compressed.then(|| "zstd".to_owned()),
        recorder: features.version.as_ref().map(|version| format!("perf {version}")),
        clock: Some(clock(perf).to_owned()),
        uname: (!parts.is_empty()).then(|| parts.join(" ")),
        buffers: vec![BufferInfo::default()],
        cpu_count: features.cpus_available.filter(|&cpus| cpus > 0 && cpus <= MAX_CPUS),
        tracer: Tracer::Perf,
        samples: std::mem::take(&mut look.samples),
        ..RecordingInfo::default()
    }
}

/// The clock of the events, with the name that tracefs uses; perf's default is the scheduler's
/// clock.
fn clock(perf: &PerfData) -> &'static str {
    let attrs = perf.events.list().iter().map(|event| &event.attr);
    let id = attrs.filter(|attr| attr.flags.use_clock_id()).map(|attr| attr.clock_id).next();
    // `CLOCK_…` of include/uapi/linux/time.h.
    match id {
        Some(0) => "realtime",
        Some(1) => "mono",
        Some(4) => "mono_raw",
        Some(7) => "boot",
        Some(11) => "tai",
        _ => "perf",
    }
}

/// Names from the kernel's list, overridden by names in the recording.
fn cmdlines(saved: &[u8], comms: &HashMap<u32, NameSince>) -> Cmdlines {
    let mut text = saved.to_vec();
    if !text.is_empty() && !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    for (thread, comm) in comms {
        let comm = comm.name.replace('\n', " ");
        text.extend_from_slice(format!("{thread} {comm}\n").as_bytes());
    }
    Cmdlines::parse(&text)
}
