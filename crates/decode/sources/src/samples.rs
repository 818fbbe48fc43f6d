//! Samples of executing code, on the times of their recording: from a perf.data next to a host's or
//! guest's recording, or from the recording itself.

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

/// File name extensions in a session's folder: samples, and readings of their clock.
const SAMPLES: &str = "data";
const CLOCKS: &str = "clock";
/// Extension of the copy of the kernel's code.
const KERNEL_CODE: &str = "kcore";
/// Name of these files in the folder of a machine that was recorded without a host.
const OWN: &str = "samples";
/// The trace clock that equals perf's clock.
const SAME_CLOCK: &str = "mono";

/// A sample of a thread or a CPU: its time and its position in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleAt {
    /// Time on the recording's clock.
    pub time_ns: u64,
    offset: u64,
}

/// The code that ran at a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledCode {
    /// The CPU mode according to the kernel.
    pub mode: CpuMode,
    /// The process id.
    pub process: Option<u32>,
    /// Time on the samples' own clock, which all their records use.
    pub stamp_ns: u64,
}

/// The key of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// The thread that ran: for a host, whose vCPUs are threads. Idle CPUs have none.
    Thread,
    /// The CPU: for a guest, whose CPUs are vCPUs.
    Cpu,
}

/// Samples by thread; for a guest, by CPU.
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
    /// Build ids of executed files, for mappings without one.
    build_ids: Arc<[(BuildId, String)]>,
}

impl Samples {
    /// The samples in a recording or next to it; `None` if there are none.
    ///
    /// # Errors
    /// If they cannot be read, belong to another recording, or have a clock with an unknown
    /// relation to the recording's.
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

    /// The samples of a perf.data in memory that has the recording's clock; messages call it
    /// `name`.
    ///
    /// # Errors
    /// If it cannot be read as a perf.data.
    pub fn of_bytes(recording: &Recording, name: &Path, bytes: Vec<u8>) -> Result<Self, OpenError> {
        Self::read(recording, name, By::Thread, FileMap::from(bytes), None)
    }

    /// The samples of a guest.
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

    /// The path that they were read from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a guest recorded them itself.
    #[must_use]
    pub fn is_of_guest(&self) -> bool {
        self.by == By::Cpu
    }

    /// The times of the first and the last sample.
    #[must_use]
    pub fn first_and_last_ns(&self) -> Option<(u64, u64)> {
        let first = self.found.values().filter_map(|all| Some(all.first()?.time_ns)).min()?;
        let last = self.found.values().filter_map(|all| Some(all.last()?.time_ns)).max()?;
        Some((first, last))
    }

    /// The samples of a host's thread in time order.
    #[must_use]
    pub fn of_thread(&self, thread: u32) -> &[SampleAt] {
        self.found_by(By::Thread, thread)
    }

    /// The samples of a guest's CPU in time order.
    #[must_use]
    pub fn of_cpu(&self, cpu: u32) -> &[SampleAt] {
        self.found_by(By::Cpu, cpu)
    }

    fn found_by(&self, by: By, key: u32) -> &[SampleAt] {
        let found = self.found.get(&key).filter(|_| self.by == by);
        found.map_or(&[], Vec::as_slice)
    }

    /// By thread: its latest process.
    #[must_use]
    pub fn processes(&self) -> &HashMap<u32, u32> {
        &self.processes
    }

    /// The number of samples, by event and by the CPU mode that the kernel reports.
    #[must_use]
    pub fn counts(&self) -> &SampleCounts {
        &self.counts
    }

    /// Maximum error of times, from the comparison of two clocks.
    #[must_use]
    pub fn bound_ns(&self) -> u64 {
        self.bound_ns
    }

    /// Its events, for [`Samples::records`].
    #[must_use]
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// Build ids of files by path from the file's list, for mappings without one.
    #[must_use]
    pub fn build_ids(&self) -> &[(BuildId, String)] {
        &self.build_ids
    }

    /// All records, including those that are not samples: thread names, mappings.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.bytes.records().map_while(Result::ok)
    }

    /// The code at a sample; its addresses go to `stack`, innermost first.
    pub fn code(&self, at: SampleAt, stack: &mut Vec<u64>) -> Option<SampledCode> {
        stack.clear();
        let record = self.bytes.record(at.offset)?;
        let (_, sample) = sampled(&self.events, &record)?;
        if let Some(chain) = &sample.callchain {
            // A frame-pointer walk that goes astray gives 0.
            stack.extend(chain.iter().filter(|&entry| entry != 0 && !ip_is_marker(entry)));
        }
        // No kernel records call chains of guests.
        if stack.is_empty() || sample.cpu_mode.is_guest() {
            stack.clear();
            stack.extend(sample.ip);
        }
        let (mode, process, stamp_ns) = (sample.cpu_mode, sample.pid, sample.time.unwrap_or(0));
        Some(SampledCode { mode, process, stamp_ns })
    }
}

/// The file with the code of a recorded machine's kernel at sampled addresses, if it can exist.
#[must_use]
pub fn kernel_code_file(recording: &Path) -> Option<PathBuf> {
    Some(name_of_files(recording)?.0.with_extension(KERNEL_CODE))
}

/// The path of a recording's sample files without extension, and the key of its samples. The files
/// are next to the recording if it belongs to a session; otherwise in the folder of an agent that
/// records its machine without a host.
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

/// A sample that is not a tracepoint, with the index of its event.
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

/// The conversion from the samples' clock to the recording's; `None` if they are the same.
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
