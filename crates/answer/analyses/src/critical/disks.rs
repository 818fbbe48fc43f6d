//! Disk requests in flight: the thread that issued each, and when, until it completes.

use crate::by_recording::ByRecording;

/// Requests under way that are known at most; of more the disk is known, and not who issued them.
const MAX_UNDER_WAY: usize = 1 << 16;

/// A disk of a machine: its number as the kernel has it, `dev_t`, behind the recording's.
pub(super) type Disk = (u16, u32);

/// Where a request began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Issued {
    /// When the driver got it, in nanoseconds.
    pub(super) at_ns: u64,
    /// The thread that gave it to the driver; `None`: an interrupt did.
    pub(super) by: Option<u32>,
}

/// Those under way, by disk and first sector.
#[derive(Debug, Default)]
pub(super) struct Disks(ByRecording<(u32, u64), Issued>);

impl Disks {
    pub(super) fn issue(&mut self, (recording, dev): Disk, sector: u64, issued: Issued) {
        let request = (recording, (dev, sector));
        if self.0.len() < MAX_UNDER_WAY || self.0.contains(request) {
            self.0.set(request, issued);
        }
    }

    /// Where the request that completes began; `None`: that was not seen.
    pub(super) fn complete(&mut self, (recording, dev): Disk, sector: u64) -> Option<Issued> {
        self.0.take((recording, (dev, sector)))
    }

    /// Events of a machine were lost: a request may have completed, and another one begun at its sector.
    pub(super) fn lose(&mut self, recording: u16) {
        self.0.forget(recording);
    }
}

/// A disk's number as people write it, `MAJOR:MINOR` (`MINORBITS`, include/linux/kdev_t.h).
pub(super) fn disk_number(dev: u32) -> String {
    format!("{}:{}", dev >> 20, dev & 0xf_ffff)
}
