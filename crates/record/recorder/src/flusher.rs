//! Has the disk keep what is recorded, every so often, in a thread of its own: a disk that is slow holds
//! up nobody who writes, and a power cut takes no more than what came since the last time.

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

/// A file that grows, and how far it is on the disk.
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

/// What has come since the flusher looked last.
#[derive(Debug, Default)]
struct NewFiles {
    growing: Vec<Growing>,
    /// The folder has names, and maybe files that don't grow, that are not on the disk.
    has_names: bool,
}

impl GrowingFiles {
    /// A file that was made in the folder, and grows from now on.
    pub(crate) fn add(&self, file: Growing) {
        let mut new = self.0.lock();
        new.growing.push(file);
        new.has_names = true;
    }

    /// Files were written in the folder, and are whole.
    pub(crate) fn note_written(&self) {
        self.0.lock().has_names = true;
    }

    fn take(&self) -> NewFiles {
        std::mem::take(&mut self.0.lock())
    }
}

/// The thread; it ends soon after it is dropped, and is not waited for then.
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
    /// Begins, with what is in a folder of the session by now; later it syncs files that grow, and
    /// the whole folder where something is new.
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
            // What is synced with the folder need not be synced again.
            let mut growing = files.take().growing;
            // What pages are read with comes first: without it they are of no use.
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

    /// Stops it and waits until then for its end; what went wrong, if anything did. A disk that is busy
    /// with the last second's pages is not waited for: they are synced once they are assembled.
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
