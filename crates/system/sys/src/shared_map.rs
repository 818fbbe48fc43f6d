//! Memory that others change at any time: another process, or an untrusted guest.
//!
//! No reference to such memory is ever created. Words are loaded and stored as atomics, bytes are
//! copied with atomics, and the kernel reads and writes the memory through raw pointers. So the
//! other side cannot cause a data race here: it can only make values wrong.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};

use memmap2::{MmapOptions, MmapRaw};

use crate::cut::Watched;

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// The access mode of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Stores have no effect, so that reading a region does not change it.
    Read,
    /// Loads and stores.
    ReadWrite,
}

/// A shared mapping of a complete file, or of a device's memory.
///
/// Offsets and lengths are checked at every access. Data outside the mapping reads as zero and is
/// not written, so that a wrong offset can neither crash nor access other memory. Words are
/// little-endian.
#[derive(Debug)]
pub struct SharedMap {
    // Dropped first: the mapping must not be watched longer than it exists.
    watched: Option<Watched>,
    map: MmapRaw,
    access: Access,
    /// The path of the file, if known.
    path: PathBuf,
}

impl SharedMap {
    /// Maps the complete file at `path`, and touches every page, so that later accesses do not
    /// fault.
    ///
    /// Pages that are truncated while mapped become private memory of zeros: [`SharedMap::check`]
    /// reports this.
    ///
    /// # Errors
    /// If the file cannot be opened or mapped.
    pub fn open(path: &Path, access: Access) -> io::Result<Self> {
        let write = access == Access::ReadWrite;
        let file = OpenOptions::new().read(true).write(write).open(path)?;
        Self::of_file(&file, access)
    }

    /// Maps an open file, as [`SharedMap::open`] does.
    ///
    /// # Errors
    /// If the file is empty or cannot be mapped.
    pub fn of_file(file: &File, access: Access) -> io::Result<Self> {
        let map = Self::map(file, access, MmapOptions::new().populate())?;
        map.touch();
        Ok(map)
    }

    /// Maps an open file of an untrusted owner. Unlike [`SharedMap::of_file`], it does not touch
    /// pages that the owner has not written: their memory would be charged to this process.
    ///
    /// # Errors
    /// As for [`SharedMap::of_file`].
    pub fn of_others(file: &File, access: Access) -> io::Result<Self> {
        /// Unit of a file's block count.
        const BLOCK: u64 = 512;
        let about = file.metadata()?;
        if about.blocks().saturating_mul(BLOCK) >= about.len() {
            return Self::of_file(file, access);
        }
        Self::map(file, access, &mut MmapOptions::new())
    }

    fn map(file: &File, access: Access, options: &mut MmapOptions) -> io::Result<Self> {
        let len = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        options.len(len);
        let map = match access {
            Access::Read => options.map_raw_read_only(file)?,
            Access::ReadWrite => options.map_raw(file)?,
        };
        // SAFETY: the mapping is this value's, and is dropped after the watch. No reference to it is
        // ever lent, and whatever its words become is a value.
        let watched = unsafe { Watched::new(map.as_ptr(), len, access == Access::ReadWrite) }?;
        // /proc has the path of an open file.
        let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let path = path.unwrap_or_default();
        Ok(Self { watched: Some(watched), map, access, path })
    }

    /// Private memory with a copy of `bytes`: a saved or synthetic region.
    ///
    /// # Errors
    /// If `bytes` is empty, or if there is no memory.
    pub fn of_bytes(bytes: &[u8]) -> io::Result<Self> {
        let mut map = MmapOptions::new().len(bytes.len()).map_anon()?;
        map.copy_from_slice(bytes);
        let (map, path) = (map.into(), PathBuf::new());
        Ok(Self { watched: None, map, access: Access::ReadWrite, path })
    }

    /// Touches every page in advance. Populating a shared mapping only reads its pages; file
    /// systems that track writes would still fault at the first store. For device memory,
    /// populating only fills this system's page tables: if that memory belongs to the host, as with
    /// ivshmem, the first access to each page is an exit, in which the host fills its own page
    /// tables. This should happen before measurements.
    fn touch(&self) {
        /// MADV_POPULATE_WRITE, since Linux 5.14.
        const POPULATE_WRITE: i32 = 23;
        /// The smallest page size.
        const PAGE: usize = 4096;
        let refused = self.access == Access::Read || {
            // SAFETY: the range is this mapping; the advice changes no byte of it. Older kernels and
            // device memory refuse it.
            let advised = unsafe {
                libc::madvise(self.map.as_mut_ptr().cast(), self.map.len(), POPULATE_WRITE)
            };
            advised != 0
        };
        if refused {
            for at in (0..self.map.len()).step_by(PAGE) {
                std::hint::black_box(self.load(at));
            }
        }
    }

    /// Checks that the file still backed the memory when it was last accessed.
    ///
    /// # Errors
    /// If it was truncated: stores no longer reach the other side.
    pub fn check(&self) -> io::Result<()> {
        let Some(offset) = self.watched.as_ref().and_then(Watched::missing_at) else {
            return Ok(());
        };
        let path = self.path.display();
        Err(io::Error::other(format!(
            "the shared memory {path} was truncated while it was mapped: offset {offset:#x} is missing"
        )))
    }

    /// Length of the mapping.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.map.len()
    }

    /// Whether stores have an effect.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.access == Access::ReadWrite
    }

    /// A pointer to `len` bytes inside the mapping; `None` if they are not inside.
    fn range(&self, at: usize, len: usize) -> Option<*mut u8> {
        let end = at.checked_add(len)?;
        // The pointer stays inside the mapping, or is one past its end for length zero.
        (end <= self.map.len()).then(|| self.map.as_mut_ptr().wrapping_add(at))
    }

    fn word(&self, at: usize) -> Option<&AtomicU64> {
        let pointer = self.range(at, WORD).filter(|_| at.is_multiple_of(WORD))?;
        // SAFETY: `range` says that eight bytes are mapped there for as long as `self` lives, and
        // mappings begin at a page, so a multiple of eight is aligned. Everything that this process
        // does to words is atomic; other processes and guests are not part of its memory model, and
        // every bit pattern is a value. Read-only mappings are only loaded from (`store` checks).
        Some(unsafe { AtomicU64::from_ptr(pointer.cast()) })
    }

    /// Loads the word at an offset, which must be a multiple of eight. Later loads see what the
    /// other side stored before this word (acquire).
    #[must_use]
    pub fn load(&self, at: usize) -> u64 {
        debug_assert!(self.word(at).is_some(), "word at {at:#x} of {:#x}", self.map.len());
        self.word(at).map_or(0, |word| u64::from_le(word.load(Ordering::Acquire)))
    }

    /// Stores a word. A thread that loads it sees all earlier stores (release); for write-combining
    /// memory, [`SharedMap::publish`] must come between.
    pub fn store(&self, at: usize, value: u64) {
        debug_assert!(self.word(at).is_some(), "word at {at:#x} of {:#x}", self.map.len());
        if let Some(word) = self.word(at).filter(|_| self.is_writable()) {
            word.store(value.to_le(), Ordering::Release);
        }
    }

    /// Makes all earlier stores visible before any later store, for any memory type.
    pub fn publish() {
        fence(Ordering::Release);
        // A device's memory can be mapped write-combining (`resource2_wc`), where x86 orders stores
        // only by this instruction.
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 processor has SSE; the instruction changes nothing but order.
        #[allow(unused_unsafe, reason = "safe in newer compilers")]
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
    }

    /// Completes all earlier loads before any later load.
    pub fn settle() {
        fence(Ordering::Acquire);
    }

    /// Copies words from the mapping; the offset must be a multiple of eight, and the last word can
    /// be partial. Does not change the part of `into` that is outside the mapping.
    ///
    /// The bytes can be from different times: a caller that needs consistency compares a sequence
    /// number before and after.
    pub fn copy_out(&self, at: usize, into: &mut [u8]) {
        let len = into.len().next_multiple_of(WORD);
        let Some(from) = self.range(at, len).filter(|_| at.is_multiple_of(WORD)) else {
            debug_assert!(false, "{len} bytes at {at:#x} of {:#x}", self.map.len());
            return;
        };
        // SAFETY: `range` says that all words are mapped, and they are aligned; as in `word`.
        let word = |index| unsafe { AtomicU64::from_ptr(from.cast::<u64>().wrapping_add(index)) };
        let (words, cut) = into.as_chunks_mut::<WORD>();
        for (index, bytes) in words.iter_mut().enumerate() {
            *bytes = word(index).load(Ordering::Relaxed).to_ne_bytes();
        }
        if !cut.is_empty() {
            let last = word(words.len()).load(Ordering::Relaxed).to_ne_bytes();
            cut.copy_from_slice(last.get(..cut.len()).unwrap_or_default());
        }
    }

    /// Copies bytes to the mapping as words; the offset must be a multiple of eight. Pads a partial
    /// last word with zeros, and ignores bytes outside the mapping.
    pub fn copy_in(&self, at: usize, from: &[u8]) {
        let len = from.len().next_multiple_of(WORD);
        let Some(into) = self.range(at, len).filter(|_| at.is_multiple_of(WORD)) else {
            debug_assert!(false, "{len} bytes at {at:#x} of {:#x}", self.map.len());
            return;
        };
        if !self.is_writable() {
            return;
        }
        // SAFETY: `range` says that all words are mapped, and they are aligned; as in `word`.
        let word = |index| unsafe { AtomicU64::from_ptr(into.cast::<u64>().wrapping_add(index)) };
        let (words, cut) = from.as_chunks::<WORD>();
        for (index, bytes) in words.iter().enumerate() {
            word(index).store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        if !cut.is_empty() {
            let mut last = [0; WORD];
            last.get_mut(..cut.len()).unwrap_or_default().copy_from_slice(cut);
            word(words.len()).store(u64::from_ne_bytes(last), Ordering::Relaxed);
        }
    }

    /// Copies single bytes from the mapping at any offset. For memory that is only accessed this
    /// way: accesses of different sizes to the same place do not mix.
    pub fn bytes_out(&self, at: usize, into: &mut [u8]) {
        let Some(from) = self.range(at, into.len()) else { return };
        for (index, byte) in into.iter_mut().enumerate() {
            // SAFETY: `range` says that the byte is mapped; as in `word`.
            let shared = unsafe { AtomicU8::from_ptr(from.wrapping_add(index)) };
            *byte = shared.load(Ordering::Relaxed);
        }
    }

    /// Copies single bytes to the mapping, as [`SharedMap::bytes_out`] does from it.
    pub fn bytes_in(&self, at: usize, from: &[u8]) {
        let Some(into) = self.range(at, from.len()).filter(|_| self.is_writable()) else { return };
        for (index, &byte) in from.iter().enumerate() {
            // SAFETY: `range` says that the byte is mapped; as in `word`.
            let shared = unsafe { AtomicU8::from_ptr(into.wrapping_add(index)) };
            shared.store(byte, Ordering::Relaxed);
        }
    }

    /// Lets the kernel read up to `len` bytes of a file directly into the mapping; returns the
    /// number of bytes.
    ///
    /// # Errors
    /// Those of read(2), including interruption and `WouldBlock`; `InvalidInput` for a range that
    /// is not in the mapping or cannot be written.
    pub fn read_from(&self, source: BorrowedFd<'_>, at: usize, len: usize) -> io::Result<usize> {
        let into = self.range(at, len).filter(|_| self.is_writable());
        let into = into.ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: the kernel writes at most `len` bytes, which `range` says are mapped, and to
        // which there are no references.
        let read = unsafe { libc::read(source.as_raw_fd(), into.cast(), len) };
        usize::try_from(read).map_err(|_| io::Error::last_os_error())
    }

    /// Lets the kernel write all `len` bytes of the mapping to a file. They can be from different
    /// times, as with [`SharedMap::copy_out`].
    ///
    /// # Errors
    /// Those of write(2), or `InvalidInput` for a range that is not in the mapping. A part of the
    /// bytes may have been written.
    pub fn write_to(&self, target: BorrowedFd<'_>, at: usize, len: usize) -> io::Result<()> {
        let from = self.range(at, len).ok_or(io::ErrorKind::InvalidInput)?;
        let mut done = 0;
        while done < len {
            // SAFETY: `done` is less than `len`, so the kernel reads bytes that `range` says are
            // mapped.
            let wrote = unsafe {
                libc::write(target.as_raw_fd(), from.wrapping_add(done).cast(), len - done)
            };
            match usize::try_from(wrote) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(wrote) => done += wrote,
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};
    use std::os::fd::AsFd;

    use super::*;

    fn file(len: u64) -> (File, SharedMap, SharedMap) {
        let file = tempfile::tempfile().unwrap();
        file.set_len(len).unwrap();
        let writable = SharedMap::of_file(&file, Access::ReadWrite).unwrap();
        let other = SharedMap::of_file(&file, Access::Read).unwrap();
        (file, writable, other)
    }

    #[test]
    fn one_mapping_shows_what_another_stores() {
        let (_file, writable, other) = file(8192);
        writable.store(4096, 0x0102_0304_0506_0708);
        assert_eq!(other.load(4096), 0x0102_0304_0506_0708);
        let mut bytes = [0; 3];
        other.bytes_out(4096, &mut bytes);
        assert_eq!(bytes, [8, 7, 6], "words are little-endian");
        writable.copy_in(8, b"eleven bytes");
        let mut copied = [0; 12];
        other.copy_out(8, &mut copied);
        assert_eq!(&copied, b"eleven bytes");
    }

    #[test]
    fn a_mapping_for_reading_is_not_written() {
        let (file, writable, other) = file(4096);
        other.store(0, 1);
        other.copy_in(8, b"x");
        other.bytes_in(16, b"x");
        assert!(other.read_from(file.as_fd(), 0, 8).is_err());
        assert_eq!((writable.load(0), writable.load(8), writable.load(16)), (0, 0, 0));
    }

    #[test]
    fn files_go_in_and_out_without_a_copy_and_not_beyond_the_end() {
        let (_file, writable, _) = file(4096);
        let mut source = tempfile::tempfile().unwrap();
        source.write_all(&[7; 5000]).unwrap();
        source.rewind().unwrap();
        assert_eq!(writable.read_from(source.as_fd(), 96, 4000).unwrap(), 4000);
        assert_eq!(writable.read_from(source.as_fd(), 0, 96).unwrap(), 96);
        assert_eq!(writable.load(4088), 0x0707_0707_0707_0707);
        for (at, len) in [(4096, 1), (1, 4096), (usize::MAX, 2)] {
            let error = writable.read_from(source.as_fd(), at, len).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(writable.write_to(source.as_fd(), at, len).is_err());
        }
        let target = tempfile::tempfile().unwrap();
        writable.write_to(target.as_fd(), 0, 4096).unwrap();
        assert_eq!(target.metadata().unwrap().len(), 4096);
    }

    #[test]
    fn memory_that_is_cut_is_reported_and_ends_nothing() {
        for access in [Access::Read, Access::ReadWrite] {
            let file = tempfile::NamedTempFile::new().unwrap();
            file.as_file().set_len(1 << 20).unwrap();
            let map = SharedMap::open(file.path(), access).unwrap();
            map.check().unwrap();
            file.as_file().set_len(4096).unwrap();
            map.store(8, 1);
            map.check().unwrap();
            map.store(0x80_000, 1);
            assert_eq!(map.load(0x80_000), u64::from(access == Access::ReadWrite));
            let error = map.check().unwrap_err().to_string();
            let name = file.path().to_str().unwrap();
            assert!(error.contains(name) && error.contains("0x80000"), "{error}");
        }
    }

    /// Minor and major page faults of the calling thread.
    fn faults() -> i64 {
        // SAFETY: every bit pattern is a valid `rusage`, and the kernel fills it in.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage
        };
        usage.ru_minflt + usage.ru_majflt
    }

    #[test]
    fn a_new_mapping_does_not_fault() {
        let (_file, writable, _) = file(4 << 20);
        let before = faults();
        for page in 0..1024 {
            writable.store(page * 4096, 1);
        }
        // A page of this thread's stack or of the program can be new.
        assert!(faults() - before < 16, "{} faults in 1024 pages", faults() - before);
    }
}
