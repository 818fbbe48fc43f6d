//! What a recording was read from, and the parts of it that only some kinds of input have.

use tracedat::{CpuStat, Formats, Header, RawOption, TraceDat};

use crate::perf_data::PerfDataParts;
use crate::recording::{BufferInfo, MAX_CPUS, RecordingInfo};

/// What a recording was read from. What others ask of it is in [`RecordingInfo`].
#[derive(Debug)]
pub(crate) enum Container {
    /// A trace.dat file.
    TraceDat(Box<TraceDat>),
    /// A folder with bare ring-buffer pages per CPU and an `events` folder.
    RawPages,
    /// Text with a line for each event; these formats were made for it.
    Text(Box<Formats>),
    /// A perf.data.
    PerfData(Box<PerfDataParts>),
    /// A folder with a trace in the Common Trace Format; these formats were made for it.
    Ctf(Box<Formats>),
}

impl Container {
    /// What a trace.dat says besides events.
    pub(crate) fn info(dat: &TraceDat) -> RecordingInfo {
        let buffer = |buffer: &tracedat::Buffer| BufferInfo {
            name: buffer.name.clone(),
            clock: buffer.clock.clone(),
            page_size: Some(buffer.page_size),
        };
        let metadata = &dat.metadata;
        // CPUs without events are listed, too, by version 6 and by most programs that write version 7.
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

    /// What the kernel counted by the time the recording ended, where the file itself has it.
    pub(crate) fn cpu_stats(&self) -> Option<&[CpuStat]> {
        match self {
            Self::TraceDat(dat) => Some(&dat.metadata.cpu_stats),
            Self::Text(_) | Self::PerfData(_) | Self::Ctf(_) => Some(&[]),
            Self::RawPages => None,
        }
    }

    /// Its options as they stand in the file, in order, and its head; `None`: it has none.
    pub(crate) fn trace_dat_head(&self) -> Option<(&Header, &[RawOption])> {
        match self {
            Self::TraceDat(dat) => Some((&dat.header, &dat.options)),
            Self::RawPages | Self::Text(_) | Self::PerfData(_) | Self::Ctf(_) => None,
        }
    }

    /// Its texts of formats, where the file itself has them.
    pub(crate) fn formats(&self) -> Option<&Formats> {
        match self {
            Self::TraceDat(dat) => Some(&dat.formats),
            Self::Text(formats) | Self::Ctf(formats) => Some(formats),
            Self::PerfData(parts) => Some(&parts.formats),
            Self::RawPages => None,
        }
    }
}
