//! Has the disk keep what is recorded, every so often, in a thread of its own: a disk that is slow holds
//! no pump up, and a power cut takes no more than what came since the last time.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use channel::Signal;
use confine::Confined;
use folder::{Folder, Syncer};

use crate::error::{RecordError, Result};

/// How long the host's events stay off the disk at most, when nobody says otherwise.
pub(crate) const FLUSH: Duration = Duration::from_secs(1);

/// A file that grows, and how far it is on the disk.
#[derive(Debug)]
pub(crate) struct Growing {
    file: Syncer,
    /// Bytes that were written by now: whoever writes them counts.
    written: Arc<AtomicU64>,
    synced: u64,
}

impl Growing {
    pub(crate) fn new(file: Syncer, written: Arc<AtomicU64>) -> Self {
        Self { file, written, synced: 0 }
    }

    fn sync(&mut self) -> io::Result<()> {
        let written = self.written.load(Ordering::Acquire);
        if written != self.synced {
            self.file.sync()?;
            self.synced = written;
        }
        Ok(())
    }
}

/// The thread.
#[derive(Debug)]
pub(crate) struct Flusher(JoinHandle<io::Result<()>>);

impl Flusher {
    /// Begins: with what is in a folder by now, then with files that grow, until `stop` is given.
    pub(crate) fn start(
        folder: Folder,
        mut files: Vec<Growing>,
        every: Duration,
        stop: Signal,
    ) -> Result<Self> {
        let path = folder.path().to_owned();
        let run = move || {
            Confined::WORKER.enter();
            // What pages are read with comes first: without it they are of no use.
            let mut ended = folder.sync_all(&|| stop.is_given());
            while !stop.wait(every) {
                for file in &mut files {
                    let synced = file.sync();
                    ended = ended.and(synced);
                }
            }
            ended
        };
        let thread = thread::Builder::new().name("flush".into()).spawn(run);
        Ok(Self(thread.map_err(RecordError::io("start a thread for", &path))?))
    }

    /// Waits for its end, which comes soon after `stop`; what went wrong, if anything did.
    pub(crate) fn end(self) -> Option<String> {
        let ended = self.0.join().unwrap_or_else(|_| Err(io::Error::other("its thread panicked")));
        ended.err().map(|error| {
            format!("pages may not have been on the disk while it was recorded: {error}")
        })
    }
}
