//! Wakes the tiny machine on request from another thread, which first lets it halt.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

/// Makes an eventfd.
pub(crate) fn bell() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC)?)
}

/// Adds one to an eventfd.
pub(crate) fn ring(bell: &impl AsFd) -> io::Result<()> {
    rustix::io::write(bell, &1_u64.to_ne_bytes())?;
    Ok(())
}

/// Waits until an eventfd is signalled, and resets it to 0.
pub(crate) fn wait(bell: &impl AsFd) -> io::Result<()> {
    rustix::io::read(bell, &mut [0; 8])?;
    Ok(())
}

/// The thread, and the times of its signals. Drop ends it.
#[derive(Debug)]
pub(crate) struct Waker {
    /// `None` once it has ended.
    thread: Option<JoinHandle<io::Result<()>>>,
    signals: Receiver<u64>,
    asks: OwnedFd,
    is_over: Arc<AtomicBool>,
}

impl Waker {
    /// Answers this many signals of `asks` with one of `wakes` each, after a delay of `nap`.
    pub(crate) fn start(
        asks: &OwnedFd,
        wakes: &OwnedFd,
        count: u64,
        nap: Duration,
    ) -> io::Result<Self> {
        let (asks_clone, asks, wakes) = (asks.try_clone()?, asks.try_clone()?, wakes.try_clone()?);
        let is_over = Arc::new(AtomicBool::new(false));
        let (stop, (sender, signals)) = (Arc::clone(&is_over), channel());
        let answer = move || {
            for _ in 0..count {
                wait(&asks)?;
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                sleep(nap);
                let now = sys::time_stamp_counter();
                ring(&wakes)?;
                // Nobody receives it after the machine has failed.
                let _ = sender.send(now);
            }
            Ok(())
        };
        let thread = Builder::new().name("waker".into()).spawn(answer)?;
        Ok(Self { thread: Some(thread), signals, asks: asks_clone, is_over })
    }

    /// The TSC at each signal.
    pub(crate) fn end(mut self) -> io::Result<Vec<u64>> {
        if let Some(thread) = self.thread.take() {
            thread.join().map_err(|_| io::Error::other("the waker panicked"))??;
        }
        Ok(self.signals.try_iter().collect())
    }
}

impl Drop for Waker {
    /// The thread waits for a signal of a machine that has failed: this one ends it.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.is_over.store(true, Ordering::Relaxed);
            if ring(&self.asks).is_ok() {
                let _ = thread.join();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waker_ends_also_when_nobody_asks_any_more() {
        let (asks, wakes) = (bell().unwrap(), bell().unwrap());
        let waker = Waker::start(&asks, &wakes, 2, Duration::ZERO).unwrap();
        ring(&asks).unwrap();
        wait(&wakes).unwrap();
        // Joins the thread, which waits for the second signal.
        drop(waker);
    }

    #[test]
    fn each_ring_is_answered_and_its_time_kept() {
        let (asks, wakes) = (bell().unwrap(), bell().unwrap());
        let waker = Waker::start(&asks, &wakes, 2, Duration::ZERO).unwrap();
        for _ in 0..2 {
            ring(&asks).unwrap();
            wait(&wakes).unwrap();
        }
        assert_eq!(waker.end().unwrap().len(), 2);
    }
}
