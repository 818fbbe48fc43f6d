//! The progress of a recording.

use std::time::Duration;

use super::Recording;

/// The progress of a recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// How long it has been recording.
    pub time: Duration,
    /// Size of the files with pages, collected hypercalls and samples.
    pub bytes: u64,
    /// Events lost so far, including guests'.
    pub lost: u64,
    /// Bytes that guests have sent.
    pub guest_bytes: u64,
    /// Number of guests whose recording has ended.
    pub guests_over: usize,
}

impl Recording {
    /// How long it has been recording.
    #[must_use]
    pub fn progress_time(&self) -> Duration {
        self.start.at.elapsed()
    }

    /// Whether writing has failed, for example because of a full disk.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.pages.has_failed() || self.streams.has_failed()
    }

    #[must_use]
    pub fn progress(&self) -> Progress {
        let cpus = self.session.cpus().iter();
        let lost = cpus.filter_map(|&cpu| Some(self.session.stats(cpu).ok()?.0.events()));
        let guests = self.guest_side.guests.lock().status();
        let of_guests = guests.iter().map(|status| status.lost);
        let sent = guests.iter().map(|status| status.sent_bytes);
        Progress {
            time: self.start.at.elapsed(),
            bytes: self.pages.bytes() + self.streams.bytes(),
            lost: lost.chain(of_guests).sum(),
            guest_bytes: sent.sum::<u64>() + self.guest_side.module_bytes(),
            guests_over: guests.iter().filter(|status| status.over.is_some()).count(),
        }
    }
}
