//! Threads that are confined before they do anything.

use std::io;
use std::thread;

use crate::confine::capabilities::{CapabilitySet, keep_only};
use crate::confine::filter::{self, Filter};

/// How a thread is confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confined {
    /// It reads what strangers send, from descriptors that it was given: it opens nothing, connects to
    /// nothing, starts no thread and no program. It has no capability.
    Reader,
    /// The same, and it takes connections and starts threads.
    Listener,
    /// It opens, connects, and starts threads, with no other capabilities than these; only what no thread
    /// here has a reason to call is forbidden.
    Worker(CapabilitySet),
    /// The same for one that looks for tracefs again and again: should it be unmounted meanwhile, that is
    /// an error, not the end of the process.
    TracefsWorker(CapabilitySet),
}

impl Confined {
    /// A worker without capabilities.
    pub const WORKER: Self = Self::Worker(CapabilitySet::empty());

    /// Confines the calling thread for as long as it lives. Where the kernel refuses, the thread goes
    /// on and [`crate::confine::failure`] says why: recording without this is better than not recording.
    pub fn enter(self) {
        let capabilities = match self {
            Self::Worker(capabilities) | Self::TracefsWorker(capabilities) => capabilities,
            Self::Reader | Self::Listener => CapabilitySet::empty(),
        };
        let filtered = keep_only(capabilities).and_then(|()| match self {
            Self::Reader => filter::apply(&[Filter::Never, Filter::Reader]),
            Self::Listener => filter::apply(&[Filter::Never, Filter::NoClone3, Filter::Listener]),
            Self::Worker(_) => filter::apply(&[Filter::Never]),
            Self::TracefsWorker(_) => filter::apply(&[Filter::NoMounts, Filter::NeverButMounts]),
        });
        if let Err(error) = filtered {
            filter::note_failure(&error);
        }
    }
}

/// Runs something in a confined thread of its own, and waits for it.
///
/// # Errors
/// Its own, and when no thread can be started, or it panics.
pub fn apart<T: Send>(
    confined: Confined,
    name: &str,
    run: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    apart_while(confined, name, run, || ()).0
}

/// The same, with something that the calling thread does meanwhile; both results.
pub fn apart_while<T: Send, M>(
    confined: Confined,
    name: &str,
    run: impl FnOnce() -> io::Result<T> + Send,
    meanwhile: impl FnOnce() -> M,
) -> (io::Result<T>, M) {
    thread::scope(|scope| {
        let builder = thread::Builder::new().name(name.to_owned());
        let thread = builder.spawn_scoped(scope, || {
            confined.enter();
            run()
        });
        let meanwhile = meanwhile();
        let panicked = |_| Err(io::Error::other(format!("the thread {name:?} panicked")));
        (thread.and_then(|thread| thread.join().unwrap_or_else(panicked)), meanwhile)
    })
}
