//! Detects VM processes: those that hold a KVM VM descriptor.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;

use os::waits::Signal;

/// Link target of a VM's descriptor in /proc. Paths of real files begin with a slash, but the name alone is no proof:
/// see [`anonymous_device`].
const LINK: &str = "anon_inode:kvm-vm";

/// Whether a process holds a VM descriptor.
pub(super) fn has_vm(pid: u32) -> bool {
    let Some(device) = anonymous_device() else { return false };
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let is_vm = |path: &Path| {
        fs::read_link(path).is_ok_and(|link| link.as_os_str() == LINK)
            && fs::metadata(path).is_ok_and(|file| file.dev() == device)
    };
    entries.flatten().any(|entry| is_vm(&entry.path()))
}

/// The device number of the kernel's anonymous inodes, from an eventfd of this process. No path leads to a file on this
/// device.
fn anonymous_device() -> Option<u64> {
    static DEVICE: OnceLock<Option<u64>> = OnceLock::new();
    *DEVICE.get_or_init(|| Some(rustix::fs::fstat(Signal::new().ok()?.fd()).ok()?.st_dev))
}

/// The user that owns a process.
pub(super) fn user(pid: u32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|folder| folder.uid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use rustix::fs::{MemfdFlags, memfd_create};

    #[test]
    fn files_with_the_name_of_a_vm_are_none() {
        let own_pid = std::process::id();
        // Fails if a test of this process makes a VM; none does.
        assert!(!has_vm(own_pid));
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join(LINK);
        fs::create_dir(&inside).unwrap();
        let files =
            [File::create(inside.join("kvm-vm")), File::create(folder.path().join("kvm-vm"))];
        let removed = folder.path().join(format!("{LINK}x"));
        let file = File::create(&removed).unwrap();
        fs::remove_file(&removed).unwrap();
        let memory = memfd_create("kvm-vm", MemfdFlags::CLOEXEC).unwrap();
        let event = Signal::new().unwrap();
        let links = [file.as_raw_fd(), memory.as_raw_fd(), event.fd().as_raw_fd()];
        let link = |fd: i32| fs::read_link(format!("/proc/self/fd/{fd}")).unwrap();
        assert_eq!(
            links.map(|fd| link(fd).to_string_lossy().contains("kvm-vm")),
            [true, true, false]
        );
        assert!(!has_vm(own_pid));
        drop((files, file, memory, event));
    }
}
