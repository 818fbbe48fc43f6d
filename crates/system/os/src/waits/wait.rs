//! How long one waits for another process or machine, in all.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::waits::deadline::Deadline;

/// How long one waits for the other side, in all: the end is fixed when this is made, however many
/// reads and writes it is used for. Each new wait needs a new one.
#[derive(Clone, Copy, Debug)]
pub struct Wait<'a> {
    until: Deadline,
    stop: &'a [BorrowedFd<'a>],
}

impl<'a> Wait<'a> {
    /// Until then, whatever happens.
    #[must_use]
    pub fn until(until: Deadline) -> Self {
        Self { until, stop: &[] }
    }

    /// This long from now, whatever happens.
    #[must_use]
    pub fn at_most(timeout: Duration) -> Self {
        Self::until(Deadline::after(timeout))
    }

    /// The same, but no longer than until one of these can be read.
    #[must_use]
    pub fn or<'b>(self, stop: &'b [BorrowedFd<'b>]) -> Wait<'b> {
        Wait { until: self.until, stop }
    }

    /// Whether it has ended. Reads and writes that need not wait still succeed, so a loop that reads must check
    /// this: the other side may always have more to send.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.until.has_passed() || self.is_stopped()
    }

    /// Time that is left.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.until.remaining()
    }

    /// What ends it early.
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
