//! The BPF collector's file next to a host's recording, converted to the recording's times.

use std::path::{Path, PathBuf};

use hypertrace::collected::{
    Begin, ClockPair, Conversion, Counts, Entries, Entry, Hypercall, VERSION,
};
use sys::FileMap;

use crate::open_error::{OpenError, OpenFault};
use crate::recording::Recording;

/// Name of the file in a session's folder.
const NAME: &str = "host.collected";
/// Recordings that can be next to it: a complete one, or the pages of a killed recorder.
const HOSTS: [&str; 2] = ["host.dat", "host.pages"];
/// Trace clocks with other units than nanoseconds.
const OTHER_UNITS: [&str; 3] = ["x86-tsc", "counter", "uptime"];

/// A collector's file.
#[derive(Debug)]
pub struct Collected {
    path: PathBuf,
    file: FileMap,
    begin: Begin,
    conversion: Conversion,
    counts: Option<Counts>,
    hypercalls: u64,
    damaged_bytes: u64,
}

impl Collected {
    /// The file next to a recording, if there is one.
    ///
    /// # Errors
    /// If it cannot be read, belongs to another recording, or has a later version.
    pub fn for_recording(recording: &Recording) -> Result<Option<Self>, OpenError> {
        let path = recording.path();
        let is_host = path.file_name().is_some_and(|name| HOSTS.iter().any(|host| name == *host));
        let path = path.with_file_name(NAME);
        if !is_host || !path.is_file() {
            return Ok(None);
        }
        let collected = Self::read(&path, FileMap::open(&path)?)?;
        let (trace_id, its) = (recording.trace_id(), collected.begin.trace_id);
        if trace_id.is_some_and(|trace_id| trace_id != its) {
            let what = format!("it does not belong to {}", recording.path().display());
            return Err(OpenError { path, fault: OpenFault::Refused(what) });
        }
        Ok(Some(collected))
    }

    /// Reads a collector's file from memory; messages call it `name`.
    ///
    /// # Errors
    /// If the bytes have no valid header.
    pub fn of_bytes(name: &Path, bytes: Vec<u8>) -> Result<Self, OpenError> {
        Self::read(name, FileMap::from(bytes))
    }

    fn read(path: &Path, file: FileMap) -> Result<Self, OpenError> {
        let refused = |what: String| OpenError::new(path, OpenFault::Refused(what));
        let mut entries = Entries::new(&file);
        let (mut begin, mut pairs, mut counts, mut hypercalls) = (None, Vec::new(), None, 0);
        for entry in entries.by_ref() {
            match entry {
                Entry::Begin(found) => drop(begin.get_or_insert(found)),
                Entry::Pair(pair) => pairs.push(pair),
                Entry::Hypercall(_) => hypercalls += 1,
                Entry::Counts(counted) => counts = Some(counted),
                Entry::Unknown(_) => {}
            }
        }
        let damaged_bytes = entries.damaged_bytes();
        let begin: Begin = begin.ok_or_else(|| refused("its first entry is missing".into()))?;
        if begin.version != VERSION {
            return Err(refused(format!("its version {} is not supported", begin.version)));
        }
        let conversion = conversion(&pairs, &begin.clock);
        let path = path.to_owned();
        Ok(Self { path, file, begin, conversion, counts, hypercalls, damaged_bytes })
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The first entry, which describes the collection.
    #[must_use]
    pub fn begin(&self) -> &Begin {
        &self.begin
    }

    /// The relation of its times to the recording's.
    #[must_use]
    pub fn conversion(&self) -> &Conversion {
        &self.conversion
    }

    /// The collector's last counts.
    #[must_use]
    pub fn counts(&self) -> Option<Counts> {
        self.counts
    }

    /// The number of hypercalls.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.hypercalls
    }

    /// Whether it has no hypercalls.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hypercalls == 0
    }

    /// Bytes outside all entries.
    #[must_use]
    pub fn damaged_bytes(&self) -> u64 {
        self.damaged_bytes
    }

    /// Its hypercalls in the order in which guests resumed, each with the time on the recording's
    /// clock at which KVM processed it; `None` if the clocks were not compared.
    pub fn hypercalls<'c>(
        &'c self,
        recording: &'c Recording,
    ) -> impl Iterator<Item = (Option<u64>, Hypercall)> + 'c {
        Entries::new(&self.file).filter_map(|entry| match entry {
            Entry::Hypercall(hypercall) => {
                let trace = self.conversion.trace(hypercall.mono_ns());
                Some((trace.map(|trace| recording.time_ns(trace)), hypercall))
            }
            _ => None,
        })
    }
}

/// A file in the same format with only clock readings.
#[derive(Debug)]
pub(crate) struct ClockFile(Collected);

impl ClockFile {
    /// Reads the file.
    ///
    /// # Errors
    /// If it has no valid header.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        Ok(Self(Collected::read(path, FileMap::open(path)?)?))
    }

    /// The trace id of its recording.
    pub(crate) fn trace_id(&self) -> u64 {
        self.0.begin.trace_id
    }

    /// Converts the monotonic clock to the recording's clock.
    pub(crate) fn conversion(self) -> Conversion {
        self.0.conversion
    }
}

fn conversion(pairs: &[ClockPair], clock: &str) -> Conversion {
    Conversion::new(pairs, !OTHER_UNITS.contains(&clock))
}
