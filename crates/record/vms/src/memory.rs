//! The memory that a VM shares with this host, used only if the VM really maps it. Its path comes from a command line,
//! which a process can fake; the kernel shows what a process has mapped.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::Vm;

/// Max bytes to map per VM: a device for recording has some MiB.
const MAX_BYTES: u64 = 1 << 30;
/// Lengths of mappings are multiples of this.
const PAGE_BYTES: u64 = 4096;
/// Mode bit: the owner may write the file.
const OWNER_WRITES: u32 = 0o200;

/// Opens the file of a VM's shared memory; without a known VM, the user vouches for the path. The file is opened for
/// reading or writing only after it is identified: opening a device may have effects, and a link may lead anywhere.
///
/// # Errors
/// When the file can't be opened, or is not the VM's.
pub fn open_memory(path: &Path, vm: Option<&Vm>, writes: bool) -> io::Result<File> {
    let found = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let found = File::from(found);
    let about = found.metadata()?;
    let refused = |why: &str| io::Error::new(io::ErrorKind::PermissionDenied, why);
    if !about.is_file() {
        return Err(refused("it is not a file with VM memory"));
    }
    if about.mode() & OWNER_WRITES == 0 {
        return Err(refused("its owner has no write permission, which a VM needs"));
    }
    if about.len() > MAX_BYTES {
        let max = MAX_BYTES >> 20;
        return Err(refused(&format!("it exceeds {max} MiB, the limit for recording devices")));
    }
    if let Some(vm) = vm {
        let mapped = mapped_bytes(vm.pid, (about.dev(), about.ino()));
        if mapped == 0 {
            return Err(refused(&format!(
                "it is not memory of the VM with process {}, which has no shared mapping of it",
                vm.pid
            )));
        }
        if mapped != about.len().next_multiple_of(PAGE_BYTES) {
            return Err(refused(&format!(
                "it has {} bytes, but the VM's device has {mapped}",
                about.len()
            )));
        }
    }
    File::options().read(true).write(writes).open(format!("/proc/self/fd/{}", found.as_raw_fd()))
}

/// Whether a process has mapped this inode shared and writable, under any path.
#[must_use]
pub fn is_mapped_by(pid: u32, file: &Path) -> bool {
    let about = fs::metadata(file);
    about.is_ok_and(|about| mapped_bytes(pid, (about.dev(), about.ino())) > 0)
}

/// Number of bytes from the file's beginning that a process has mapped shared and writable.
fn mapped_bytes(pid: u32, file: (u64, u64)) -> u64 {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mut parts: Vec<(u64, u64)> =
        maps.lines().filter_map(|line| part(pid, line, file)).collect();
    parts.sort_unstable();
    let next = |end: u64, (from, bytes): (u64, u64)| {
        if from <= end { end.max(from.saturating_add(bytes)) } else { end }
    };
    parts.into_iter().fold(0, next)
}

/// File offset and length of a mapping: `7f00-7f10 rw-s 00000000 00:19 1234 NAME`.
fn part(pid: u32, line: &str, (device, inode): (u64, u64)) -> Option<(u64, u64)> {
    let mut fields = line.split_whitespace();
    let range = fields.next()?;
    let is_shared = fields
        .next()?
        .as_bytes()
        .get(1..)
        .is_some_and(|rest| rest.first() == Some(&b'w') && rest.last() == Some(&b's'));
    let from = u64::from_str_radix(fields.next()?, 16).ok()?;
    let is_its = fields.nth(1)?.parse() == Ok(inode);
    if !is_shared || !is_its {
        return None;
    }
    // Inode numbers repeat on other devices; this link leads to the file itself.
    let mapped = fs::metadata(format!("/proc/{pid}/map_files/{range}")).ok()?;
    let (begin, end) = range.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    let bytes = address(end)?.checked_sub(address(begin)?)?;
    ((mapped.dev(), mapped.ino()) == (device, inode)).then_some((from, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use channel::{Access, SharedMap};

    fn vm(pid: u32) -> Vm {
        let (program, vcpus, channels) = ("qemu".into(), Vec::new(), Vec::new());
        Vm {
            name: "web".into(),
            pid,
            program,
            vcpus,
            threads: Vec::new(),
            vsock_cid: None,
            channels,
        }
    }

    fn refusal(path: &Path, vm: Option<&Vm>) -> String {
        open_memory(path, vm, true).unwrap_err().to_string()
    }

    #[test]
    fn memory_is_opened_only_if_it_is_the_vms() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let (path, own_vm) = (file.path(), vm(std::process::id()));
        assert!(refusal(path, Some(&own_vm)).contains("not memory of the VM"));
        let only_read = SharedMap::open(path, Access::Read).unwrap();
        assert!(!is_mapped_by(own_vm.pid, path));
        assert!(refusal(path, Some(&own_vm)).contains("not memory of the VM"));
        drop(only_read);
        let _map = SharedMap::open(path, Access::ReadWrite).unwrap();
        if !is_mapped_by(own_vm.pid, path) {
            return testkit::skip!("this user may not look at map_files");
        }
        assert_eq!(
            open_memory(path, Some(&own_vm), true).unwrap().metadata().unwrap().len(),
            1 << 20
        );
        assert!(refusal(path, Some(&vm(1))).contains("process 1"));
        // The file may be longer by now than the guest's device.
        file.as_file().set_len(2 << 20).unwrap();
        assert!(
            refusal(path, Some(&own_vm)).contains("2097152 bytes, but the VM's device has 1048576")
        );
    }

    #[test]
    fn what_is_no_memory_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for no_file in [folder.path(), Path::new("/dev/null"), Path::new("/dev/watchdog")] {
            let refused = refusal(no_file, None);
            assert!(refused.contains("not a file") || refused.contains("No such"), "{refused}");
        }
        File::create(path("large")).unwrap().set_len(3 << 30).unwrap();
        assert!(refusal(&path("large"), None).contains("1024 MiB"));
        File::create(path("read")).unwrap();
        fs::set_permissions(path("read"), std::os::unix::fs::PermissionsExt::from_mode(0o444))
            .unwrap();
        assert!(refusal(&path("read"), None).contains("has no write permission"));
    }
}
