//! Threads that are confined before they do any work.

use std::io;
use std::thread;

use crate::confine::capabilities::{CapabilitySet, keep_only};
use crate::confine::filter::{self, Filter};

/// The confinement of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confined {
    /// Reads untrusted data from descriptors that it received: it opens and connects nothing, and
    /// starts no threads or programs. It has no capabilities.
    Reader,
    /// The same, but it can accept connections and start threads.
    Listener,
    /// Opens, connects and starts threads, with only these capabilities; calls that no thread here
    /// needs are forbidden.
    Worker(CapabilitySet),
    /// The same for a thread that searches for tracefs repeatedly: if tracefs is unmounted
    /// meanwhile, mount calls fail instead of ending the process.
    TracefsWorker(CapabilitySet),
}

impl Confined {
    /// A worker without capabilities.
    pub const WORKER: Self = Self::Worker(CapabilitySet::empty());

    /// Confines the calling thread until it ends. If the kernel refuses, the thread continues and
    /// [`crate::confine::failure`] has the reason: recording without confinement is better than not
    /// recording.
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

/// Runs a closure in a confined thread, and waits for it.
///
/// # Errors
/// Those of the closure; or if no thread can be started, or if it panics.
pub fn apart<T: Send>(
    confined: Confined,
    name: &str,
    run: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    apart_while(confined, name, run, || ()).0
}

/// The same, while the calling thread runs another closure; returns both results.
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
