//! The names that a guest's kernel gives its virtio devices, with their addresses: a host sees only accesses to
//! addresses.

use std::fs;
use std::path::Path;

use crate::wire::{MAX_DEVICE_NAME_BYTES, MAX_NAMED_DEVICES, MAX_RANGES_OF_ONE, NamedDevice};

use crate::device::{IOMEM, ranges, virtio_devices};

/// The list of virtio devices.
const DEVICES: &str = "/sys/bus/virtio/devices";
/// Folders of a device with the guest's name for it: `block/vda`, `net/eth0`.
const KINDS: [&str; 2] = ["block", "net"];

/// This machine's virtio devices with known addresses, at most as many as a message can hold.
#[must_use]
pub fn named_devices() -> Vec<NamedDevice> {
    let iomem = fs::read_to_string(IOMEM).unwrap_or_default();
    named_in(Path::new(DEVICES), &iomem)
}

fn named_in(folder: &Path, iomem: &str) -> Vec<NamedDevice> {
    let mut devices: Vec<NamedDevice> =
        virtio_devices(folder).iter().filter_map(|device| named(device, iomem)).collect();
    devices.sort_by(|device, other| {
        device.name.len().cmp(&other.name.len()).then(device.name.cmp(&other.name))
    });
    devices.truncate(MAX_NAMED_DEVICES);
    devices
}

fn named(device: &Path, iomem: &str) -> Option<NamedDevice> {
    let name = device.file_name()?.to_str().filter(|name| name.len() <= MAX_DEVICE_NAME_BYTES)?;
    let mut ranges = ranges(device, iomem);
    ranges.truncate(MAX_RANGES_OF_ONE);
    let called = KINDS.iter().find_map(|kind| only_entry(&device.join(kind)));
    (!ranges.is_empty()).then(|| NamedDevice { name: name.to_owned(), called, ranges })
}

/// The only entry of a folder; `None` if there are several: a device with several interfaces has no single name.
fn only_entry(folder: &Path) -> Option<String> {
    let mut entries = fs::read_dir(folder).ok()?;
    let entry = entries.next()?.ok()?;
    let name =
        entry.file_name().into_string().ok().filter(|name| name.len() <= MAX_DEVICE_NAME_BYTES)?;
    entries.next().is_none().then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::DeviceRange;
    use std::os::unix::fs::symlink;

    #[test]
    fn devices_have_the_names_of_their_disks_and_interfaces() {
        let root = tempfile::tempdir().unwrap();
        let bus = root.path().join("bus");
        fs::create_dir(&bus).unwrap();
        let add = |name: &str, has: &str| {
            let device = root
                .path()
                .join("pci0000:00")
                .join(format!("0000:00:0{}.0", &name[6..]))
                .join(name);
            fs::create_dir_all(device.join(has)).unwrap();
            symlink(&device, bus.join(name)).unwrap();
            device
        };
        let disk = add("virtio3", "block/vda");
        let network = add("virtio10", "net/eth0");
        let random = add("virtio2", "driver");
        add("virtio1", "block/vdb");
        let resource = |device: &Path, first: u64| {
            let line = format!("{first:#x} {:#x} 0x40200\n", first + 0xfff);
            fs::write(device.parent().unwrap().join("resource"), line).unwrap();
        };
        resource(&disk, 0xfe00_0000);
        resource(&network, 0xfe00_1000);
        resource(&random, 0xfe00_2000);
        let named_device = |name: &str, called: Option<&str>, first: u64| NamedDevice {
            name: name.to_owned(),
            called: called.map(str::to_owned),
            ranges: vec![DeviceRange { ports: false, first, last: first + 0xfff }],
        };
        let all = [
            named_device("virtio2", None, 0xfe00_2000),
            named_device("virtio3", Some("vda"), 0xfe00_0000),
            named_device("virtio10", Some("eth0"), 0xfe00_1000),
        ];
        assert_eq!(named_in(&bus, ""), all, "virtio1 is at no address that is known");
        fs::create_dir(network.join("net/eth1")).unwrap();
        assert_eq!(named_in(&bus, "")[2], named_device("virtio10", None, 0xfe00_1000));
        assert_eq!(named_in(&root.path().join("none"), ""), []);
    }
}
