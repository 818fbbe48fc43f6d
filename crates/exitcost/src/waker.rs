//! Wakes the tiny machine when it rings: another thread, which first lets it fall asleep.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

/// An eventfd for others and its owner.
pub(crate) fn bell() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC)?)
}

/// Adds one to an eventfd.
pub(crate) fn ring(bell: &impl AsFd) -> io::Result<()> {
    rustix::io::write(bell, &1_u64.to_ne_bytes())?;
    Ok(())
}

/// Waits until an eventfd was rung, and sets it back to 0.
pub(crate) fn wait(bell: &impl AsFd) -> io::Result<()> {
    rustix::io::read(bell, &mut [0; 8])?;
    Ok(())
}

/// The thread, and the moments of its signals.
#[derive(Debug)]
pub(crate) struct Waker {
    thread: JoinHandle<io::Result<()>>,
    signals: Receiver<u64>,
}

impl Waker {
    /// Answers so many rings of `asks` with one of `wakes` each, a nap after it.
    pub(crate) fn start(
        asks: &OwnedFd,
        wakes: &OwnedFd,
        count: u64,
        nap: Duration,
    ) -> io::Result<Self> {
        let (asks, wakes) = (asks.try_clone()?, wakes.try_clone()?);
        let (tell, signals) = channel();
        let answer = move || {
            for _ in 0..count {
                wait(&asks)?;
                sleep(nap);
                let now = sys::time_stamp_counter();
                ring(&wakes)?;
                // Nobody listens when the machine failed.
                let _ = tell.send(now);
            }
            Ok(())
        };
        let thread = Builder::new().name("waker".into()).spawn(answer)?;
        Ok(Self { thread, signals })
    }

    /// The time stamp counter at each signal.
    pub(crate) fn end(self) -> io::Result<Vec<u64>> {
        self.thread.join().map_err(|_| io::Error::other("the waker panicked"))??;
        Ok(self.signals.try_iter().collect())
    }
}
