//! A bound on the memory that this process allocates: the last line behind all bounds of single parts.
//!
//! Sizes in a file are checked where they are read, and what is read ahead is bounded. What grows with
//! the number of things in a file (threads, stacks, names, spans) can't be foreseen everywhere, so the
//! allocator counts, and ends the process in order when the bound is passed: with a sentence and exit
//! code 1, where the kernel would kill it, or an allocation that fails abort it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Bytes allocated and not freed, with what the allocator adds to each.
static IN_USE: AtomicUsize = AtomicUsize::new(0);
/// Bytes that may be in use.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
/// The bound as it was given.
static GIVEN: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Some thread is ending the process.
static ENDING: AtomicBool = AtomicBool::new(false);

/// What malloc keeps with each allocation, and to what it rounds sizes.
const HEAD_BYTES: usize = 16;
/// Of the bound, the part (one in this many) left for what is not counted: stacks, libraries in C, memory
/// that was freed but lies between pieces in use.
const UNCOUNTED_SHARE: usize = 8;
/// What is left for these at least, but for bounds that are less than four times as large: relocated data of the program and
/// stacks of its threads are 2.1 MiB, measured in an unoptimised build.
const MIN_UNCOUNTED_BYTES: usize = 2560 << 10;

/// The system's allocator with a count. It bounds nothing before [`bound_memory`] is called.
#[derive(Debug)]
pub struct CountedMemory;

/// From now on this process ends with exit code 1 and a sentence that names `--max-memory`, before it
/// takes more than this many bytes.
pub fn bound_memory(bytes: u64) {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    GIVEN.store(bytes, Relaxed);
    let uncounted = (bytes / UNCOUNTED_SHARE).max(MIN_UNCOUNTED_BYTES.min(bytes / 4));
    LIMIT.store(bytes - uncounted, Relaxed);
}

/// Bytes allocated and not freed; 0 in a program whose allocator is not [`CountedMemory`].
#[must_use]
pub fn memory_in_use() -> u64 {
    IN_USE.load(Relaxed) as u64
}

const fn cost(size: usize) -> usize {
    size.saturating_add(HEAD_BYTES)
}

/// Counts an allocation that is about to be made.
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

/// The system had no memory of this size. Where no bound is set, callers see to it themselves.
#[cold]
fn refused(size: usize) {
    give_back(size);
    if LIMIT.load(Relaxed) != usize::MAX {
        end(size, IN_USE.load(Relaxed), false);
    }
}

/// A line of text that takes no memory.
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

/// Ends the process. Nothing may be allocated here, nor may a panic leave the allocator.
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
            "hyperscope: the system refuses {size} bytes of memory ({in_use} MiB are in use; \
             --max-memory {given}M would allow more)"
        )
    };
    // SAFETY: the pointer and the length are of bytes in `line`, which lives on this stack; `_exit`
    // takes a number. Neither allocates, and both may be called at any moment of any thread.
    unsafe {
        let _ = libc::write(libc::STDERR_FILENO, line.bytes.as_ptr().cast(), line.len);
        libc::_exit(1)
    }
}

// SAFETY: all memory comes from `System` and goes back to it with the layout it was asked for; counting
// changes nothing of that, and neither allocates nor unwinds.
unsafe impl GlobalAlloc for CountedMemory {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`, which is that of `System`.
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
        // SAFETY: the caller got `memory` from here, so from `System`, with this layout.
        unsafe { System.dealloc(memory, layout) };
        give_back(layout.size());
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        take(new_size);
        // SAFETY: the caller got `memory` from here with this layout, and keeps the contract of
        // `realloc`.
        let moved = unsafe { System.realloc(memory, layout, new_size) };
        if moved.is_null() {
            refused(new_size);
        } else {
            give_back(layout.size());
        }
        moved
    }
}
