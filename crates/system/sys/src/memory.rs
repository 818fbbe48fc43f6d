//! Bounds the memory that this process allocates, behind all bounds of individual parts.
//!
//! Sizes in a file are checked when they are read, and read-ahead is bounded. But memory that grows
//! with the number of things in a file (threads, stacks, names, spans) cannot be predicted
//! everywhere. So the allocator counts, and ends the process when the bound is exceeded, with a
//! message and exit code 1, before the kernel kills it or a failed allocation aborts it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Allocated bytes, including the allocator's overhead.
static IN_USE: AtomicUsize = AtomicUsize::new(0);
/// Maximum allocated bytes.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
/// The bound as requested.
static GIVEN: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Set while a thread ends the process.
static ENDING: AtomicBool = AtomicBool::new(false);

/// malloc's overhead per allocation, which is also its granularity.
const HEAD_BYTES: usize = 16;
/// Fraction (1/N) of the bound that is reserved for uncounted memory: stacks, C libraries,
/// fragmentation.
const UNCOUNTED_SHARE: usize = 8;
/// Minimum of this reserve, unless the bound is less than four times as large: relocated data of
/// the program and stacks of its threads take 2.1 MiB, measured in an unoptimized build.
const MIN_UNCOUNTED_BYTES: usize = 2560 << 10;

/// The system's allocator with a counter. There is no bound before [`bound_memory`] is called.
#[derive(Debug)]
pub struct CountedMemory;

/// Sets the bound: before this process exceeds it, it ends with exit code 1 and a message about
/// `--max-memory`.
pub fn bound_memory(bytes: u64) {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    GIVEN.store(bytes, Relaxed);
    let uncounted = (bytes / UNCOUNTED_SHARE).max(MIN_UNCOUNTED_BYTES.min(bytes / 4));
    LIMIT.store(bytes - uncounted, Relaxed);
}

/// Allocated bytes; 0 in a program with another allocator than [`CountedMemory`].
#[must_use]
pub fn memory_in_use() -> u64 {
    IN_USE.load(Relaxed) as u64
}

const fn cost(size: usize) -> usize {
    size.saturating_add(HEAD_BYTES)
}

/// Counts an allocation before it is made.
#[inline]
fn take(size: usize) {
    let before = IN_USE.fetch_add(cost(size), Relaxed);
    if before.saturating_add(cost(size)) > LIMIT.load(Relaxed) {
        end(size, before, true);
    }
}

#[inline]
fn give_back(size: usize) {
    IN_USE.fetch_sub(cost(size), Relaxed);
}

/// The system cannot allocate this size. Without a bound, the caller handles it.
#[cold]
fn refused(size: usize) {
    give_back(size);
    if LIMIT.load(Relaxed) != usize::MAX {
        end(size, IN_USE.load(Relaxed), false);
    }
}

/// A line of text that needs no allocation.
struct Line {
    bytes: [u8; 320],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for (to, from) in self.bytes.iter_mut().skip(self.len).zip(text.bytes()) {
            *to = from;
            self.len += 1;
        }
        Ok(())
    }
}

/// Ends the process. Must not allocate, and must not panic out of the allocator.
#[cold]
fn end(size: usize, in_use: usize, is_bound: bool) -> ! {
    const MIB: usize = 1 << 20;
    if ENDING.swap(true, Relaxed) {
        loop {
            // SAFETY: `pause` takes no arguments and only waits; the other thread ends the process.
            unsafe { libc::pause() };
        }
    }
    let mut line = Line { bytes: [0; 320], len: 0 };
    let (given, in_use) = (GIVEN.load(Relaxed) / MIB, in_use / MIB);
    let _ = if is_bound {
        writeln!(
            line,
            "hyperscope: this needs more memory than --max-memory {given}M allows ({in_use} MiB in use, {size} \
             bytes more needed): a damaged file can request any amount; for an intact file give a larger \
             --max-memory, or read less of it"
        )
    } else {
        writeln!(
            line,
            "hyperscope: the system refused {size} bytes of memory ({in_use} MiB in use; \
             --max-memory {given}M would allow more)"
        )
    };
    // SAFETY: pointer and length describe bytes in `line`, which is on this stack; `_exit` takes a
    // number. Neither allocates, and both may be called at any time in any thread.
    unsafe {
        let _ = libc::write(libc::STDERR_FILENO, line.bytes.as_ptr().cast(), line.len);
        libc::_exit(1)
    }
}

// SAFETY: all memory comes from `System` and returns to it with its original layout; counting does
// not change this, and neither allocates nor unwinds.
unsafe impl GlobalAlloc for CountedMemory {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller fulfils the contract of `alloc`, which is that of `System`.
        let memory = unsafe { System.alloc(layout) };
        if memory.is_null() {
            refused(layout.size());
        }
        memory
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: as for `alloc`.
        let memory = unsafe { System.alloc_zeroed(layout) };
        if memory.is_null() {
            refused(layout.size());
        }
        memory
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: `memory` comes from this allocator, so from `System`, with this layout.
        unsafe { System.dealloc(memory, layout) };
        give_back(layout.size());
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        take(new_size);
        // SAFETY: `memory` comes from this allocator with this layout, and the caller fulfils the
        // contract of `realloc`.
        let moved = unsafe { System.realloc(memory, layout, new_size) };
        if moved.is_null() {
            refused(new_size);
        } else {
            give_back(layout.size());
        }
        moved
    }
}
