//! Disk requests in flight, with the thread that issued them and the time.

use crate::by_recording::ByRecording;

/// Max tracked requests; for others the issuer is unknown.
const MAX_UNDER_WAY: usize = 1 << 16;

/// A disk: index of the recording, and `dev_t`.
pub(super) type Disk = (u16, u32);

/// Issue of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Issued {
    /// When the driver received it.
    pub(super) at_ns: u64,
    /// The issuing thread; `None` if an interrupt issued it.
    pub(super) by: Option<u32>,
}

/// Requests in flight by disk and first sector.
#[derive(Debug, Default)]
pub(super) struct Disks(ByRecording<(u32, u64), Issued>);

impl Disks {
    pub(super) fn issue(&mut self, (recording, dev): Disk, sector: u64, issued: Issued) {
        let request = (recording, (dev, sector));
        if self.0.len() < MAX_UNDER_WAY || self.0.contains(request) {
            self.0.set(request, issued);
        }
    }

    /// The issue of a completing request; `None` if it was not seen.
    pub(super) fn complete(&mut self, (recording, dev): Disk, sector: u64) -> Option<Issued> {
        self.0.take((recording, (dev, sector)))
    }

    /// Drops all requests after a loss: one may have completed, and another may have started at its sector.
    pub(super) fn lose(&mut self, recording: u16) {
        self.0.forget(recording);
    }
}

/// A disk's number in the usual form `MAJOR:MINOR` (`MINORBITS`, include/linux/kdev_t.h).
pub(super) fn disk_number(dev: u32) -> String {
    format!("{}:{}", dev >> 20, dev & 0xf_ffff)
}
