//! Samples of what CPUs ran, on the times of the recording that they were taken with: those of a perf.data that
//! lies next to a host's or a guest's recording, or is that recording.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hypertrace::collected::Conversion;
use perfdata::{BuildId, CpuMode, Events, PerfData, Record, Sample, ip_is_marker, kind};
use sys::FileMap;

use crate::collected::ClockFile;
use crate::container::Container;
use crate::open_error::{OpenError, OpenFault};
use crate::perf_data::{Bytes, SampleCounts};
use crate::recording::Recording;
use crate::session_member::SessionMember;

mod weights;

pub use self::weights::{WeighedSample, WeightUnit};

/// What files in a session's folder are called: samples, and how their clock goes.
const SAMPLES: &str = "data";
const CLOCKS: &str = "clock";
/// The same of the kernel's code.
const KERNEL_CODE: &str = "kcore";
/// What they are called in the folder of a machine that was recorded without a host.
const OWN: &str = "samples";
/// The trace clock that samples are stamped with, too.
const SAME_CLOCK: &str = "mono";

/// When a thread or a CPU was sampled, and where that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleAt {
    /// On the recording's times.
    pub time_ns: u64,
    offset: u64,
}

/// What ran at a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledCode {
    /// As the kernel says.
    pub mode: CpuMode,
    /// The process.
    pub process: Option<u32>,
    /// When, on the samples' own clock, which all their records have.
    pub stamp_ns: u64,
}

/// What samples are found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// The thread that ran: a host's, of which some are vCPUs. Idle CPUs have none.
    Thread,
    /// The CPU: a guest's, each of which is a vCPU.
    Cpu,
}

/// Samples by thread, those of a guest by CPU.
#[derive(Debug)]
pub struct Samples {
    path: PathBuf,
    bytes: Arc<Bytes>,
    events: Events,
    by: By,
    found: HashMap<u32, Vec<SampleAt>>,
    processes: HashMap<u32, u32>,
    counts: SampleCounts,
    bound_ns: u64,
    /// Of files that ran, where mappings don't have them.
    build_ids: Arc<[(BuildId, String)]>,
}

impl Samples {
    /// The samples that a recording has, in it or next to it; `None`: it has none.
    ///
    /// # Errors
    /// When they can't be read, belong to another recording, or nothing says how their clock goes with the
    /// recording's.
    pub fn for_recording(recording: &Recording) -> Result<Option<Self>, OpenError> {
        if let Container::PerfData(parts) = &recording.container {
            if recording.info().samples.is_empty() {
                return Ok(None);
            }
            let (bytes, events) = (Arc::clone(&parts.bytes), parts.events.clone());
            let path = recording.path();
            let own_ids = Arc::clone(&parts.build_ids);
            let samples = Self::new(recording, path, (bytes, By::Thread), events, None);
            return Ok(Some(Self { build_ids: own_ids, ..samples }));
        }
        let Some((name, by)) = name_of_files(recording.path()) else { return Ok(None) };
        let (path, clock) = (name.with_extension(SAMPLES), name.with_extension(CLOCKS));
        if !path.is_file() {
            return Ok(None);
        }
        let conversion = conversion(recording, &path, &clock)?;
        let file = FileMap::open(&path)?;
        Self::read(recording, &path, by, file, conversion).map(Some)
    }

    /// Those of a perf.data that is in memory and has the recording's clock; messages call it `name`.
    ///
    /// # Errors
    /// When it can't be read as a perf.data.
    pub fn of_bytes(recording: &Recording, name: &Path, bytes: Vec<u8>) -> Result<Self, OpenError> {
        Self::read(recording, name, By::Thread, FileMap::from(bytes), None)
    }

    /// The same of a guest.
    ///
    /// # Errors
    /// See [`Samples::of_bytes`].
    pub fn of_guest_bytes(
        recording: &Recording,
        name: &Path,
        bytes: Vec<u8>,
    ) -> Result<Self, OpenError> {
        Self::read(recording, name, By::Cpu, FileMap::from(bytes), None)
    }

    fn read(
        recording: &Recording,
        path: &Path,
        by: By,
        file: FileMap,
        conversion: Option<Conversion>,
    ) -> Result<Self, OpenError> {
        let perf = PerfData::parse(&file)
            .map_err(|source| OpenError::new(path, OpenFault::PerfData(source)))?;
        let bytes = Arc::new(Bytes::new(path, file, &perf, &mut Vec::new())?);
        let build_ids = perf.features.build_ids.as_slice().into();
        let samples = Self::new(recording, path, (bytes, by), perf.events, conversion);
        Ok(Self { build_ids, ..samples })
    }

    fn new(
        recording: &Recording,
        path: &Path,
        (bytes, by): (Arc<Bytes>, By),
        events: Events,
        conversion: Option<Conversion>,
    ) -> Self {
        let (mut found, mut processes) = (HashMap::new(), HashMap::new());
        let mut by_event = vec![[0; CpuMode::ALL.len()]; events.list().len()];
        for record in bytes.records().map_while(Result::ok) {
            let Some((event, sample)) = sampled(&events, &record) else { continue };
            let count = by_event.get_mut(event).zip(position(sample.cpu_mode));
            if let Some(count) = count.and_then(|(counts, at)| counts.get_mut(at)) {
                *count += 1;
            }
            let Some((thread, time)) = sample.tid.zip(sample.time) else { continue };
            let stamp = conversion.as_ref().map_or(Some(time), |conversion| conversion.trace(time));
            let key = match by {
                By::Thread => Some(thread).filter(|&thread| thread != 0),
                By::Cpu => sample.cpu,
            };
            let Some((stamp, key)) = stamp.zip(key) else { continue };
            let cpu = sample.cpu.unwrap_or(0);
            let at =
                SampleAt { time_ns: recording.time_of_cpu_ns(stamp, cpu), offset: record.offset };
            processes.extend(sample.pid.map(|process| (thread, process)));
            found.entry(key).or_insert_with(Vec::new).push(at);
        }
        found.values_mut().for_each(|samples| samples.sort_by_key(|at| at.time_ns));
        let counted = events
            .list()
            .iter()
            .zip(by_event)
            .filter(|(_, counts)| *counts != [0; CpuMode::ALL.len()]);
        let counts = counted.map(|(event, counts)| (event.name(), counts)).collect();
        let bound_ns = conversion.map_or(0, |conversion| conversion.bound_ns());
        let build_ids = Arc::default();
        let path = path.to_owned();
        Self { path, bytes, events, by, found, processes, counts, bound_ns, build_ids }
    }

    /// Where they were read from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a guest took them of itself.
    #[must_use]
    pub fn is_of_guest(&self) -> bool {
        self.by == By::Cpu
    }

    /// The times of the first and the last.
    #[must_use]
    pub fn first_and_last_ns(&self) -> Option<(u64, u64)> {
        let first = self.found.values().filter_map(|all| Some(all.first()?.time_ns)).min()?;
        let last = self.found.values().filter_map(|all| Some(all.last()?.time_ns)).max()?;
        Some((first, last))
    }

    /// Those of a host's thread, in the order of their times.
    #[must_use]
    pub fn of_thread(&self, thread: u32) -> &[SampleAt] {
        self.found_by(By::Thread, thread)
    }

    /// Those of a guest's CPU, in the order of their times.
    #[must_use]
    pub fn of_cpu(&self, cpu: u32) -> &[SampleAt] {
        self.found_by(By::Cpu, cpu)
    }

    fn found_by(&self, by: By, key: u32) -> &[SampleAt] {
        let found = self.found.get(&key).filter(|_| self.by == by);
        found.map_or(&[], Vec::as_slice)
    }

    /// By thread, the process that it was of last.
    #[must_use]
    pub fn processes(&self) -> &HashMap<u32, u32> {
        &self.processes
    }

    /// How many there are, by what made them and the mode that the kernel says the CPU was in.
    #[must_use]
    pub fn counts(&self) -> &SampleCounts {
        &self.counts
    }

    /// How far off times may be, since two clocks had to be compared.
    #[must_use]
    pub fn bound_ns(&self) -> u64 {
        self.bound_ns
    }

    /// Its events, for [`Samples::records`].
    #[must_use]
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// Build ids of files by their paths, for mappings that have none: the file's own list of them.
    #[must_use]
    pub fn build_ids(&self) -> &[(BuildId, String)] {
        &self.build_ids
    }

    /// All records, those that are no samples included: names of threads, mappings.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.bytes.records().map_while(Result::ok)
    }

    /// What ran at a sample, and the addresses of its code, innermost first, into `stack`.
    pub fn code(&self, at: SampleAt, stack: &mut Vec<u64>) -> Option<SampledCode> {
        stack.clear();
        let record = self.bytes.record(at.offset)?;
        let (_, sample) = sampled(&self.events, &record)?;
        if let Some(chain) = &sample.callchain {
            // 0 is where a walk over frame pointers has gone astray.
            stack.extend(chain.iter().filter(|&entry| entry != 0 && !ip_is_marker(entry)));
        }
        // Of guests no kernel has a chain.
        if stack.is_empty() || sample.cpu_mode.is_guest() {
            stack.clear();
            stack.extend(sample.ip);
        }
        let (mode, process, stamp_ns) = (sample.cpu_mode, sample.pid, sample.time.unwrap_or(0));
        Some(SampledCode { mode, process, stamp_ns })
    }
}

/// The file with a recorded machine's kernel's code where samples saw it, if there may be one.
#[must_use]
pub fn kernel_code_file(recording: &Path) -> Option<PathBuf> {
    Some(name_of_files(recording)?.0.with_extension(KERNEL_CODE))
}

/// What files that belong to samples of a recording are called, but for what they end in, and what those samples
/// are found by: files next to it where it is one of a session, else those in its own folder, which an agent
/// wrote that records its machine without a host.
fn name_of_files(recording: &Path) -> Option<(PathBuf, By)> {
    let by = match SessionMember::from_path(recording) {
        None => None,
        Some(SessionMember::Host) => Some(By::Thread),
        Some(SessionMember::Guest(_)) => Some(By::Cpu),
    };
    if let Some(by) = by {
        return Some((recording.to_owned(), by));
    }
    recording.is_dir().then(|| (recording.join(OWN), By::Cpu))
}

fn position(mode: CpuMode) -> Option<usize> {
    CpuMode::ALL.iter().position(|&candidate| candidate == mode)
}

/// A sample that is no tracepoint, with the index of its event.
fn sampled<'r>(events: &Events, record: &Record<'r>) -> Option<(usize, Sample<'r>)> {
    if record.kind != kind::SAMPLE {
        return None;
    }
    let index = events.index_of(record)?;
    let event = events.list().get(index)?;
    if event.attr.is_tracepoint() {
        return None;
    }
    Some((index, Sample::parse(record, &event.attr).ok()?))
}

/// How the clock of samples goes with the recording's; `None`: it is the same.
fn conversion(
    recording: &Recording,
    path: &Path,
    clock: &Path,
) -> Result<Option<Conversion>, OpenError> {
    if recording.info().clock.as_deref() == Some(SAME_CLOCK) {
        return Ok(None);
    }
    let refused = |what: String| OpenError::new(path, OpenFault::Refused(what));
    if !clock.is_file() {
        return Err(refused(format!(
            "{} is missing, which relates its clock to that of the recording",
            clock.display()
        )));
    }
    let clock = ClockFile::open(clock)?;
    if recording.trace_id().is_some_and(|trace_id| trace_id != clock.trace_id()) {
        let other = recording.path().display();
        return Err(refused(format!("it does not belong to {other}")));
    }
    Ok(Some(clock.conversion()))
}
