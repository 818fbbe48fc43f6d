//! Whether thread ids are those of the initial PID namespace.

use std::os::unix::fs::MetadataExt;

/// Whether this process sees the thread ids that BPF programs see; a container has its own PID
/// namespace.
#[must_use]
pub fn has_kernels_ids() -> bool {
    /// `PROC_PID_INIT_INO` (include/linux/proc_ns.h): inode of the initial PID namespace.
    const OF_KERNEL: u64 = 0xefff_fffc;
    std::fs::metadata("/proc/self/ns/pid").is_ok_and(|namespace| namespace.ino() == OF_KERNEL)
}
