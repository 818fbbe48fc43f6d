//! A thread that does for confined ones what those may not: opening files, looking into /proc.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::thread;

use crate::confine::capabilities::CapabilitySet;
use crate::confine::thread::Confined;

type Errand = Box<dyn FnOnce() + Send>;

/// Such a thread. It ends when the last one of these is dropped.
#[derive(Clone, Debug)]
pub struct Unconfined(Sender<Errand>);

impl Unconfined {
    /// Starts it; to be called by a thread that is not confined itself.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(name: &str) -> io::Result<Self> {
        Self::with(CapabilitySet::empty(), name)
    }

    /// The same, with such capabilities.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn with(capabilities: CapabilitySet, name: &str) -> io::Result<Self> {
        let (errands, given) = mpsc::channel::<Errand>();
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            Confined::Worker(capabilities).enter();
            given.into_iter().for_each(|errand| errand());
        })?;
        Ok(Self(errands))
    }

    /// Has it do something, and waits for that.
    ///
    /// # Errors
    /// When what it did panicked: the thread is gone then.
    pub fn run<T: Send + 'static>(
        &self,
        errand: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let (done, is_done) = mpsc::sync_channel(1);
        let gone = || io::Error::other("the thread that opens files has ended");
        let errand = Box::new(move || {
            // The thread that asked may have ended.
            let _ = done.send(errand());
        });
        self.0.send(errand).map_err(|_| gone())?;
        is_done.recv().map_err(|_| gone())
    }
}
