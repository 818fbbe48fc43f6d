//! Finds the shared memory of a guest's PCI device ivshmem-plain in QEMU.
//!
//! QEMU docs/specs/ivshmem-spec.rst: vendor 1af4, device 1110; BAR 2 is the memory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Linux's list of PCI devices.
pub const PCI_DEVICES: &str = "/sys/bus/pci/devices";

const VENDOR: u64 = 0x1af4;
const DEVICE: u64 = 0x1110;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedMemoryDevice {
    /// Its PCI address, the name of its folder.
    pub address: String,
    /// The file to map for its memory. On x86 it is mapped uncached.
    pub memory: PathBuf,
    /// The file that maps the same memory write-combining, if the kernel has one.
    pub memory_combining: Option<PathBuf>,
    /// Size of the memory.
    pub memory_bytes: u64,
    folder: PathBuf,
}

impl SharedMemoryDevice {
    /// Enables the device's memory unless it is enabled: until then reads return 0xff and writes are lost. Needs root.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn enable(&self) -> io::Result<()> {
        let file = self.folder.join("enable");
        // The kernel counts enables: each `1` would need a `0` to disable it again.
        if fs::read_to_string(&file)?.trim() == "0" {
            fs::write(&file, "1")?;
        }
        Ok(())
    }
}

/// The devices in a folder such as [`PCI_DEVICES`], by address. Skips unreadable ones.
///
/// # Errors
/// When the folder can't be read, for example on a machine without PCI.
pub fn shared_memory_devices(folder: &Path) -> io::Result<Vec<SharedMemoryDevice>> {
    let mut devices = Vec::new();
    for entry in fs::read_dir(folder)? {
        devices.extend(device(entry?.path()));
    }
    devices.sort_by(|device, other| device.address.cmp(&other.address));
    Ok(devices)
}

fn device(folder: PathBuf) -> Option<SharedMemoryDevice> {
    if number(&folder.join("vendor"))? != VENDOR || number(&folder.join("device"))? != DEVICE {
        return None;
    }
    let memory = folder.join("resource2");
    // The kernel gives the file the size of the BAR.
    let memory_bytes = fs::metadata(&memory).ok()?.len();
    let memory_combining = Some(folder.join("resource2_wc")).filter(|path| path.exists());
    let address = folder.file_name()?.to_str()?.to_owned();
    Some(SharedMemoryDevice { address, memory, memory_combining, memory_bytes, folder })
}

/// Parses a number in a sysfs file: `0x1af4`.
fn number(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    u64::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(root: &Path, address: &str, vendor: &str, device: &str, enabled: &str) -> PathBuf {
        let folder = root.join(address);
        fs::create_dir(&folder).unwrap();
        for (name, text) in [("vendor", vendor), ("device", device), ("enable", enabled)] {
            fs::write(folder.join(name), text).unwrap();
        }
        fs::File::create(folder.join("resource2")).unwrap().set_len(1 << 20).unwrap();
        folder
    }

    #[test]
    fn devices_are_found_and_enabled_once() {
        let root = tempfile::tempdir().unwrap();
        let second = add(root.path(), "0000:00:05.0", "0x1af4\n", "0x1110\n", "0\n");
        let first = add(root.path(), "0000:00:04.0", "0x1af4\n", "0x1110\n", "2\n");
        add(root.path(), "0000:00:03.0", "0x1af4\n", "0x1000\n", "1\n");
        add(root.path(), "0000:00:02.0", "0x8086\n", "0x1110\n", "1\n");
        fs::write(first.join("resource2_wc"), "").unwrap();
        fs::create_dir(root.path().join("0000:00:01.0")).unwrap();

        let devices = shared_memory_devices(root.path()).unwrap();
        let addresses: Vec<_> = devices.iter().map(|device| device.address.as_str()).collect();
        assert_eq!(addresses, ["0000:00:04.0", "0000:00:05.0"]);
        assert!(devices.iter().all(|device| device.memory_bytes == 1 << 20));
        assert_eq!(devices[0].memory_combining, Some(first.join("resource2_wc")));
        assert_eq!(devices[1].memory_combining, None);

        devices.iter().for_each(|device| device.enable().unwrap());
        assert_eq!(fs::read_to_string(first.join("enable")).unwrap(), "2\n");
        assert_eq!(fs::read_to_string(second.join("enable")).unwrap(), "1");
    }

    #[test]
    fn a_machine_without_pci_is_an_error_that_says_so() {
        let root = tempfile::tempdir().unwrap();
        let error = shared_memory_devices(&root.path().join("devices")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
