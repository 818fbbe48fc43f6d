//! The kernel's conversion of TSC ticks to nanoseconds, from the page that it maps for perf events.

use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{Ordering, fence};

/// `struct perf_event_attr` of the first version (PERF_ATTR_SIZE_VER0): 64 bytes.
const ATTR_BYTES: u32 = 64;
/// PERF_TYPE_SOFTWARE.
const SOFTWARE: u32 = 1;
/// PERF_COUNT_SW_DUMMY: counts nothing.
const DUMMY: u64 = 9;
/// Bit of `flags`: starts disabled.
const DISABLED: u64 = 1;
/// In `capabilities` of `struct perf_event_mmap_page`: cap_user_time and cap_user_time_zero.
const HAS_TIME: u64 = 1 << 3 | 1 << 4;

/// The header of `struct perf_event_mmap_page`, as in include/uapi/linux/perf_event.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct Page {
    version: u32,
    compat_version: u32,
    lock: u32,
    index: u32,
    offset: i64,
    time_enabled: u64,
    time_running: u64,
    capabilities: u64,
    pmc_width: u16,
    time_shift: u16,
    time_mult: u32,
    time_offset: u64,
    time_zero: u64,
}

/// Multiplier, shift, and the nanoseconds at tick 0: `ns = zero + (ticks * mult >> shift)`. `None`
/// if the kernel considers the TSC unreliable, or permits no perf events.
#[must_use]
pub fn tsc_conversion() -> Option<(u32, u16, u64)> {
    let event = dummy_event()?;
    // SAFETY: the kernel maps its own page read-only; the only access is a volatile copy below.
    let map = unsafe { memmap2::MmapOptions::new().len(4096).map(&event) }.ok()?;
    // SAFETY: the mapping is a page, which is larger than the struct and aligned for it, and
    // outlives the call.
    let page = unsafe { settled(map.as_ptr().cast::<Page>()) }?;
    let has_time = page.capabilities & HAS_TIME == HAS_TIME;
    has_time.then_some((page.time_mult, page.time_shift, page.time_zero))
}

/// Maximum attempts to copy the page while the kernel changes it.
const ATTEMPTS: u32 = 1000;

/// A consistent copy of the page: the kernel increments `lock` before and after each change.
///
/// # Safety
///
/// The page must be mapped for reading.
unsafe fn settled(page: *const Page) -> Option<Page> {
    // SAFETY: guaranteed by the caller; every bit pattern is valid for its integers. Volatile,
    // because the kernel writes to the page.
    let copy = || unsafe { std::ptr::read_volatile(page) };
    (0..ATTEMPTS).find_map(|_| {
        let before = copy().lock;
        fence(Ordering::Acquire);
        let copied = copy();
        fence(Ordering::Acquire);
        (before.is_multiple_of(2) && copy().lock == before).then_some(copied)
    })
}

fn dummy_event() -> Option<OwnedFd> {
    let mut attr = [0_u64; ATTR_BYTES as usize / 8];
    // Type and size are the two halves of the first word, config is the second, flags the sixth.
    attr[0] = u64::from(SOFTWARE) | u64::from(ATTR_BYTES) << 32;
    attr[1] = DUMMY;
    attr[5] = DISABLED;
    // SAFETY: the kernel reads ATTR_BYTES bytes, which the array has; this process, any CPU.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, attr.as_ptr(), 0, -1, -1, 0) };
    let fd = i32::try_from(fd).ok().filter(|&fd| fd >= 0)?;
    // SAFETY: the kernel has just created this descriptor, so it has no other owner.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversion_makes_sense_where_there_is_one() {
        if let Some((mult, shift, _)) = tsc_conversion() {
            // Counters have 0.1 to 10 ticks per nanosecond.
            let ns_per_1000_ticks = (1000 * u64::from(mult)) >> shift;
            assert!((100..=10_000).contains(&ns_per_1000_ticks), "{mult} {shift}");
        }
    }
}
