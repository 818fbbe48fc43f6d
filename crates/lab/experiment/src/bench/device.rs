//! The guest's device of each channel, and its addresses.

use std::ops::RangeInclusive;

use analyses::device_exits::DeviceAddresses;

use crate::bench::variant::Variant;

/// Prints type, registers and memory of each PCI device of the guest.
pub(crate) const LIST: &str = "for d in /sys/bus/pci/devices/*; do \
    set -- $d/virtio*; driver=-; name=-; \
    if [ -e $1 ]; then name=${1##*/}; driver=$(readlink $1/driver); driver=${driver##*/}; fi; \
    echo device ${d##*/} $(cat $d/vendor) $(cat $d/device) $name $driver; cat $d/resource; done";

/// Kernel: `include/linux/ioport.h`.
const IORESOURCE_IO: u64 = 0x100;
/// Kernel: `include/linux/ioport.h`.
const IORESOURCE_MEM: u64 = 0x200;

/// A PCI device of the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    /// Its PCI address.
    pub(crate) address: String,
    /// Vendor and device ids.
    ids: (u16, u16),
    /// Its virtio device: `virtio0`.
    virtio: String,
    driver: String,
    memory: Vec<RangeInclusive<u64>>,
    ports: Vec<RangeInclusive<u64>>,
}

impl Device {
    /// Parses the output of [`LIST`].
    pub(crate) fn parse(text: &str) -> Vec<Self> {
        let mut devices: Vec<Self> = Vec::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match (words.as_slice(), devices.last_mut()) {
                (["device", address, vendor, device, virtio, driver], _) => devices.push(Self {
                    address: (*address).to_owned(),
                    ids: (small(vendor), small(device)),
                    virtio: (*virtio).to_owned(),
                    driver: (*driver).to_owned(),
                    memory: Vec::new(),
                    ports: Vec::new(),
                }),
                ([first, last, flags], Some(device)) => {
                    let (range, flags) = (hex(first)..=hex(last), hex(flags));
                    if flags & IORESOURCE_MEM != 0 {
                        device.memory.push(range);
                    } else if flags & IORESOURCE_IO != 0 {
                        device.ports.push(range);
                    }
                }
                _ => {}
            }
        }
        devices
    }

    /// Whether a variant's pages go through this device.
    pub(crate) fn carries(&self, variant: Variant) -> bool {
        match variant {
            Variant::None | Variant::KernelBuffer => false,
            // QEMU's ivshmem, see docs/specs/ivshmem-spec of QEMU.
            Variant::Shm => self.ids == (0x1af4, 0x1110),
            Variant::VirtioSerial | Variant::Cat => self.driver == "virtio_console",
            Variant::Vsock | Variant::TraceCmd => self.driver == "vmw_vsock_virtio_transport",
        }
    }

    /// Whether this name in `/proc/interrupts` is one of its interrupts.
    pub(crate) fn has_interrupt(&self, name: &str) -> bool {
        self.virtio != "-" && name.split('-').next() == Some(&self.virtio)
    }

    /// Addresses whose accesses cause its exits.
    pub(crate) fn addresses(&self) -> DeviceAddresses {
        let (memory, ports) = (self.memory.clone(), self.ports.clone());
        DeviceAddresses { vcpus: None, memory, ports }
    }
}

fn hex(word: &str) -> u64 {
    u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap_or(0)
}

fn small(word: &str) -> u16 {
    u16::try_from(hex(word)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
device 0000:00:02.0 0x1af4 0x1003 virtio0 virtio_console
0x000000000000c000 0x000000000000c03f 0x0000000000040101
0x00000000febfd000 0x00000000febfdfff 0x0000000000040200
0x0000000000000000 0x0000000000000000 0x0000000000000000
device 0000:00:10.0 0x1af4 0x1110 - -
0x00000000febff000 0x00000000febff0ff 0x0000000000040200
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x00000000fd000000 0x00000000fdffffff 0x000000000014220c
";

    #[test]
    fn devices_are_distinct_with_their_addresses() {
        let devices = Device::parse(SAID);
        assert_eq!(devices.len(), 2);
        assert!(devices[0].carries(Variant::VirtioSerial) && !devices[0].carries(Variant::Shm));
        assert_eq!(devices[0].ports, [0xc000..=0xc03f]);
        assert_eq!(devices[0].memory, [0xfebf_d000..=0xfebf_dfff]);
        assert!(devices[1].carries(Variant::Shm) && !devices[1].carries(Variant::Vsock));
        assert_eq!(devices[1].memory, [0xfebf_f000..=0xfebf_f0ff, 0xfd00_0000..=0xfdff_ffff]);
    }

    #[test]
    fn interrupts_belong_to_their_device() {
        let devices = Device::parse(SAID);
        assert!(devices[0].has_interrupt("virtio0-virtqueues"));
        assert!(!devices[0].has_interrupt("virtio01-config"));
        assert!(!devices[1].has_interrupt("virtio0-config") && !devices[1].has_interrupt("-"));
    }
}
