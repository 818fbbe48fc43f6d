//! Samples of what a guest's CPUs run, on their way to its host: two files of the guest's, in parts.
//!
//! One is a perf.data in the form of a pipe, the other says how its clock goes with the guest's trace clock
//! (`docs/formats/collected.md`).

use crate::wire::fields::{Fields, Malformed, Payload};

/// How a guest is to be sampled, by the next recording that begins. Agents that know no samples leave it
/// out, and send none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleRequest {
    /// Samples a second on each CPU.
    pub hz: u32,
    /// What makes them.
    pub event: SampleEvent,
}

/// What makes samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampleEvent {
    #[default]
    Best,
    /// The processor's counter of cycles.
    Cycles,
    /// The kernel's timer.
    CpuClock,
}

/// Which file a part is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleFile {
    /// The perf.data.
    Samples,
    /// How clocks go.
    Clocks,
}

/// Part of a file: whole records, or whole entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplePart {
    pub file: SampleFile,
    /// Bytes of the file that were sent before.
    pub offset: u64,
    /// The part.
    pub bytes: Vec<u8>,
}

/// How sampling went, after the last part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SamplesEnd {
    /// What made the samples, as perf calls it; empty: nothing was sampled.
    pub event: String,
    /// Samples in the file.
    pub samples: u64,
    /// Records that the kernel had no room for, where it says that.
    pub lost: Option<u64>,
    /// How often the kernel held an event back.
    pub throttled: u64,
    /// Bytes of the perf.data that were sent.
    pub sample_bytes: u64,
    /// Why there is no more, if something failed.
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
