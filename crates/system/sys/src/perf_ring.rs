//! Ring buffers to which the kernel writes the records of a perf event on a CPU.
//!
//! Sources: `include/uapi/linux/perf_event.h` (`struct perf_event_mmap_page`, ioctls) and
//! `perf_event_open(2)`.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// `PERF_EVENT_IOC_ENABLE`, `_DISABLE` and `_ID`.
const ENABLE: libc::c_ulong = 0x2400;
const DISABLE: libc::c_ulong = 0x2401;
/// `PERF_EVENT_IOC_PERIOD`, which encodes the size of a 64-bit number.
const PERIOD: libc::c_ulong = 0x4008_2404;
/// Encodes the size of a pointer, here of 64-bit machines.
const ID: libc::c_ulong = 0x8008_2407;

/// Offsets of `data_head`, `data_tail`, `data_offset` and `data_size` in the first page of the
/// mapping.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;
const DATA_OFFSET: usize = 1040;
const DATA_SIZE: usize = 1048;

/// Offset of the size field in an attribute.
const ATTR_SIZE: usize = 4;

/// Bytes of a memory page: a ring has a power of two of these.
fn page_bytes() -> usize {
    // SAFETY: it takes no memory, and changes nothing.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// An event on a CPU for all threads there, with its ring buffer.
#[derive(Debug)]
pub struct PerfRing {
    file: File,
    map: MmapRaw,
    data: *const u8,
    data_len: usize,
    /// Read position.
    tail: u64,
}

// SAFETY: the pointer refers to the mapping, which only this value owns.
unsafe impl Send for PerfRing {}

impl PerfRing {
    /// Opens an event from its `struct perf_event_attr`, which must have the size of `attr`, with a
    /// ring of `ring_bytes`: a power of two, and a multiple of the page size.
    ///
    /// # Errors
    /// If the kernel does not support or permit the event, or has no memory.
    pub fn open(attr: &[u8], cpu: u32, ring_bytes: usize) -> io::Result<Self> {
        let mut attr = attr.to_vec();
        let size = u32::try_from(attr.len()).map_err(io::Error::other)?;
        let field = attr.get_mut(ATTR_SIZE..ATTR_SIZE + size_of::<u32>());
        field.ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(&size.to_ne_bytes());
        let cpu = libc::c_int::try_from(cpu).map_err(io::Error::other)?;
        let (anyone, no_group): (libc::pid_t, libc::c_int) = (-1, -1);
        // SAFETY: the kernel reads as many bytes as the size field says, which was set to the vector's, and
        // may write its own size to that field.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                attr.as_mut_ptr(),
                anyone,
                cpu,
                no_group,
                CLOSE_ON_EXEC,
            )
        };
        let fd = libc::c_int::try_from(fd).map_err(io::Error::other)?;
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just created this descriptor, so it has no other owner.
        let file = unsafe { File::from_raw_fd(fd) };
        Self::map(file, ring_bytes)
    }

    fn map(file: File, ring_bytes: usize) -> io::Result<Self> {
        let page = page_bytes();
        let len = ring_bytes.checked_add(page).ok_or(io::ErrorKind::InvalidInput)?;
        let map = MmapOptions::new().len(len).map_raw(&file)?;
        let mut ring = Self { file, map, data: std::ptr::null(), data_len: ring_bytes, tail: 0 };
        // Kernels before 4.1 leave these fields 0: the data follows the first page.
        let offset = usize::try_from(ring.word(DATA_OFFSET).load(Ordering::Relaxed));
        let offset = offset.ok().filter(|&offset| offset != 0).unwrap_or(page);
        let size = usize::try_from(ring.word(DATA_SIZE).load(Ordering::Relaxed));
        let size = size.ok().filter(|&size| size != 0).unwrap_or(ring_bytes);
        if !size.is_power_of_two() || offset.checked_add(size).is_none_or(|end| end > len) {
            return Err(io::Error::other("the kernel's ring lies outside its mapping"));
        }
        (ring.data, ring.data_len) = (ring.map.as_ptr().wrapping_add(offset), size);
        Ok(ring)
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at < 4096 && at.is_multiple_of(size_of::<u64>()));
        // SAFETY: the mapping has at least a page, `at` is one of the constants above, which are in it and
        // multiples of eight, and this process accesses those words as atomics alone.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().wrapping_add(at).cast()) }
    }

    /// The event's id in records.
    ///
    /// # Errors
    /// If the kernel has no ids: before Linux 3.12.
    pub fn id(&self) -> io::Result<u64> {
        let mut id = 0_u64;
        // SAFETY: the kernel writes a 64-bit number to where the pointer says.
        let done = unsafe { libc::ioctl(self.file.as_raw_fd(), ID as _, &raw mut id) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(id) }
    }

    /// Starts recording.
    ///
    /// # Errors
    /// Those of ioctl(2).
    pub fn enable(&self) -> io::Result<()> {
        self.request(ENABLE)
    }

    /// Stops recording.
    ///
    /// # Errors
    /// Those of ioctl(2).
    pub fn disable(&self) -> io::Result<()> {
        self.request(DISABLE)
    }

    /// Sets the sample period in units of the event; for an event that was opened with a frequency
    /// and has no timer, sets the frequency.
    ///
    /// # Errors
    /// Those of ioctl(2).
    pub fn set_period(&self, period: u64) -> io::Result<()> {
        // SAFETY: the kernel reads a 64-bit number where the pointer says.
        let done = unsafe { libc::ioctl(self.file.as_raw_fd(), PERIOD as _, &raw const period) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn request(&self, what: libc::c_ulong) -> io::Result<()> {
        // SAFETY: both requests take a number, and no memory.
        let done = unsafe { libc::ioctl(self.file.as_raw_fd(), what as _, 0) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The event's counter values, in the words of its `read_format`.
    ///
    /// # Errors
    /// Those of read(2).
    pub fn values<const WORDS: usize>(&self) -> io::Result<[u64; WORDS]> {
        let mut bytes = vec![0; WORDS * size_of::<u64>()];
        (&self.file).read_exact(&mut bytes)?;
        let (words, _) = bytes.as_chunks::<8>();
        let mut values = [0; WORDS];
        for (value, word) in values.iter_mut().zip(words) {
            *value = u64::from_ne_bytes(*word);
        }
        Ok(values)
    }

    /// Moves all records in the ring to the end of `out`.
    pub fn take(&mut self, out: &mut Vec<u8>) {
        // Pairs with the kernel's write of the head: earlier writes are visible after this load.
        let head = self.word(DATA_HEAD).load(Ordering::Acquire);
        let len = usize::try_from(head.wrapping_sub(self.tail)).unwrap_or(usize::MAX);
        // A larger length would be a kernel bug.
        let len = len.min(self.data_len);
        let from = usize::try_from(self.tail % self.data_len as u64).unwrap_or(0);
        let to_end = len.min(self.data_len - from);
        for (at, len) in [(from, to_end), (0, len - to_end)] {
            // SAFETY: `at + len` is at most `data_len`, and all those bytes are mapped (`map` checks). The
            // kernel does not write bytes between tail and head until the tail has moved on, below.
            let bytes = unsafe { std::slice::from_raw_parts(self.data.wrapping_add(at), len) };
            out.extend_from_slice(bytes);
        }
        self.tail = head;
        self.word(DATA_TAIL).store(head, Ordering::Release);
    }
}

impl AsFd for PerfRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// `cpu-clock` at a period of 100 us, disabled: `struct perf_event_attr` of 64 bytes.
    fn attr() -> Vec<u8> {
        let mut attr = vec![0; 64];
        attr[0..4].copy_from_slice(&1_u32.to_ne_bytes());
        attr[16..24].copy_from_slice(&100_000_u64.to_ne_bytes());
        // PERF_SAMPLE_TID alone: a record has 16 bytes.
        attr[24..32].copy_from_slice(&2_u64.to_ne_bytes());
        attr[40..48].copy_from_slice(&1_u64.to_ne_bytes());
        attr
    }

    #[test]
    fn records_come_whole_and_go_on_behind_the_end_of_the_ring() {
        let ring_bytes = page_bytes();
        let mut ring = match PerfRing::open(&attr(), 0, ring_bytes) {
            Ok(ring) => ring,
            Err(error) => {
                testkit::skip!("performance events are not available: {error}");
                return;
            }
        };
        assert!(ring.id().unwrap() > 0);
        let mut out = Vec::new();
        ring.take(&mut out);
        assert!(out.is_empty());
        ring.enable().unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        // Three times round, at 16 bytes and 10,000 samples a second: 80 ms of a busy CPU 0.
        while out.len() < 3 * ring_bytes && Instant::now() < until {
            ring.take(&mut out);
        }
        ring.disable().unwrap();
        ring.take(&mut out);
        assert!(out.len() >= 3 * ring_bytes, "{} bytes", out.len());
        let (records, rest) = out.as_chunks::<8>();
        assert!(rest.is_empty());
        let mut at = 0;
        while at < records.len() {
            let head = u64::from_ne_bytes(records[at]);
            let (kind, size) = (head & 0xffff_ffff, head >> 48);
            assert!(matches!((kind, size), (9, 16) | (2, 24) | (5 | 6, 32)), "{kind} {size}");
            at += size as usize / 8;
        }
        assert_eq!(at, records.len());
        assert!(ring.values::<1>().unwrap()[0] > 0);
    }

    #[test]
    fn what_the_kernel_does_not_know_is_an_error() {
        let mut wrong = attr();
        wrong[0..4].copy_from_slice(&0x7fff_ffff_u32.to_ne_bytes());
        assert!(PerfRing::open(&wrong, 0, page_bytes()).is_err());
        assert!(PerfRing::open(&[0; 4], 0, page_bytes()).is_err());
    }
}
