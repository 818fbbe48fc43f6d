//! A perf.data as a recording: its tracepoints as records, its other samples counted.
//!
//! A first look at all records finds CPUs, samples, threads' names and losses; a CPU's samples become
//! records when they are asked for (`stream.rs`). Records of a file are in the order in which perf emptied its
//! buffers: those of a CPU are put into the order of their times.

mod stream;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use eventfmt::EventFormat;
use perfdata::{CpuMode, EventType, PerfData, Record, RecordKind, Sample};
use raw_bytes::{Abi, LongSize};
use sys::FileMap;
use tracedat::{Cmdlines, Correction, Formats, TracingData};

use self::stream::{CpuSamples, PerfStream};
use crate::clock::Clock;
use crate::container::Container;
use crate::names::{Names, Text};
use crate::recording::{BufferInfo, Recording, RecordingInfo};
use crate::stream::{Stream, StreamRecords};
use crate::{Damage, Ending, FormatTable};

/// Threads whose names are kept, at most.
const MOST_THREADS: usize = 1 << 20;
/// A CPU's number is less: the kernel has no more.
const MOST_CPUS: u32 = 1 << 14;

/// Samples that are no tracepoints, by the mode that the kernel says the CPU was in.
pub type SampleCounts = BTreeMap<String, [u64; CpuMode::ALL.len()]>;

/// What the first look at all records finds.
#[derive(Debug, Default)]
struct FirstLook {
    cpus: BTreeMap<u32, CpuSamples>,
    comms: HashMap<u32, String>,
    samples: SampleCounts,
    compressed: u64,
    unreadable: u64,
    /// Where the first of these lies.
    first_unreadable: Option<u64>,
    damage: Vec<Damage>,
}

impl FirstLook {
    fn new(perf: &PerfData, file: &[u8]) -> Self {
        let mut look = Self::default();
        let mut records = perf.records(file);
        for record in records.by_ref() {
            look.record(perf, &record);
        }
        if perf.is_unfinished {
            let what = "its recorder was stopped before it wrote how much there is: all is read";
            look.damage.push(Damage::at(0, what.to_owned()));
        }
        if perf.is_cut {
            let what = "the file ends before what its header says that it has: copy it again";
            look.damage.push(Damage::at(file.len() as u64, what.to_owned()));
        }
        if records.left() > 0 {
            let what = format!("{} bytes from here on are no records", records.left());
            look.damage.push(Damage::at(records.offset(), what));
        }
        if look.compressed > 0 {
            let what = format!(
                "{} compressed records (perf record -z) are not read: record without -z",
                look.compressed
            );
            look.damage.push(Damage::at(0, what));
        }
        if let Some(at) = look.first_unreadable {
            let what = format!("{} samples can't be read, from here on", look.unreadable);
            look.damage.push(Damage::at(at, what));
        }
        look.cpus.values_mut().for_each(CpuSamples::sort);
        look
    }

    fn record(&mut self, perf: &PerfData, record: &Record<'_>) {
        match record.kind {
            RecordKind::Sample if self.sample(perf, record).is_none() => {
                self.unreadable += 1;
                self.first_unreadable.get_or_insert(record.offset);
            }
            RecordKind::Comm => drop(self.comm(perf, record)),
            RecordKind::Lost | RecordKind::LostSamples => drop(self.lost(perf, record)),
            RecordKind::Compressed => self.compressed += 1,
            _ => {}
        }
    }

    /// `None`: it can't be read.
    fn sample(&mut self, perf: &PerfData, record: &Record<'_>) -> Option<()> {
        let sample = perf.sample(record)?;
        let attr = perf.attr_of(record)?;
        if attr.kind != EventType::Tracepoint {
            let of_event = self.samples.entry(attr.title()).or_default();
            let at = CpuMode::ALL.iter().position(|&mode| mode == sample.mode)?;
            *of_event.get_mut(at)? += 1;
            return Some(());
        }
        let Sample { time_ns, cpu, raw, raw_offset, .. } = sample;
        let (time_ns, cpu, raw) = (time_ns?, cpu.filter(|&cpu| cpu < MOST_CPUS)?, raw?);
        let len = u32::try_from(raw.len()).ok()?;
        self.cpus.entry(cpu).or_default().sample(time_ns, raw_offset, len);
        Some(())
    }

    /// `PERF_RECORD_COMM`: process, thread, name.
    fn comm(&mut self, perf: &PerfData, record: &Record<'_>) -> Option<()> {
        let mut cursor = raw_bytes::Cursor::new(record.body, perf.order, record.offset);
        let (_process, thread) = (cursor.u32().ok()?, cursor.u32().ok()?);
        let name = String::from_utf8_lossy(cursor.c_str().ok()?).into_owned();
        if thread != 0 && (self.comms.len() < MOST_THREADS || self.comms.contains_key(&thread)) {
            self.comms.insert(thread, name);
        }
        Some(())
    }

    /// `PERF_RECORD_LOST`: id, count; `PERF_RECORD_LOST_SAMPLES`: count.
    fn lost(&mut self, perf: &PerfData, record: &Record<'_>) -> Option<()> {
        let mut cursor = raw_bytes::Cursor::new(record.body, perf.order, record.offset);
        if record.kind == RecordKind::Lost {
            cursor.u64().ok()?;
        }
        let count = cursor.u64().ok()?;
        let of = perf.sample_id(record);
        let place = of.and_then(|of| Some((of.cpu.filter(|&cpu| cpu < MOST_CPUS)?, of.time_ns?)));
        match place {
            Some((cpu, time_ns)) => {
                self.cpus.entry(cpu).or_default().lost(time_ns, record.offset, count);
            }
            None => {
                let what = format!("{count} records were lost, of which CPU is not said");
                self.damage.push(Damage::at(record.offset, what));
            }
        }
        Some(())
    }
}

/// Makes a recording of a file whose head was read.
pub(crate) fn recording(path: &Path, file: FileMap, perf: &PerfData) -> Recording {
    let mut look = FirstLook::new(perf, &file);
    let tracing = tracing_data(perf, &file, &mut look.damage);
    let (abi, formats, table) = match &tracing {
        Some(tracing) => (tracing.abi, tracing.formats.clone(), table(tracing, &mut look.damage)),
        None => {
            let abi = Abi { order: perf.order, long: LongSize::Eight };
            (abi, Formats::default(), FormatTable::default())
        }
    };
    let info = info(perf, &mut look);
    let FirstLook { cpus, comms, mut damage, .. } = look;
    if tracing.is_none() && !cpus.is_empty() {
        let what =
            "the formats of its tracepoints are missing, which follow the records in a whole file";
        damage.push(Damage::at(0, what.to_owned()));
    }
    let file = Arc::new(file);
    let stream = |(cpu, samples)| {
        let records = Arc::new(PerfStream::new(cpu, Arc::clone(&file), samples));
        Stream { cpu, buffer: 0, records: StreamRecords::Listed(records), cut: false }
    };
    let streams: Vec<Stream> = cpus.into_iter().map(stream).collect();
    let container = Container::PerfData(Box::new(formats));
    let ending = Ending::of(path, &container, &streams, &info.buffers);
    let tracing = tracing.as_ref();
    let here = |text: Option<&Vec<u8>>| text.map_or(Text::Missing, |text| Text::Here(text.clone()));
    let saved = tracing.map_or(&[][..], |tracing| &tracing.cmdlines);
    let names = Names::new(
        cmdlines(saved, &comms),
        here(tracing.map(|one| &one.kallsyms)),
        here(tracing.map(|one| &one.printk)),
    );
    Recording {
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
    }
}

fn tracing_data(perf: &PerfData, file: &[u8], damage: &mut Vec<Damage>) -> Option<TracingData> {
    let range = perf.features.tracing_data.clone()?;
    let (from, to) = (usize::try_from(range.start).ok()?, usize::try_from(range.end).ok()?);
    match TracingData::parse(file.get(from..to)?, range.start) {
        Ok(tracing) => {
            damage.extend(tracing.damage.iter().cloned().map(Damage::from));
            Some(tracing)
        }
        Err(error) => {
            damage.push(Damage::at(range.start, format!("formats of tracepoints: {error}")));
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
    RecordingInfo {
        format: if perf.is_pipe { "perf.data of a pipe" } else { "perf.data" }.to_owned(),
        recorder: features.version.as_ref().map(|version| format!("perf {version}")),
        clock: Some("perf".to_owned()),
        uname: (!parts.is_empty()).then(|| parts.join(" ")),
        buffers: vec![BufferInfo::default()],
        cpu_count: features.cpus.filter(|&cpus| cpus > 0 && cpus <= MOST_CPUS),
        samples: std::mem::take(&mut look.samples),
        ..RecordingInfo::default()
    }
}

/// Names by the kernel's own list, and over it those that threads had in the recording.
fn cmdlines(saved: &[u8], comms: &HashMap<u32, String>) -> Cmdlines {
    let mut text = saved.to_vec();
    if !text.is_empty() && !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    for (thread, comm) in comms {
        let comm = comm.replace('\n', " ");
        text.extend_from_slice(format!("{thread} {comm}\n").as_bytes());
    }
    Cmdlines::parse(&text)
}
