//! A thread that performs operations which confined threads may not: opening files, reading /proc.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::thread;

use crate::confine::capabilities::CapabilitySet;
use crate::confine::thread::Confined;

type Errand = Box<dyn FnOnce() + Send>;

/// A handle of this thread, which ends when the last handle is dropped.
#[derive(Clone, Debug)]
pub struct Unconfined(Sender<Errand>);

impl Unconfined {
    /// Starts the thread; must be called by an unconfined thread.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(name: &str) -> io::Result<Self> {
        Self::with(CapabilitySet::empty(), name)
    }

    /// Starts the thread with these capabilities.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn with(capabilities: CapabilitySet, name: &str) -> io::Result<Self> {
        let (errands, given) = mpsc::channel::<Errand>();
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            Confined::Worker(capabilities).enter();
            given.into_iter().for_each(|errand| errand());
        })?;
        Ok(Self(errands))
    }

    /// Runs a closure in the thread, and waits for it.
    ///
    /// # Errors
    /// If the closure panicked, which ends the thread.
    pub fn run<T: Send + 'static>(
        &self,
        errand: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let (done, is_done) = mpsc::sync_channel(1);
        let gone = || io::Error::other("the thread that opens files has ended");
        let errand = Box::new(move || {
            // The requesting thread may have ended.
            let _ = done.send(errand());
        });
        self.0.send(errand).map_err(|_| gone())?;
        is_done.recv().map_err(|_| gone())
    }
}
