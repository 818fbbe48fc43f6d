//! A page of physical memory without RAM: each read is an exit of the guest.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use memmap2::{Mmap, MmapOptions};

/// Page size on x86, and the smallest on Arm.
const PAGE_BYTES: usize = 4096;

/// A mapped page of physical memory.
#[derive(Debug)]
pub struct PhysicalPage {
    map: Mmap,
}

impl PhysicalPage {
    /// Maps the page at a physical address through `/dev/mem`. The kernel refuses RAM.
    ///
    /// # Errors
    /// If the address is not page-aligned, or if `/dev/mem` cannot be opened or mapped.
    pub fn map(address: u64) -> io::Result<Self> {
        // Reads access aligned words within the page.
        if !address.is_multiple_of(PAGE_BYTES as u64) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // O_SYNC makes the mapping one of device memory: accesses are neither cached nor merged.
        let memory = OpenOptions::new().read(true).custom_flags(libc::O_SYNC).open("/dev/mem")?;
        let mut options = MmapOptions::new();
        options.offset(address).len(PAGE_BYTES);
        // SAFETY: the mapping is read-only and never becomes a slice: `read_u32` reads it with
        // volatile loads, so changes by a device are not data races.
        let map = unsafe { options.map(&memory) }?;
        Ok(Self { map })
    }

    /// Reads the first four bytes; every call performs a read.
    #[must_use]
    pub fn read_u32(&self) -> u32 {
        // SAFETY: the pointer is the start of a mapped page, so it is valid for four bytes and
        // aligned; volatile, so that no read is optimized away.
        unsafe { std::ptr::read_volatile(self.map.as_ptr().cast::<u32>()) }
    }

    /// Reads them `count` times; returns the cycles.
    #[cfg(target_arch = "x86_64")]
    #[must_use]
    pub fn read_loop(&self, count: u64) -> u64 {
        // SAFETY: the start of a page that is mapped as long as this value exists.
        unsafe { crate::guest_instructions::read_loop(self.map.as_ptr().cast::<u32>(), count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_within_a_page_is_refused() {
        let error = PhysicalPage::map(0xfee0_0002).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
