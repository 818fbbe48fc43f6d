//! A log of single samples in bounded memory: when it is full, it only keeps every second sample, then every
//! fourth, and so on.

use super::samples::Place;
use super::sums::{SampleKind, Stratum};

/// Max stored samples: some 25 MB.
const MAX_KEPT: usize = 1 << 18;

/// Owner of a sample's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// A vCPU in a stratum.
    Vcpu(Stratum),
    /// A thread of a recording.
    Thread((u16, u32)),
    /// A thread of the first recording, if no vCPU is recorded: its weight is its time.
    Alone,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Logged {
    pub(super) whose: Whose,
    pub(super) kind: SampleKind,
    pub(super) place: Place,
    /// Timestamp.
    pub(super) at_ns: u64,
    /// The time that it represents: since the previous sample.
    pub(super) weight_ns: u64,
}

/// Samples in the order of discovery.
#[derive(Debug)]
pub(super) struct SampleLog {
    samples: Vec<Logged>,
    /// One in this many samples is stored.
    stride: u64,
    seen: u64,
}

impl Default for SampleLog {
    fn default() -> Self {
        Self { samples: Vec::new(), stride: 1, seen: 0 }
    }
}

impl SampleLog {
    pub(super) fn push(&mut self, sample: Logged) {
        if self.samples.len() >= MAX_KEPT {
            let mut at = 0_usize;
            self.samples.retain(|_| {
                at = at.wrapping_add(1);
                at % 2 == 1
            });
            self.stride = self.stride.saturating_mul(2);
        }
        if self.seen.is_multiple_of(self.stride) {
            self.samples.push(sample);
        }
        self.seen = self.seen.wrapping_add(1);
    }

    /// The stored samples, and the number of samples that each represents.
    pub(super) fn finish(self) -> (Vec<Logged>, u64) {
        (self.samples, self.stride)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_very_many_samples_evenly_many_are_kept() {
        let mut log = SampleLog::default();
        let many = MAX_KEPT as u64 * 5 / 2;
        for at_ns in 0..many {
            let whose = Whose::Thread((0, 1));
            log.push(Logged {
                whose,
                kind: SampleKind::Host,
                place: Place::Host(None),
                at_ns,
                weight_ns: 1,
            });
        }
        let (samples, stride) = log.finish();
        assert!(samples.len() <= MAX_KEPT && stride == 4, "{} {stride}", samples.len());
        assert!((samples.len() as u64 * stride).abs_diff(many) <= stride);
        assert!(samples.windows(2).all(|pair| pair[1].at_ns - pair[0].at_ns == stride));
    }
}
