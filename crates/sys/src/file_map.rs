//! A whole file as a byte slice, mapped where the system can, read where it can't (pipes).

use std::fs::File;
use std::io::Read;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Pipes and other inputs that can't be mapped are read into memory up to this many bytes.
const MAX_UNMAPPED_BYTES: u64 = 4 << 30;

/// A file could not be opened for reading.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system refused; the cause says why.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The path names a directory.
    #[error("{} is a directory", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// A pipe delivered more than fits in memory.
    #[error("{} holds more than {MAX_UNMAPPED_BYTES} bytes and is not a regular file; save it to one first", path.display())]
    TooLong {
        /// The pipe.
        path: PathBuf,
    },
}

#[derive(Debug)]
enum Bytes {
    Mapped(memmap2::Mmap, File),
    Read(Vec<u8>),
}

/// The bytes of a file, for as long as this value lives.
#[derive(Debug)]
pub struct FileMap {
    bytes: Bytes,
}

impl FileMap {
    /// Maps the file at `path`; what can't be mapped (a pipe, an empty file) is read.
    ///
    /// # Errors
    /// When the file can't be opened or read, or is a directory.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if metadata.is_dir() {
            return Err(OpenError::Directory { path: path.to_owned() });
        }
        if !metadata.is_file() || metadata.len() == 0 {
            let bytes = read_all(file, path)?;
            return Ok(Self { bytes: Bytes::Read(bytes) });
        }
        // SAFETY: the mapping is private and read-only, and only ever lent as `&[u8]`. A recording
        // is not written any more once it is analysed; a process that rewrites it meanwhile changes
        // the numbers read, and one that truncates it ends this process with SIGBUS. No memory of
        // this process other than the mapping is reachable either way, and every reader checks
        // bounds against the length taken here.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(io)?;
        Ok(Self { bytes: Bytes::Mapped(map, file) })
    }
}

impl FileMap {
    /// The `len` bytes at `offset`, read into `buffer` unless they are in memory already.
    ///
    /// For bulk data this beats touching the mapping: no page table has to be filled, the bytes
    /// arrive in the cache, and a file cut short meanwhile is an error in place of a SIGBUS.
    ///
    /// # Errors
    /// When the file ends before, or can't be read.
    pub fn read_at<'a>(
        &'a self,
        offset: u64,
        len: usize,
        buffer: &'a mut Vec<u8>,
    ) -> std::io::Result<&'a [u8]> {
        match &self.bytes {
            Bytes::Mapped(_, file) => {
                // The length was checked against the file's when its recording was opened; growth
                // by steps is not needed.
                if buffer.len() < len {
                    buffer.resize(len, 0);
                }
                let buffer = buffer.get_mut(..len).unwrap_or_default();
                file.read_exact_at(buffer, offset)?;
                Ok(buffer)
            }
            Bytes::Read(bytes) => usize::try_from(offset)
                .ok()
                .and_then(|at| bytes.get(at..)?.get(..len))
                .ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Bytes that are in memory already, for readers that take a mapped file.
impl From<Vec<u8>> for FileMap {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes: Bytes::Read(bytes) }
    }
}

fn read_all(file: File, path: &Path) -> Result<Vec<u8>, OpenError> {
    let mut bytes = Vec::new();
    file.take(MAX_UNMAPPED_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
    if bytes.len() as u64 > MAX_UNMAPPED_BYTES {
        return Err(OpenError::TooLong { path: path.to_owned() });
    }
    Ok(bytes)
}

impl Deref for FileMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map, _) => map,
            Bytes::Read(bytes) => bytes,
        }
    }
}
