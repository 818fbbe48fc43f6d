//! A lake whose owner is killed after this many steps: nothing that it does afterwards happens.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use lake::store::{Entry, LocalFolder, Storage};

/// A folder that stops to change.
pub(crate) struct StoppingFolder {
    folder: LocalFolder,
    steps: Arc<Steps>,
}

/// Steps that are left, and those that were taken.
#[derive(Debug)]
pub(crate) struct Steps {
    left: AtomicUsize,
    pub(crate) taken: AtomicUsize,
}

impl Steps {
    fn take(&self) -> io::Result<()> {
        let enough = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Relaxed, Relaxed, enough).is_err() {
            return Err(io::Error::other("killed"));
        }
        self.taken.fetch_add(1, Relaxed);
        Ok(())
    }
}

/// A file whose every write is a step.
pub(crate) struct StoppingFile<F> {
    file: F,
    steps: Arc<Steps>,
}

impl<F: Write> Write for StoppingFile<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.steps.take()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl StoppingFolder {
    /// Killed after this many steps.
    pub(crate) fn after(steps: usize, root: &Path) -> Self {
        let steps = Steps { left: AtomicUsize::new(steps), taken: AtomicUsize::new(0) };
        Self { folder: LocalFolder::change(root).unwrap(), steps: Arc::new(steps) }
    }

    pub(crate) fn taken(&self) -> usize {
        self.steps.taken.load(Relaxed)
    }
}

impl Storage for StoppingFolder {
    type Unfinished = StoppingFile<<LocalFolder as Storage>::Unfinished>;
    type Read = File;

    fn begin(&self) -> io::Result<Self::Unfinished> {
        self.steps.take()?;
        Ok(StoppingFile { file: self.folder.begin()?, steps: Arc::clone(&self.steps) })
    }

    fn put(&self, mut file: Self::Unfinished, name: &str) -> io::Result<()> {
        // Killed before all is written, before it is renamed, or after that.
        self.steps.take()?;
        file.flush()?;
        self.steps.take()?;
        self.folder.put(file.file, name)?;
        self.steps.take()
    }

    fn give_up(&self, file: Self::Unfinished) -> io::Result<()> {
        self.steps.take()?;
        self.folder.give_up(file.file)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        self.folder.list(folder)
    }

    fn unfinished(&self) -> io::Result<Vec<Entry>> {
        self.folder.unfinished()
    }

    fn open(&self, name: &str) -> io::Result<File> {
        self.folder.open(name)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.steps.take()?;
        self.folder.remove(name)
    }
}
