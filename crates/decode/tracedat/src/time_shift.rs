//! TIME_SHIFT options: conversion of a guest's times to its host's clock.

use crate::Damage;
use crate::options::RawOption;
use raw_bytes::{ByteOrder, Cursor, Truncated};

/// A TIME_SHIFT option: converts a guest's times to its host's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeShift {
    /// Trace id of the recording with the target clock.
    pub peer: u64,
    /// Flags of the synchronisation protocol: see [`TimeShift::interpolates`].
    pub flags: u32,
    /// Samples per CPU of this recording, ordered by time, without repeated times.
    pub cpus: Vec<Vec<ShiftSample>>,
}

/// A measurement of the relation of two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShiftSample {
    /// Time of the measurement on the recording's own clock.
    pub time: u64,
    /// Offset to add.
    pub offset: i64,
    /// Factor to multiply by before adding.
    pub scaling: u64,
    /// Bits to shift right after multiplication.
    pub fraction: u64,
}

/// Maximum CPUs of a recording; Linux supports up to 8192.
const MAX_CPUS: u32 = 1 << 16;

impl TimeShift {
    /// Whether offsets between two samples are interpolated; otherwise each holds until the next.
    #[must_use]
    pub fn interpolates(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Parses the option. A result with both a value and damage means that the value was repaired.
    ///
    /// trace-cmd's writer (`tracecmd_write_guest_time_shift`) lets the count fields of all CPUs
    /// point to one variable: every CPU gets the last CPU's count, while the arrays have their own
    /// lengths. The reader searches for lengths that fit such an option exactly. An option that
    /// does not fit is dropped: no shift is better than a wrong shift.
    pub(crate) fn parse(option: &RawOption, order: ByteOrder) -> (Option<Self>, Option<Damage>) {
        let mut cursor = option.cursor(order);
        match Self::as_declared(&mut cursor) {
            Ok(shift) if shift.is_ordered() && cursor.is_empty() => (Some(shift.tidy()), None),
            declared => {
                let rescued = Rescue::run(option, order).map(Self::tidy);
                let what = match (&rescued, declared) {
                    (Some(_), _) => "TIME_SHIFT option: its sample counts are wrong; they were derived from the \
                        positions of the arrays"
                        .into(),
                    (None, Err(cut)) => Damage::short("TIME_SHIFT option ignored", cut).what,
                    (None, Ok(_)) => {
                        "TIME_SHIFT option ignored: no sample counts fit its size".into()
                    }
                };
                (rescued, Some(Damage::new(option.offset, what)))
            }
        }
    }

    fn as_declared(cursor: &mut Cursor<'_>) -> Result<Self, Truncated> {
        let (mut shift, cpus) = Self::head(cursor)?;
        for _ in 0..cpus {
            let count = cursor.u32()?;
            shift.cpus.push(samples(cursor, count.into())?);
        }
        if !cursor.is_empty() {
            // trace-cmd 2.9 did not write fractions.
            for sample in shift.cpus.iter_mut().flatten() {
                sample.fraction = cursor.u64()?;
            }
        }
        Ok(shift)
    }

    fn head(cursor: &mut Cursor<'_>) -> Result<(Self, u32), Truncated> {
        let (peer, flags) = (cursor.u64()?, cursor.u32()?);
        let cpus = cursor.u32()?;
        Ok((Self { peer, flags, cpus: Vec::new() }, cpus.min(MAX_CPUS)))
    }

    fn is_ordered(&self) -> bool {
        self.cpus.iter().all(|samples| samples.is_sorted_by_key(|sample| sample.time))
    }

    fn tidy(mut self) -> Self {
        for samples in &mut self.cpus {
            samples.sort_by_key(|sample| sample.time);
            samples.dedup_by_key(|sample| sample.time);
        }
        self
    }
}

fn samples(cursor: &mut Cursor<'_>, count: u64) -> Result<Vec<ShiftSample>, Truncated> {
    let mut array = || {
        let part = cursor.clone();
        cursor.take(count.saturating_mul(8)).map(|_| part)
    };
    let (mut times, mut offsets, mut scalings) = (array()?, array()?, array()?);
    let mut sample = || {
        let (time, offset) = (times.u64()?, offsets.u64()?.cast_signed());
        Ok(ShiftSample { time, offset, scaling: scalings.u64()?, fraction: 0 })
    };
    (0..count).map(|_| sample()).collect()
}

/// The search for array lengths in an option in which all counts are those of the last CPU.
struct Rescue<'a> {
    cursor: Cursor<'a>,
    cpus: u32,
    count: u32,
}

impl Rescue<'_> {
    fn run(option: &RawOption, order: ByteOrder) -> Option<TimeShift> {
        let mut cursor = option.cursor(order);
        let (mut shift, cpus) = TimeShift::head(&mut cursor).ok()?;
        let count = cursor.clone().u32().ok()?;
        let mut rescue = Rescue { cursor, cpus, count };
        for cpu in 1..=cpus {
            shift.cpus.push(rescue.cpu(cpu == cpus)?);
        }
        rescue.fractions(&mut shift)?;
        Some(shift)
    }

    /// Reads a CPU's arrays: the smallest number of sorted samples that the next CPU's count
    /// follows.
    fn cpu(&mut self, last: bool) -> Option<Vec<ShiftSample>> {
        if self.cursor.u32().ok()? != self.count {
            return None;
        }
        let count = if last { u64::from(self.count) } else { self.length()? };
        let samples = samples(&mut self.cursor, count).ok()?;
        samples.is_sorted_by_key(|sample| sample.time).then_some(samples)
    }

    fn length(&self) -> Option<u64> {
        let mut times = self.cursor.clone();
        let mut latest = 0;
        for length in 1_u64.. {
            let time = times.u64().ok().filter(|&time| time > latest)?;
            latest = time;
            let mut after = self.cursor.clone();
            after.take(length.checked_mul(24)?).ok()?;
            if after.u32().ok()? == self.count {
                return Some(length);
            }
        }
        None
    }

    /// Each CPU has as many fractions as the last CPU has samples; a single one for all samples of
    /// a CPU is sufficient, because the protocols never change it.
    fn fractions(&mut self, shift: &mut TimeShift) -> Option<()> {
        let expected = u64::from(self.cpus).checked_mul(u64::from(self.count).checked_mul(8)?)?;
        if self.cursor.rest().len() as u64 != expected {
            return None;
        }
        for samples in &mut shift.cpus {
            let mut part = self.cursor.clone();
            self.cursor.take(u64::from(self.count).checked_mul(8)?).ok()?;
            let mut fraction = 0;
            for (index, sample) in (0_u32..).zip(samples) {
                if index < self.count {
                    fraction = part.u64().ok()?;
                }
                sample.fraction = fraction;
            }
        }
        Some(())
    }
}
