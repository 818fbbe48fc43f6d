//! CPU time of BPF programs, if the kernel counts it.

use std::fs;
use std::os::fd::OwnedFd;

use aya::Ebpf;
use aya::sys::{Stats, enable_stats};

use crate::load::object::program;

/// The kernel counts the run times of all BPF programs while this exists; each run costs two clock reads more.
#[derive(Debug)]
pub struct RunTimes {
    /// The kernel counts while this descriptor is open.
    held: Option<OwnedFd>,
}

impl RunTimes {
    /// Enables counting, if the user has permission.
    #[must_use]
    pub fn count() -> Self {
        Self { held: enable_stats(Stats::RunTime).ok() }
    }

    /// Whether the kernel counts: an administrator may enable counting permanently (`sysctl
    /// kernel.bpf_stats_enabled=1`).
    #[must_use]
    pub fn are_counted(&self) -> bool {
        let setting = || fs::read_to_string("/proc/sys/kernel/bpf_stats_enabled");
        self.held.is_some() || setting().is_ok_and(|text| text.trim() == "1")
    }

    /// CPU time of an object's programs since loading, in nanoseconds; `None` if not counted.
    pub fn total_ns(&self, object: &mut Ebpf, names: &[&'static str]) -> Option<u64> {
        if !self.are_counted() {
            return None;
        }
        let mut all: u64 = 0;
        for name in names {
            let info = program(object, name).ok()?.info().ok()?;
            all = all.saturating_add(u64::try_from(info.run_time().as_nanos()).ok()?);
        }
        Some(all)
    }
}
