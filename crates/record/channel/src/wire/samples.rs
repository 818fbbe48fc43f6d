//! Samples of a guest's CPUs, sent to its host: two files in parts.
//!
//! One file is a perf.data in pipe mode. The other relates its clock to the guest's trace clock
//! (`docs/formats/collected.md`).

use crate::wire::fields::{Fields, Malformed, Payload};

/// Requests samples from the next recording. Agents without this feature ignore the request, and send none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleRequest {
    /// Samples per second and CPU.
    pub hz: u32,
    /// The event that triggers them.
    pub event: SampleEvent,
}

/// The event that triggers samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampleEvent {
    #[default]
    Best,
    /// The processor's cycle counter.
    Cycles,
    /// The kernel's timer.
    CpuClock,
}

/// The file that a part belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleFile {
    /// The perf.data.
    Samples,
    /// The clock readings.
    Clocks,
}

/// Part of a file: whole records or entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplePart {
    pub file: SampleFile,
    /// Bytes of the file sent before.
    pub offset: u64,
    /// The part.
    pub bytes: Vec<u8>,
}

/// Totals of sampling, after the last part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SamplesEnd {
    /// perf's name of the event; empty: nothing was sampled.
    pub event: String,
    /// Number of samples in the file.
    pub samples: u64,
    /// Records that the kernel dropped, if it counts them.
    pub lost: Option<u64>,
    /// How often the kernel throttled the event.
    pub throttled: u64,
    /// Bytes of the perf.data that were sent.
    pub sample_bytes: u64,
    /// Why sampling ended early, if it failed.
    pub fault: Option<String>,
}

impl SampleRequest {
    pub(crate) fn write(self, to: &mut Payload) {
        to.u32(self.hz).u8(self.event as u8);
    }

    pub(crate) fn read(from: &mut Fields<'_>) -> Result<Self, Malformed> {
        let hz = from.u32()?;
        let event = match from.u8()? {
            0 => SampleEvent::Best,
            1 => SampleEvent::Cycles,
            2 => SampleEvent::CpuClock,
            _ => return Err(Malformed),
        };
        Ok(Self { hz, event })
    }
}

impl SamplePart {
    pub(crate) fn write(&self, to: &mut Payload) {
        to.u8(self.file as u8).u64(self.offset).bytes(&self.bytes);
    }

    pub(crate) fn read(from: &mut Fields<'_>) -> Result<Self, Malformed> {
        let file = match from.u8()? {
            0 => SampleFile::Samples,
            1 => SampleFile::Clocks,
            _ => return Err(Malformed),
        };
        Ok(Self { file, offset: from.u64()?, bytes: from.rest().to_vec() })
    }
}

impl SamplesEnd {
    pub(crate) fn write(&self, to: &mut Payload) {
        to.text(&self.event).u64(self.samples);
        to.option(self.lost.as_ref(), |to, lost| {
            to.u64(*lost);
        });
        to.u64(self.throttled).u64(self.sample_bytes);
        to.option(self.fault.as_ref(), |to, fault| {
            to.text(fault);
        });
    }

    pub(crate) fn read(from: &mut Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            event: from.text()?,
            samples: from.u64()?,
            lost: from.option(Fields::u64)?,
            throttled: from.u64()?,
            sample_bytes: from.u64()?,
            fault: from.option(Fields::text)?,
        })
    }
}
