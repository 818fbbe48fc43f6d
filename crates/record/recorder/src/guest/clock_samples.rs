//! What time synchronisation has measured so far, for each CPU of a guest.

use tracedat::{ShiftSample, TimeShift};

/// Samples that are kept of each CPU.
const MOST: usize = 10_000;

/// Samples of each CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockSamples {
    /// Between two samples the truth lies on a line between them; else a sample holds until the next.
    pub(crate) interpolates: bool,
    pub(crate) cpus: Vec<Vec<ShiftSample>>,
}

impl ClockSamples {
    pub(crate) fn add(&mut self, cpu: usize, sample: ShiftSample) {
        let Some(samples) = self.cpus.get_mut(cpu) else { return };
        // Times go forward; a guest that says otherwise is not believed.
        let is_later = samples.last().is_none_or(|last| last.time < sample.time);
        if is_later && samples.len() < MOST {
            samples.push(sample);
        }
    }

    /// How times of the guest are brought to the clock of the recording with this id. Nothing when
    /// nothing was measured.
    pub(crate) fn time_shift(&self, peer: u64) -> Option<TimeShift> {
        let any = self.cpus.iter().any(|samples| !samples.is_empty());
        let flags = u32::from(self.interpolates);
        any.then(|| TimeShift { peer, flags, cpus: self.cpus.clone() })
    }
}
