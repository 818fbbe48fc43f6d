//! Facts about this machine: its CPUs, page size and boot id.

use std::fs;

use tracefs::{Instance, Tracefs, page_size};

use crate::error::Result;

/// Number of possible CPUs.
pub(crate) fn possible_cpus() -> Result<usize> {
    Ok(Instance::top(&Tracefs::find()?).cpus()?.len())
}

/// Size of a ring buffer page.
pub(crate) fn page_bytes() -> Result<u32> {
    let header = Tracefs::find()?.root().join("events/header_page");
    Ok(page_size(&tracefs::read(&header)?))
}

/// The kernel's id of this boot; zeros if it has none.
pub(crate) fn boot_id() -> [u8; 16] {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits = text.trim().replace('-', "");
    u128::from_str_radix(&digits, 16).unwrap_or(0).to_be_bytes()
}
