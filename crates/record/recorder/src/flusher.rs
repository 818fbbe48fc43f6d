//! Syncs recorded data to the disk at intervals, in a separate thread: a slow disk does not delay the writers, and a
//! power cut loses only the last interval.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use os::confine::Confined;
use os::folder::{Folder, Syncer};
use os::waits::{Deadline, Signal, Wait};
use parking_lot::Mutex;

use crate::task::{Outcome, Task};

/// Default interval of syncs to the disk.
pub(crate) const FLUSH: Duration = Duration::from_secs(1);

/// A file that grows, and how much of it is synced.
#[derive(Debug)]
pub(crate) struct Growing {
    file: Syncer,
    /// Bytes written so far, counted by the writers.
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

/// Growing files of a folder; the creator of a file adds it.
#[derive(Clone, Debug, Default)]
pub(crate) struct GrowingFiles(Arc<Mutex<NewFiles>>);

/// News since the flusher's last round.
#[derive(Debug, Default)]
struct NewFiles {
    growing: Vec<Growing>,
    /// The folder has unsynced names, and possibly files that do not grow.
    has_names: bool,
}

impl GrowingFiles {
    /// Adds a new file that grows from now on.
    pub(crate) fn add(&self, file: Growing) {
        let mut new = self.0.lock();
        new.growing.push(file);
        new.has_names = true;
    }

    /// Notes that complete files were written to the folder.
    pub(crate) fn note_written(&self) {
        self.0.lock().has_names = true;
    }

    fn take(&self) -> NewFiles {
        std::mem::take(&mut self.0.lock())
    }
}

/// The thread. Drop stops it without waiting.
#[derive(Debug)]
pub(crate) struct Flusher {
    stop: Stops,
    task: Task<io::Result<()>>,
}

/// Stops the thread when it is dropped.
#[derive(Debug)]
struct Stops(Signal);

impl Drop for Stops {
    fn drop(&mut self) {
        self.0.set();
    }
}

impl Flusher {
    /// Starts, and first syncs the content of the session's folder; later syncs growing files, and the whole folder if
    /// it has new names.
    pub(crate) fn start(
        session: Folder,
        folder: Folder,
        files: GrowingFiles,
        every: Duration,
    ) -> io::Result<Self> {
        let stop = Signal::new()?;
        let of_thread = stop.clone();
        let run = move || {
            let is_over = || of_thread.is_set();
            // Files synced with the folder need no second sync.
            let mut growing = files.take().growing;
            // Texts that decode the pages come first: without them, pages are useless.
            let mut ended = folder.sync_all(&is_over).and(session.sync());
            while !of_thread.wait(every) {
                let new = files.take();
                growing.extend(new.growing);
                if new.has_names {
                    ended = ended.and(folder.sync_all(&is_over));
                }
                for file in &mut growing {
                    let synced = file.sync();
                    ended = ended.and(synced);
                }
            }
            ended
        };
        let task = Task::spawn("flush".into(), Confined::WORKER, run)?;
        Ok(Self { stop: Stops(stop), task })
    }

    /// Stops the thread and waits for it until `until`; returns its error, if any. Does not wait for a busy disk:
    /// assembling syncs the last pages.
    pub(crate) fn end(self, until: Deadline) -> Option<String> {
        drop(self.stop);
        let error = match self.task.end(Wait::until(until)) {
            Outcome::Done(ended) => ended.err()?.to_string(),
            Outcome::Panicked => "its thread panicked".into(),
            Outcome::StillBusy => return None,
        };
        Some(format!("syncing pages to the disk failed during recording: {error}"))
    }
}
