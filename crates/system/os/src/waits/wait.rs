//! The total time to wait for another process or machine.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::waits::deadline::Deadline;

/// The total time to wait for the other side: the end is fixed at creation, for any number of reads
/// and writes. Each new wait needs a new one.
#[derive(Clone, Copy, Debug)]
pub struct Wait<'a> {
    until: Deadline,
    stop: &'a [BorrowedFd<'a>],
}

impl<'a> Wait<'a> {
    /// Waits until a deadline.
    #[must_use]
    pub fn until(until: Deadline) -> Self {
        Self { until, stop: &[] }
    }

    /// Waits this long from now.
    #[must_use]
    pub fn at_most(timeout: Duration) -> Self {
        Self::until(Deadline::after(timeout))
    }

    /// Ends the wait as soon as one of these descriptors is readable.
    #[must_use]
    pub fn or<'b>(self, stop: &'b [BorrowedFd<'b>]) -> Wait<'b> {
        Wait { until: self.until, stop }
    }

    /// Whether it has ended. Reads and writes that need not wait still succeed, so a read loop must
    /// check this: the other side can always send more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.until.has_passed() || self.is_stopped()
    }

    /// Remaining time.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.until.remaining()
    }

    /// Descriptors that end it early.
    #[must_use]
    pub fn stop(&self) -> &'a [BorrowedFd<'a>] {
        self.stop
    }

    fn is_stopped(&self) -> bool {
        let from = |fd: &BorrowedFd<'a>| PollFd::from_borrowed_fd(*fd, PollFlags::IN);
        let mut fds: Vec<_> = self.stop.iter().map(from).collect();
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        !fds.is_empty() && poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
    }
}
