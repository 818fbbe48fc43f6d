//! Maps files and steps of a lake to calls of an object store.
//!
//! There is no lock. A session's row is put only if there is no object or the object that was read. If two runs
//! change a session concurrently, one of them fails, and none of its rows become valid.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::sync::Arc;

use parking_lot::Mutex;

use super::file::ObjectFile;
use super::{Before, Objects};
use crate::places::{self, ROOT};
use crate::storage::{Entry, Storage};

/// Files up to this size are read completely when opened.
const SMALL_BYTES: u64 = 4 << 20;

/// A lake below a folder of a store.
#[derive(Debug)]
pub struct ObjectLake<O> {
    objects: Arc<O>,
    fault: Mutex<Option<String>>,
}

/// A local file without a name, uploaded when complete. A crash leaves nothing of it.
#[derive(Debug)]
pub struct UnfinishedObject(BufWriter<File>);

impl Write for UnfinishedObject {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<O: Objects + 'static> ObjectLake<O> {
    /// Opens an existing lake.
    ///
    /// # Errors
    /// When there is none, or the store does not answer.
    pub fn open(objects: O) -> io::Result<Self> {
        let lake = Self::change(objects);
        // A lake without sessions may have records of rejected recordings.
        if lake.list(&places::sessions())?.is_empty() && lake.list(ROOT)?.is_empty() {
            let why = format!("there is no lake: there are no objects under {ROOT}/");
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        }
        Ok(lake)
    }

    /// A lake that the first addition creates.
    #[must_use]
    pub fn change(objects: O) -> Self {
        Self { objects: Arc::new(objects), fault: Mutex::default() }
    }

    /// The store.
    #[must_use]
    pub fn objects(&self) -> &O {
        &self.objects
    }

    fn note<T>(&self, done: io::Result<T>) -> io::Result<T> {
        done.inspect_err(|error| {
            let mut first = self.fault.lock();
            first.get_or_insert_with(|| error.to_string());
        })
    }

    fn put_where(
        &self,
        file: UnfinishedObject,
        name: &str,
        before: &Before,
    ) -> io::Result<Option<String>> {
        let mut file = file.0.into_inner().map_err(io::IntoInnerError::into_error)?;
        let bytes = file.stream_position()?;
        file.rewind()?;
        self.objects.put(name, bytes, &mut file, before)
    }
}

impl<O: Objects + 'static> Storage for ObjectLake<O> {
    type Unfinished = UnfinishedObject;
    type Read = ObjectFile<O>;

    fn begin(&self) -> io::Result<UnfinishedObject> {
        let file = self.note(tempfile::tempfile())?;
        Ok(UnfinishedObject(BufWriter::with_capacity(1 << 18, file)))
    }

    fn put(&self, file: UnfinishedObject, name: &str) -> io::Result<()> {
        self.note(self.put_where(file, name, &Before::Anything)).map(|_| ())
    }

    fn replace(&self, file: UnfinishedObject, name: &str, known: Option<&Entry>) -> io::Result<()> {
        let before = match known {
            None => Before::Nothing,
            Some(Entry { version: Some(version), .. }) => Before::Version(version.clone()),
            Some(_) => {
                let why = format!("{name}: the store returned no version (ETag)");
                return self.note(Err(io::Error::other(why)));
            }
        };
        self.note(self.put_where(file, name, &before)).map(|_| ())
    }

    fn rename(&self, _: &Entry, _: &str) -> io::Result<Option<Entry>> {
        Ok(None)
    }

    fn give_up(&self, _: UnfinishedObject) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let mut all = self.objects.list(folder)?;
        all.sort();
        Ok(all)
    }

    /// The store itself removes parts of incomplete uploads.
    fn unfinished(&self) -> io::Result<Vec<Entry>> {
        Ok(Vec::new())
    }

    fn open(&self, files: &[&Entry]) -> io::Result<Vec<ObjectFile<O>>> {
        let is_small = |file: &&&Entry| file.bytes <= SMALL_BYTES;
        let small: Vec<Entry> =
            files.iter().filter(is_small).map(|file| Entry::clone(file)).collect();
        let contents =
            if small.is_empty() { Vec::new() } else { self.objects.read_whole(&small)? };
        let mut contents = contents.into_iter();
        let open = |file: &&Entry| {
            let (objects, entry) = (Arc::clone(&self.objects), Entry::clone(file));
            let bytes = if is_small(&file) { contents.next() } else { None };
            match bytes {
                Some(bytes) => ObjectFile::with_bytes(objects, entry, bytes),
                None => ObjectFile::new(objects, entry),
            }
        };
        Ok(files.iter().map(open).collect())
    }

    fn remove(&self, files: &[&str]) -> io::Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = files.iter().map(|&name| name.to_owned()).collect();
        self.note(self.objects.remove(&names))
    }

    fn write_fault(&self) -> Option<String> {
        self.fault.lock().clone()
    }
}
