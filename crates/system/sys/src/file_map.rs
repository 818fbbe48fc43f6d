//! A file as a byte slice, mapped if possible; piped data is first spooled to a file.
//!
//! A user who can write to a file can truncate it while it is read. The process survives this, and
//! [`check_mapped_files`] reports it.

use std::fs::File;
use std::io::Read;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::cut::Watched;
use crate::open_error::{OpenError, OpenFault};
use crate::spool::{Spooled, spool};

/// A file was truncated while it was read: bytes read since then can be zeros.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} {}", path.display(), self.what())]
pub struct CutShort {
    /// The file.
    pub path: PathBuf,
    /// Offset of the first missing byte.
    pub offset: u64,
    /// Length of the file when it was opened.
    pub was_bytes: u64,
    /// Current length of the file.
    pub is_bytes: u64,
}

impl CutShort {
    fn what(&self) -> String {
        let Self { offset, was_bytes, is_bytes, .. } = self;
        if is_bytes < was_bytes {
            return format!(
                "was truncated from {was_bytes} to {is_bytes} bytes while it was read: data from offset \
                 {offset} on is missing"
            );
        }
        format!("could not be read at offset {offset} while it was mapped")
    }
}

/// Mapped files, and files that were truncated while they were mapped.
static MAPPED: Mutex<Vec<Arc<Mapped>>> = Mutex::new(Vec::new());

/// Checks that no mapped file was truncated while it was mapped.
///
/// # Errors
/// The first truncated file.
pub fn check_mapped_files() -> Result<(), CutShort> {
    let mapped = MAPPED.lock();
    mapped.iter().find_map(|mapping| mapping.cut_short()).map_or(Ok(()), Err)
}

#[derive(Debug)]
struct Mapped {
    // Dropped first: the mapping must not be watched longer than it exists.
    watched: Watched,
    map: memmap2::Mmap,
    file: File,
    path: PathBuf,
}

impl Mapped {
    fn cut_short(&self) -> Option<CutShort> {
        let was_bytes = self.map.len() as u64;
        let is_bytes = self.file.metadata().ok()?.len();
        // A truncation within the last page gives zeros without a fault.
        let cut = (is_bytes < was_bytes).then_some(is_bytes);
        let missing = self.watched.missing_at().map(|at| at as u64);
        let offset = cut.into_iter().chain(missing).min()?;
        Some(CutShort { path: self.path.clone(), offset, was_bytes, is_bytes })
    }
}

#[derive(Debug)]
enum Bytes {
    Mapped(Arc<Mapped>),
    Read(Vec<u8>),
}

/// The bytes of a file, for as long as this value lives.
#[derive(Debug)]
pub struct FileMap {
    bytes: Bytes,
}

impl Drop for FileMap {
    fn drop(&mut self) {
        let Bytes::Mapped(mapping) = &self.bytes else { return };
        // Otherwise the truncation would be forgotten.
        if mapping.cut_short().is_none() {
            let mut all = MAPPED.lock();
            all.retain(|other| !Arc::ptr_eq(other, mapping));
        }
    }
}

impl FileMap {
    /// Maps the file at `path`. If it cannot be mapped (a pipe), spools it to an unnamed file in
    /// the folder for temporary files (`TMPDIR`), unless it is smaller than a megabyte.
    ///
    /// # Errors
    /// If the file cannot be opened or read, or is a directory.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let io = OpenError::io(path);
        let file = File::open(path).map_err(&io)?;
        let metadata = file.metadata().map_err(io)?;
        if metadata.is_dir() {
            return Err(OpenError { path: path.to_owned(), fault: OpenFault::Directory });
        }
        if metadata.is_file() && metadata.len() > 0 {
            return Self::map(file, path);
        }
        Self::spooled(file, path)
    }

    /// Spools the output of a reader, as [`FileMap::open`] does for a pipe; messages call it
    /// `path`.
    ///
    /// # Errors
    /// If it cannot be read to its end, or exceeds the spool's limit.
    pub fn spooled(from: impl Read, path: &Path) -> Result<Self, OpenError> {
        let io = OpenError::io(path);
        match spool(from).map_err(io)? {
            Spooled::Bytes(bytes) => Ok(Self { bytes: Bytes::Read(bytes) }),
            Spooled::File(file) => Self::map(file, path),
            Spooled::TooMuch(limit) => {
                Err(OpenError { path: path.to_owned(), fault: OpenFault::TooLong(limit) })
            }
        }
    }

    fn map(file: File, path: &Path) -> Result<Self, OpenError> {
        let io = OpenError::io(path);
        // SAFETY: the mapping is private and read-only, so this process cannot change it. Other
        // writers of the file can, which no mapping prevents: bytes that are read twice can then
        // differ. They are only borrowed as `&[u8]`, no unsafe code depends on their values, and
        // every reader checks bounds against the length of the mapping. Truncated pages become
        // zeros.
        let map = unsafe { memmap2::MmapOptions::new().map_copy_read_only(&file) }.map_err(&io)?;
        // SAFETY: this value owns the mapping, and drops it after the watch. Its users expect that
        // bytes change, as above.
        let watched = unsafe { Watched::new(map.as_ptr(), map.len(), false) }.map_err(io)?;
        let mapped = Arc::new(Mapped { watched, map, file, path: path.to_owned() });
        MAPPED.lock().push(Arc::clone(&mapped));
        Ok(Self { bytes: Bytes::Mapped(mapped) })
    }
}

/// Bytes of a page-cache page. The kernel copies from it with `rep movsb`, which is five times
/// slower on some processors if the target is 1 to 63 bytes further into its page than the source:
/// malloc's large blocks begin 16 bytes into a page. Measured on an AMD EPYC with `fsrm`: 2.6 GB/s
/// instead of 12.7.
const PAGE_BYTES: usize = 4096;

impl FileMap {
    /// The `len` bytes at `offset`, read into `buffer` unless they are already in memory.
    ///
    /// For bulk data this is faster than the mapping: no page table has to be filled, the bytes
    /// arrive in the cache, and a truncation of the file is an error at once.
    ///
    /// # Errors
    /// If the file ends before, or cannot be read.
    pub fn read_at<'a>(
        &'a self,
        offset: u64,
        len: usize,
        buffer: &'a mut Vec<u8>,
    ) -> std::io::Result<&'a [u8]> {
        match &self.bytes {
            Bytes::Mapped(mapped) => {
                // The length was checked against the file's size when its recording was opened, so
                // the buffer need not grow in steps.
                let room = len.saturating_add(2 * PAGE_BYTES);
                if buffer.len() < room {
                    buffer.resize(room, 0);
                }
                let begin = buffer.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES)
                    + (offset % PAGE_BYTES as u64) as usize;
                let buffer = buffer.get_mut(begin..begin + len).unwrap_or_default();
                mapped.file.read_exact_at(buffer, offset)?;
                Ok(buffer)
            }
            Bytes::Read(bytes) => usize::try_from(offset)
                .ok()
                .and_then(|at| bytes.get(at..)?.get(..len))
                .ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Bytes in memory, for readers that take a mapped file.
impl From<Vec<u8>> for FileMap {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes: Bytes::Read(bytes) }
    }
}

impl Deref for FileMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(mapped) => &mapped.map,
            Bytes::Read(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_cut_while_it_is_mapped_is_reported() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (to, offset) in [(0, 0), (5000, 5000), (99_999, 99_999)] {
            std::fs::write(file.path(), vec![7; 100_000]).unwrap();
            let map = FileMap::open(file.path()).unwrap();
            let cut_of = |map: &FileMap| match &map.bytes {
                Bytes::Mapped(mapped) => mapped.cut_short(),
                Bytes::Read(_) => None,
            };
            assert_eq!((map.last(), cut_of(&map)), (Some(&7), None));
            file.as_file().set_len(to).unwrap();
            assert_eq!((map.len(), map.last()), (100_000, Some(&0)));
            let cut = cut_of(&map).unwrap();
            assert_eq!((cut.offset, cut.was_bytes, cut.is_bytes), (offset, 100_000, to));
            drop(map);
            assert_eq!(check_mapped_files().unwrap_err().path, file.path());
            MAPPED.lock().clear();
        }
    }
}
