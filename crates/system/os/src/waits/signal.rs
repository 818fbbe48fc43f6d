//! A one-time event for threads: a recording has ended, or the other side has disconnected.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::waits::wait::Wait;

/// A signal that all its clones share.
#[derive(Clone, Debug)]
pub struct Signal(Arc<OwnedFd>);

impl Signal {
    /// A signal that is not set.
    ///
    /// # Errors
    /// If the process has no more descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// A descriptor that is readable once the signal is set, to end a [`Wait`].
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    #[must_use]
    pub fn is_set(&self) -> bool {
        self.wait(Duration::ZERO)
    }

    /// Waits for the signal, at most for this time; returns whether it is set.
    pub fn wait(&self, timeout: Duration) -> bool {
        let timeout = Timespec::try_from(timeout).ok();
        let mut fds = [PollFd::new(&*self.0, PollFlags::IN)];
        poll(&mut fds, timeout.as_ref()).is_ok_and(|ready| ready > 0)
    }

    /// Waits for the signal, at most as long as `wait`; returns whether it is set.
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

    /// Sets the signal, for current and later waiters.
    pub fn set(&self) {
        // The counter is never read and increases by one, so it cannot overflow.
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
