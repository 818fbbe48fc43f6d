//! Signals an event to threads, once: a recording is over, or the other side is gone.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::waits::wait::Wait;

/// A signal that all its copies see.
#[derive(Clone, Debug)]
pub struct Signal(Arc<OwnedFd>);

impl Signal {
    /// One that is not given yet.
    ///
    /// # Errors
    /// When the process has no more descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Can be read once it is given: what a [`Wait`] ends with.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    #[must_use]
    pub fn is_set(&self) -> bool {
        self.wait(Duration::ZERO)
    }

    /// Waits until it is given, for at most this time; returns whether it is.
    pub fn wait(&self, timeout: Duration) -> bool {
        let timeout = Timespec::try_from(timeout).ok();
        let mut fds = [PollFd::new(&*self.0, PollFlags::IN)];
        poll(&mut fds, timeout.as_ref()).is_ok_and(|ready| ready > 0)
    }

    /// Waits until it is given, at most as long as `wait` says; whether it is.
    pub fn wait_within(&self, wait: Wait<'_>) -> bool {
        let own_fd = PollFd::new(&*self.0, PollFlags::IN);
        let stops = wait.stop().iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN));
        let mut fds: Vec<_> = std::iter::once(own_fd).chain(stops).collect();
        loop {
            match poll(&mut fds, Timespec::try_from(wait.remaining()).ok().as_ref()) {
                Err(rustix::io::Errno::INTR) => {}
                _ => return self.is_set(),
            }
        }
    }

    /// Sets it, for current and later waiters.
    pub fn set(&self) {
        // It counts up and is never read: it can't be full.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_stays_so_for_all_copies() {
        let signal = Signal::new().unwrap();
        let copy = signal.clone();
        assert!(!copy.is_set() && !copy.wait(Duration::from_millis(1)));
        signal.set();
        signal.set();
        assert!(copy.is_set() && copy.wait(Duration::from_secs(9)) && signal.is_set());
    }
}
