//! The progress of a recording.

use std::time::Duration;

use collector::Collector;
use tracefs::CpuStats;

use super::Recording;
use crate::module;
use crate::pump::Pump;

/// The progress of a recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// How long it has been recording.
    pub time: Duration,
    /// Bytes of pages, of collected hypercalls and of samples that are in files.
    pub bytes: u64,
    /// Events that were lost so far, in guests, too.
    pub lost: u64,
    /// Bytes that guests have sent.
    pub guest_bytes: u64,
    /// Guests that are not recorded any more.
    pub guests_over: usize,
}

impl Recording {
    /// How long it has been recording.
    #[must_use]
    pub fn progress_time(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Whether some of it can't be recorded any more: a full disk.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.pumps.iter().any(Pump::is_finished)
            || self.collector.as_ref().is_some_and(Collector::is_finished)
            || self.sampler.as_ref().is_some_and(|(sampler, _)| sampler.is_finished())
    }

    /// Its progress.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let stats =
            self.pumps.iter().filter_map(|pump| CpuStats::now(&self.instance, pump.cpu).ok());
        let guests = self.guests.lock().status();
        let of_guests = guests.iter().map(|status| status.lost);
        Progress {
            time: self.begun.elapsed(),
            bytes: self.pumps.iter().map(Pump::bytes).sum::<u64>()
                + self.collector.as_ref().map_or(0, Collector::bytes)
                + self.sampler.as_ref().map_or(0, |(sampler, _)| sampler.bytes()),
            lost: stats.map(|(stats, _)| stats.events()).chain(of_guests).sum(),
            guest_bytes: guests.iter().map(|status| status.sent_bytes).sum::<u64>()
                + self.modules.iter().map(module::Recorded::bytes).sum::<u64>(),
            guests_over: guests.iter().filter(|status| status.over.is_some()).count(),
        }
    }
}
