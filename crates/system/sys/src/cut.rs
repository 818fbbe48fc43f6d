//! Survives the truncation of a mapped file with a SIGBUS handler.
//!
//! An access to a page past the end of its file raises SIGBUS, and any user who can write to the
//! file can truncate it. The handler maps zeros in place of the missing bytes and records their
//! offset; the owner of the mapping checks the offset, and fails with an error. A SIGBUS at any
//! other address goes to the previous handler.

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// A range of addresses to which a file is mapped.
///
/// Never freed, and only its two flags change, so that a handler can read it at any time: a process
/// maps few files, and each takes 48 bytes.
#[derive(Debug)]
struct Range {
    begin: usize,
    end: usize,
    protection: c_int,
    is_mapped: AtomicBool,
    /// The offset of the first missing page plus 1; 0 if none is missing.
    missing: AtomicUsize,
    next: *const Range,
}

/// The newest range; each links to the previous one.
static NEWEST: AtomicPtr<Range> = AtomicPtr::new(ptr::null_mut());
/// The previous handler of SIGBUS, and the size of a page.
static BEFORE: OnceLock<(libc::sigaction, usize)> = OnceLock::new();

/// A mapping that survives truncation of its file. Must be dropped before the mapping is removed.
#[derive(Debug)]
pub(crate) struct Watched(&'static Range);

// SAFETY: `next` points to a range that is never freed. The fields of both are immutable or atomic,
// so any thread may read them.
unsafe impl Send for Range {}
// SAFETY: as above.
unsafe impl Sync for Range {}

impl Watched {
    /// Watches a mapping of a file.
    ///
    /// # Safety
    ///
    /// The range must be a mapping that the caller owns, with pages of 4 KiB or larger, and must
    /// exist until this value is dropped. No reference to its memory may rely on unchanged bytes:
    /// zeros can replace them at any time.
    ///
    /// # Errors
    /// If the handler cannot be installed.
    pub(crate) unsafe fn new(begin: *const u8, len: usize, is_writable: bool) -> io::Result<Self> {
        install()?;
        let writable = if is_writable { libc::PROT_WRITE } else { 0 };
        let range: &'static mut Range = Box::leak(Box::new(Range {
            begin: begin.addr(),
            end: begin.addr().saturating_add(len),
            protection: libc::PROT_READ | writable,
            is_mapped: AtomicBool::new(true),
            missing: AtomicUsize::new(0),
            next: ptr::null(),
        }));
        let mut newest = NEWEST.load(Ordering::Acquire);
        loop {
            range.next = newest;
            match NEWEST.compare_exchange(newest, range, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(Self(range)),
                Err(other) => newest = other,
            }
        }
    }

    /// The offset of the first missing page.
    pub(crate) fn missing_at(&self) -> Option<usize> {
        self.0.missing.load(Ordering::Acquire).checked_sub(1)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.is_mapped.store(false, Ordering::Release);
    }
}

/// Installs the handler once.
fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| {
        // SAFETY: sysconf takes no pointer.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: without a new action, sigaction writes the old one to `before`, which has space
        // for it.
        if unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error().raw_os_error().unwrap_or(0));
        }
        // SAFETY: it was zeroed, which is valid for each field, and the kernel has filled it in.
        let before = unsafe { before.assume_init() };
        // Set before the handler is installed, because the handler needs it.
        let _ = BEFORE.set((before, page));
        // SAFETY: zero is valid for each field.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_bus_error;
        action.sa_sigaction = handler as *const () as usize;
        // Uses the alternate stack if a thread has one, as the handler of Rust's runtime does.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        // SAFETY: the action is complete, and its handler only performs async-signal-safe
        // operations: loads and stores of atomics, mmap, sigaction.
        if unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error().raw_os_error().unwrap_or(0));
        }
        Ok(())
    });
    installed.map_err(io::Error::from_raw_os_error)
}

extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: returns the address of this thread's errno, which must be preserved because the
    // interrupted code may be about to read it.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let number = unsafe { *errno };
    // SAFETY: with SA_SIGINFO the kernel passes a siginfo; `si_addr` is only used for fault codes,
    // for which it is valid.
    let (code, at) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    let is_patched = [BUS_ADRERR, BUS_OBJERR].contains(&code) && patch(at);
    if !is_patched && let Some((before, _)) = BEFORE.get() {
        // If the signal occurs again, it goes to the previous handler.
        // SAFETY: the action is the one that was there before this one.
        unsafe { libc::sigaction(signal, before, ptr::null_mut()) };
        if code <= 0 {
            // The signal was sent with kill(2): returning would not raise it again.
            // SAFETY: raise takes no pointer.
            unsafe { libc::raise(signal) };
        }
    }
    // SAFETY: as above.
    unsafe { *errno = number };
}

/// `BUS_ADRERR` ("nonexistent physical address"), which an access past the end of a file gives, and
/// `BUS_OBJERR` ("object-specific hardware error"). Another code reports broken memory, which zeros
/// do not repair.
const BUS_ADRERR: c_int = 2;
const BUS_OBJERR: c_int = 3;

/// Maps zeros over the missing pages from an address on; false if the address is in no watched
/// mapping.
fn patch(at: usize) -> bool {
    let Some((_, page)) = BEFORE.get() else { return false };
    let mut next: *const Range = NEWEST.load(Ordering::Acquire);
    // SAFETY: ranges are never freed, and are complete before they are published in `NEWEST`.
    while let Some(range) = unsafe { next.as_ref() } {
        if range.is_mapped.load(Ordering::Acquire) && (range.begin..range.end).contains(&at) {
            let first = at & !(page - 1);
            // Single pages of a huge page cannot be replaced, so the full range is replaced.
            return range.zero_from(first) || range.zero_from(range.begin);
        }
        next = range.next;
    }
    false
}

impl Range {
    fn zero_from(&self, first: usize) -> bool {
        let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let (at, len) = (ptr::without_provenance_mut(first), self.end - first);
        // SAFETY: the range is a mapping that the owner of `Watched` owns, and it exists while it
        // is watched; no other memory is replaced. Its users expect that bytes change.
        let zeros = unsafe { libc::mmap(at, len, self.protection, flags, -1, 0) };
        if zeros == libc::MAP_FAILED {
            return false;
        }
        let missing = first - self.begin + 1;
        // The first of several threads wins, and the lowest page.
        let _ = self.missing.fetch_update(Ordering::AcqRel, Ordering::Acquire, |known| {
            (known == 0 || missing < known).then_some(missing)
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    /// A file with this length, and a mapping of it.
    fn mapped(len: usize) -> (File, memmap2::MmapRaw) {
        let file = tempfile::tempfile().unwrap();
        file.set_len(len as u64).unwrap();
        let map = memmap2::MmapOptions::new().len(len).map_raw(&file).unwrap();
        (file, map)
    }

    fn read(map: &memmap2::MmapRaw, at: usize) -> u8 {
        assert!(at < map.len());
        // SAFETY: the byte is mapped, and others may change it.
        unsafe { map.as_ptr().add(at).read_volatile() }
    }

    #[test]
    fn what_a_file_has_lost_reads_as_zero_and_is_reported() {
        let (file, map) = mapped(64 << 10);
        // SAFETY: the mapping is of this test, and outlives the value.
        let watched = unsafe { Watched::new(map.as_ptr(), map.len(), true) }.unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[7; 64 << 10], 0).unwrap();
        assert_eq!((read(&map, 60 << 10), watched.missing_at()), (7, None));
        file.set_len(20 << 10).unwrap();
        assert_eq!((read(&map, 60 << 10), watched.missing_at()), (0, Some(60 << 10)));
        std::thread::scope(|scope| {
            for at in (20 << 10..64 << 10).step_by(512) {
                let map = &map;
                scope.spawn(move || assert_eq!(read(map, at), 0));
            }
        });
        assert_eq!((read(&map, 0), watched.missing_at()), (7, Some(20 << 10)));
        // SAFETY: the page is this test's own.
        unsafe { map.as_mut_ptr().add(40 << 10).write_volatile(9) };
        assert_eq!(read(&map, 40 << 10), 9);
    }

    /// Runs the test with this name in a process of its own.
    fn alone(test: &str) -> std::process::Output {
        let program = std::env::current_exe().unwrap();
        let command = Command::new(program).args(["--exact", test]).env("SYS_ALONE", "1").output();
        command.unwrap()
    }

    #[test]
    fn a_bus_error_of_other_memory_ends_the_process() {
        if std::env::var_os("SYS_ALONE").is_none() {
            let ended = alone("cut::tests::a_bus_error_of_other_memory_ends_the_process");
            assert_eq!(ended.status.signal(), Some(libc::SIGBUS), "{ended:?}");
            return;
        }
        let (_watched_file, watched_map) = mapped(4096);
        let (file, map) = mapped(4096);
        // SAFETY: the mapping is of this test, and outlives the value.
        let _watched = unsafe { Watched::new(watched_map.as_ptr(), 4096, false) }.unwrap();
        // SAFETY: as above; it is watched no more at once.
        drop(unsafe { Watched::new(map.as_ptr(), 4096, false) }.unwrap());
        file.set_len(0).unwrap();
        read(&map, 0);
    }
}
