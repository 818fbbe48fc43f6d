//! The addresses of a channel's device in a guest: accesses to them cause exits.

use std::fs;
use std::path::{Path, PathBuf};

use crate::wire::{DeviceRange, MAX_DEVICE_RANGES};

use crate::address::{AgentAddress, HostAddress};
use crate::memory;
use crate::ports::GuestPorts;

/// Kernel: `include/linux/ioport.h`.
const IORESOURCE_IO: u64 = 0x100;
/// Kernel: `include/linux/ioport.h`.
const IORESOURCE_MEM: u64 = 0x200;
/// The vsock devices, by their driver (`net/vmw_vsock/virtio_transport.c`).
const VSOCK: &str = "/sys/bus/virtio/drivers/vmw_vsock_virtio_transport";
/// The kernel's address map; other users than root read zeros.
pub(crate) const IOMEM: &str = "/proc/iomem";

/// Addresses of the channel's device. Empty if the channel has no device of its own: a network device also carries
/// other traffic, and a socket or a file has no device.
#[must_use]
pub fn device_ranges(channel: &AgentAddress) -> Vec<DeviceRange> {
    let devices = match channel {
        AgentAddress::SharedMemory { at } => memory::device_folder(at.as_deref()),
        AgentAddress::VirtioSerial => GuestPorts::find().map(|ports| ports.folders()),
        AgentAddress::Vsock { .. }
        | AgentAddress::TlsVsock { .. }
        | AgentAddress::Connect(HostAddress::Vsock { .. } | HostAddress::TlsVsock { .. }) => {
            Some(virtio_devices(Path::new(VSOCK)))
        }
        AgentAddress::Tcp { .. }
        | AgentAddress::Tls { .. }
        | AgentAddress::Unix { .. }
        | AgentAddress::Connect(_) => None,
    };
    let iomem = fs::read_to_string(IOMEM).unwrap_or_default();
    ranges_of(&devices.unwrap_or_default(), &iomem)
}

/// Devices that a driver's folder links to: `virtio3`.
pub(crate) fn virtio_devices(driver: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(driver).into_iter().flatten().flatten();
    let is_device = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("virtio"))
    };
    entries.map(|entry| entry.path()).filter(is_device).collect()
}

/// Sorts the ranges and removes duplicates.
fn ranges_of(devices: &[PathBuf], iomem: &str) -> Vec<DeviceRange> {
    let mut ranges: Vec<_> = devices.iter().flat_map(|device| ranges(device, iomem)).collect();
    ranges.sort_by_key(|range| (range.ports, range.first, range.last));
    ranges.dedup();
    ranges.truncate(MAX_DEVICE_RANGES);
    ranges
}

/// Ranges of the nearest ancestor in sysfs that has addresses: a virtio device is below a PCI device or a platform
/// device.
pub(crate) fn ranges(folder: &Path, iomem: &str) -> Vec<DeviceRange> {
    let Ok(folder) = fs::canonicalize(folder) else { return Vec::new() };
    let by_folder =
        folder.ancestors().map(|folder| match fs::read_to_string(folder.join("resource")) {
            Ok(text) => of_pci(&text),
            Err(_) => folder
                .file_name()
                .map_or_else(Vec::new, |name| of_platform(iomem, &name.to_string_lossy())),
        });
    by_folder.into_iter().find(|ranges| !ranges.is_empty()).unwrap_or_default()
}

/// Parses one range per line: first, last, flags. Unused ranges are zeros.
fn of_pci(resource: &str) -> Vec<DeviceRange> {
    let range = |line: &str| {
        let mut words = line.split_whitespace().map(hex);
        let (first, last, flags) = (words.next()??, words.next()??, words.next()??);
        let is_one = first <= last && flags & (IORESOURCE_IO | IORESOURCE_MEM) != 0;
        is_one.then_some(DeviceRange { ports: flags & IORESOURCE_IO != 0, first, last })
    };
    resource.lines().filter_map(range).collect()
}

/// Parses `0a003e00-0a003fff : a003e00.virtio_mmio virtio_mmio@a003e00`, for the device `a003e00.virtio_mmio`.
fn of_platform(iomem: &str, device: &str) -> Vec<DeviceRange> {
    let range = |line: &str| {
        let (range, names) = line.split_once(" : ")?;
        names.split_whitespace().find(|name| *name == device)?;
        let (first, last) = range.trim().split_once('-')?;
        let (first, last) = (hex(first)?, hex(last)?);
        // Other users than root read zeros.
        (first < last).then_some(DeviceRange { ports: false, first, last })
    };
    iomem.lines().filter_map(range).collect()
}

fn hex(word: &str) -> Option<u64> {
    u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// From QEMU's virtio-serial-pci.
    const RESOURCE: &str = "\
0x000000000000c000 0x000000000000c03f 0x0000000000040101
0x00000000febfd000 0x00000000febfdfff 0x0000000000040200
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x000000fd00000000 0x000000fd00003fff 0x000000000014220c
";
    const VIRT: &str = "\
0a003c00-0a003dff : a003c00.virtio_mmio virtio_mmio@a003c00
0a003e00-0a003fff : a003e00.virtio_mmio virtio_mmio@a003e00
00000000-00000000 : a003f00.virtio_mmio
d0000000-d0000fff : virtio-mmio.0
";

    fn range(ports: bool, first: u64, last: u64) -> DeviceRange {
        DeviceRange { ports, first, last }
    }

    #[test]
    fn a_port_is_at_the_addresses_of_its_pci_device() {
        let root = tempfile::tempdir().unwrap();
        let device = root.path().join("devices/pci0000:00/0000:00:02.0");
        let class = root.path().join("class/virtio-ports");
        fs::create_dir_all(&class).unwrap();
        let mut ports = Vec::new();
        for name in ["vport0p1", "vport0p2"] {
            let port = device.join("virtio0/virtio-ports").join(name);
            fs::create_dir_all(&port).unwrap();
            symlink(&port, class.join(name)).unwrap();
            ports.push(class.join(name));
        }
        fs::write(device.join("resource"), RESOURCE).unwrap();
        let all = [
            range(false, 0xfebf_d000, 0xfebf_dfff),
            range(false, 0xfd_0000_0000, 0xfd_0000_3fff),
            range(true, 0xc000, 0xc03f),
        ];
        assert_eq!(ranges_of(&ports, VIRT), all);
        fs::remove_file(device.join("resource")).unwrap();
        assert_eq!(ranges_of(&ports, VIRT), []);
    }

    #[test]
    fn a_device_of_the_platform_is_where_the_kernel_says() {
        let root = tempfile::tempdir().unwrap();
        let driver = root.path().join("driver");
        fs::create_dir(&driver).unwrap();
        let mut found = Vec::new();
        for name in ["a003e00.virtio_mmio", "virtio-mmio.0", "a003f00.virtio_mmio"] {
            let device = root.path().join("platform").join(name).join("virtio1");
            fs::create_dir_all(&device).unwrap();
            let link = driver.join("virtio1");
            let _ = fs::remove_file(&link);
            symlink(&device, &link).unwrap();
            fs::write(driver.join("bind"), "").unwrap();
            let devices = virtio_devices(&driver);
            assert_eq!(devices, [link]);
            found.push(ranges_of(&devices, VIRT));
        }
        let (arm, x86) =
            (range(false, 0xa00_3e00, 0xa00_3fff), range(false, 0xd000_0000, 0xd000_0fff));
        assert_eq!(found, [vec![arm], vec![x86], Vec::new()]);
    }

    #[test]
    fn what_has_no_device_of_its_own_has_no_addresses() {
        for address in ["tcp-plain:0.0.0.0:5", "tls::5", "unix:/s", "connect:tls:h:1", "shm:/file"]
        {
            assert_eq!(device_ranges(&address.parse().unwrap()), [], "{address}");
        }
    }

    #[test]
    fn malformed_texts_have_no_ranges() {
        for text in ["", "x", "0x1 0x2", "0x5 0x4 0x200", "0x1 0x2 0x0\n\u{7f} - :", "-1 2 0x200"] {
            assert_eq!(of_pci(text), [], "{text}");
            assert_eq!(of_platform(text, "x"), [], "{text}");
        }
    }
}
