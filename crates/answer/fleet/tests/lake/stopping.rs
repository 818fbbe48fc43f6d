//! A lake whose owner is killed after a number of steps: later changes have no effect.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use fleet::lake::store::{Entry, LocalFolder, Storage};

/// A folder that ignores changes after a number of steps.
pub(crate) struct StoppingFolder {
    folder: LocalFolder,
    steps: Arc<Steps>,
}

/// Remaining steps, and completed steps.
#[derive(Debug)]
pub(crate) struct Steps {
    remaining: AtomicUsize,
    pub(crate) done: AtomicUsize,
}

impl Steps {
    fn take(&self) -> io::Result<()> {
        let enough = |remaining: usize| remaining.checked_sub(1);
        if self.remaining.fetch_update(Relaxed, Relaxed, enough).is_err() {
            return Err(io::Error::other("killed"));
        }
        self.done.fetch_add(1, Relaxed);
        Ok(())
    }
}

/// A file whose every write is a step.
pub(crate) struct StoppingFile<F> {
    /// `None` after it was put in place or discarded.
    file: Option<F>,
    steps: Arc<Steps>,
}

impl<F> StoppingFile<F> {
    fn there(&mut self) -> io::Result<&mut F> {
        self.file.as_mut().ok_or_else(|| io::Error::other("the file is gone"))
    }

    fn take(mut self) -> io::Result<F> {
        self.file.take().ok_or_else(|| io::Error::other("the file is gone"))
    }
}

impl<F> Drop for StoppingFile<F> {
    /// A killed process does not clean up: the file stays.
    fn drop(&mut self) {
        if self.steps.remaining.load(Relaxed) == 0 {
            std::mem::forget(self.file.take());
        }
    }
}

impl<F: Write> Write for StoppingFile<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.steps.take()?;
        self.there()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.there()?.flush()
    }
}

impl StoppingFolder {
    /// Killed after `steps` steps.
    pub(crate) fn after(steps: usize, root: &Path) -> Self {
        let steps = Steps { remaining: AtomicUsize::new(steps), done: AtomicUsize::new(0) };
        Self { folder: LocalFolder::change(root).unwrap(), steps: Arc::new(steps) }
    }

    pub(crate) fn steps_taken(&self) -> usize {
        self.steps.done.load(Relaxed)
    }
}

impl Storage for StoppingFolder {
    type Unfinished = StoppingFile<<LocalFolder as Storage>::Unfinished>;
    type Read = File;

    fn begin(&self) -> io::Result<Self::Unfinished> {
        self.steps.take()?;
        Ok(StoppingFile { file: Some(self.folder.begin()?), steps: Arc::clone(&self.steps) })
    }

    fn put(&self, mut file: Self::Unfinished, name: &str) -> io::Result<()> {
        // Each `take` is a point of death: before all is written, before the rename, or after it.
        self.steps.take()?;
        file.flush()?;
        self.steps.take()?;
        self.folder.put(file.take()?, name)?;
        self.steps.take()
    }

    fn replace(&self, file: Self::Unfinished, name: &str, _: Option<&Entry>) -> io::Result<()> {
        self.put(file, name)
    }

    fn rename(&self, from: &Entry, to: &str) -> io::Result<Option<Entry>> {
        self.steps.take()?;
        let there = self.folder.rename(from, to)?;
        self.steps.take()?;
        Ok(there)
    }

    fn give_up(&self, file: Self::Unfinished) -> io::Result<()> {
        self.steps.take()?;
        self.folder.give_up(file.take()?)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        self.folder.list(folder)
    }

    fn unfinished(&self) -> io::Result<Vec<Entry>> {
        self.folder.unfinished()
    }

    fn open(&self, files: &[&Entry]) -> io::Result<Vec<File>> {
        self.folder.open(files)
    }

    fn remove(&self, files: &[&str]) -> io::Result<()> {
        for file in files {
            self.steps.take()?;
            self.folder.remove(&[file])?;
        }
        Ok(())
    }

    fn write_fault(&self) -> Option<String> {
        self.folder.write_fault()
    }
}
