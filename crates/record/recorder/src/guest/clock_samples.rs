//! Results of time synchronisation so far, for each CPU of a guest.

use tracedat::{ShiftSample, TimeShift};

/// Max samples per CPU.
const MOST: usize = 10_000;

/// Samples of each CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockSamples {
    /// Offsets between two samples are interpolated linearly; otherwise a sample holds until the next.
    pub(crate) interpolates: bool,
    pub(crate) cpus: Vec<Vec<ShiftSample>>,
}

impl ClockSamples {
    pub(crate) fn add(&mut self, cpu: usize, sample: ShiftSample) {
        let Some(samples) = self.cpus.get_mut(cpu) else { return };
        // Times must increase; a guest's other samples are ignored.
        let is_later = samples.last().is_none_or(|last| last.time < sample.time);
        if is_later && samples.len() < MOST {
            samples.push(sample);
        }
    }

    /// The shift of the guest's times to the clock of the recording with this id; `None` without samples.
    pub(crate) fn time_shift(&self, peer: u64) -> Option<TimeShift> {
        let any = self.cpus.iter().any(|samples| !samples.is_empty());
        let flags = u32::from(self.interpolates);
        any.then(|| TimeShift { peer, flags, cpus: self.cpus.clone() })
    }
}
