//! A lake in a folder or in an object store, for callers that accept either.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use bytes::Bytes;
use parquet::errors::Result;
use parquet::file::reader::{ChunkReader, Length};

use super::local::{LocalFolder, UnfinishedFile};
use super::object::{ObjectFile, ObjectLake, ObjectsByProcess, UnfinishedObject};
use super::storage::{Entry, Storage};

/// Whether the lake's name is that of an object store.
#[must_use]
pub fn is_in_store(lake: &Path) -> bool {
    lake.as_os_str().as_encoded_bytes().starts_with(b"s3://")
}

/// A lake in either place.
#[derive(Debug)]
pub enum Lake {
    /// In a folder of this machine.
    Folder(LocalFolder),
    /// In a store, reached through another process.
    Store(ObjectLake<ObjectsByProcess>),
}

/// A file that is being written.
#[derive(Debug)]
pub enum Unfinished {
    /// In a folder.
    Folder(UnfinishedFile),
    /// In a store.
    Store(UnfinishedObject),
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Folder(file) => file.write(bytes),
            Self::Store(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Folder(file) => file.flush(),
            Self::Store(file) => file.flush(),
        }
    }
}

/// A file that is open for reading.
#[derive(Debug)]
pub enum Opened {
    /// In a folder.
    Folder(File),
    /// In a store.
    Store(ObjectFile<ObjectsByProcess>),
}

impl Length for Opened {
    fn len(&self) -> u64 {
        match self {
            Self::Folder(file) => Length::len(file),
            Self::Store(file) => Length::len(file),
        }
    }
}

impl ChunkReader for Opened {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> Result<Box<dyn Read>> {
        Ok(match self {
            Self::Folder(file) => Box::new(file.get_read(start)?),
            Self::Store(file) => Box::new(file.get_read(start)?),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        match self {
            Self::Folder(file) => file.get_bytes(start, length),
            Self::Store(file) => file.get_bytes(start, length),
        }
    }
}

fn of_other() -> io::Error {
    io::Error::other("the file belongs to another lake")
}

impl Storage for Lake {
    type Unfinished = Unfinished;
    type Read = Opened;

    fn begin(&self) -> io::Result<Unfinished> {
        Ok(match self {
            Self::Folder(lake) => Unfinished::Folder(lake.begin()?),
            Self::Store(lake) => Unfinished::Store(lake.begin()?),
        })
    }

    fn put(&self, file: Unfinished, name: &str) -> io::Result<()> {
        match (self, file) {
            (Self::Folder(lake), Unfinished::Folder(file)) => lake.put(file, name),
            (Self::Store(lake), Unfinished::Store(file)) => lake.put(file, name),
            _ => Err(of_other()),
        }
    }

    fn replace(&self, file: Unfinished, name: &str, known: Option<&Entry>) -> io::Result<()> {
        match (self, file) {
            (Self::Folder(lake), Unfinished::Folder(file)) => lake.replace(file, name, known),
            (Self::Store(lake), Unfinished::Store(file)) => lake.replace(file, name, known),
            _ => Err(of_other()),
        }
    }

    fn rename(&self, from: &Entry, to: &str) -> io::Result<Option<Entry>> {
        match self {
            Self::Folder(lake) => lake.rename(from, to),
            Self::Store(lake) => lake.rename(from, to),
        }
    }

    fn give_up(&self, file: Unfinished) -> io::Result<()> {
        match (self, file) {
            (Self::Folder(lake), Unfinished::Folder(file)) => lake.give_up(file),
            (Self::Store(lake), Unfinished::Store(file)) => lake.give_up(file),
            _ => Err(of_other()),
        }
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        match self {
            Self::Folder(lake) => lake.list(folder),
            Self::Store(lake) => lake.list(folder),
        }
    }

    fn unfinished(&self) -> io::Result<Vec<Entry>> {
        match self {
            Self::Folder(lake) => lake.unfinished(),
            Self::Store(lake) => lake.unfinished(),
        }
    }

    fn open(&self, files: &[&Entry]) -> io::Result<Vec<Opened>> {
        Ok(match self {
            Self::Folder(lake) => lake.open(files)?.into_iter().map(Opened::Folder).collect(),
            Self::Store(lake) => lake.open(files)?.into_iter().map(Opened::Store).collect(),
        })
    }

    fn remove(&self, files: &[&str]) -> io::Result<()> {
        match self {
            Self::Folder(lake) => lake.remove(files),
            Self::Store(lake) => lake.remove(files),
        }
    }

    fn write_fault(&self) -> Option<String> {
        match self {
            Self::Folder(lake) => lake.write_fault(),
            Self::Store(lake) => lake.write_fault(),
        }
    }
}
