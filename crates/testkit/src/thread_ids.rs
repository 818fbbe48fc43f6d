//! Whose numbers threads have here.

use std::os::unix::fs::MetadataExt;

/// Whether threads have the ids here that the kernel knows them by, as BPF programs see them: in a container they have its own.
#[must_use]
pub fn has_kernels_ids() -> bool {
    /// `PROC_PID_INIT_INO` (include/linux/proc_ns.h): the namespace of the kernel's own ids.
    const OF_KERNEL: u64 = 0xefff_fffc;
    std::fs::metadata("/proc/self/ns/pid").is_ok_and(|namespace| namespace.ino() == OF_KERNEL)
}
