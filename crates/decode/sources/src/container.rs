//! The container of a recording, and the parts that only some containers have.

use tracedat::{CpuStat, Formats, Header, RawOption, TraceDat};

use crate::perf_data::PerfDataParts;
use crate::recording::{BufferInfo, MAX_CPUS, RecordingInfo};

/// The container of a recording. [`RecordingInfo`] has the facts that all containers share.
#[derive(Debug)]
pub(crate) enum Container {
    /// A trace.dat file.
    TraceDat(Box<TraceDat>),
    /// A folder with raw ring-buffer pages per CPU and an `events` folder.
    RawPages,
    /// Text with a line per event; the formats are derived from it.
    Text(Box<Formats>),
    /// A perf.data file.
    PerfData(Box<PerfDataParts>),
    /// A folder with a CTF trace; the formats are derived from it.
    Ctf(Box<Formats>),
}

impl Container {
    /// The metadata of a trace.dat.
    pub(crate) fn info(dat: &TraceDat) -> RecordingInfo {
        let buffer = |buffer: &tracedat::Buffer| BufferInfo {
            name: buffer.name.clone(),
            clock: buffer.clock.clone(),
            page_size: Some(buffer.page_size),
        };
        let metadata = &dat.metadata;
        // Version 6, and most programs that write version 7, also list CPUs without events.
        let listed = dat.buffers.iter().flat_map(|buffer| &buffer.cpus);
        let listed = listed.map(|cpu| cpu.cpu.saturating_add(1)).max();
        RecordingInfo {
            format: format!("trace.dat v{}", dat.header.version.number()),
            compression: Some(dat.header.compression.name().to_owned()),
            recorder: metadata.recorder_version.clone(),
            clock: dat.clock().map(str::to_owned),
            buffers: dat.buffers.iter().map(buffer).collect(),
            uname: metadata.uname.clone(),
            cpu_count: metadata.cpu_count.max(listed.filter(|&cpus| u64::from(cpus) <= MAX_CPUS)),
            trace_id: metadata.trace_id,
            guests: metadata.guests.clone(),
            time_shifts: metadata.time_shifts.clone(),
            unknown_options: metadata.unknown.clone(),
            ..RecordingInfo::default()
        }
    }

    /// The kernel's statistics at the end of the recording, if the file has them.
    pub(crate) fn cpu_stats(&self) -> Option<&[CpuStat]> {
        match self {
            Self::TraceDat(dat) => Some(&dat.metadata.cpu_stats),
            Self::Text(_) | Self::PerfData(_) | Self::Ctf(_) => Some(&[]),
            Self::RawPages => None,
        }
    }

    /// Its options in file order, and its header; `None` for other containers.
    pub(crate) fn trace_dat_head(&self) -> Option<(&Header, &[RawOption])> {
        match self {
            Self::TraceDat(dat) => Some((&dat.header, &dat.options)),
            Self::RawPages | Self::Text(_) | Self::PerfData(_) | Self::Ctf(_) => None,
        }
    }

    /// Its format texts, if the file has them.
    pub(crate) fn formats(&self) -> Option<&Formats> {
        match self {
            Self::TraceDat(dat) => Some(&dat.formats),
            Self::Text(formats) | Self::Ctf(formats) => Some(formats),
            Self::PerfData(parts) => Some(&parts.formats),
            Self::RawPages => None,
        }
    }
}
