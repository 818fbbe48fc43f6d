//! Addresses of a guest's devices, memory and ports: the channel's device, and virtio devices with their names.

use crate::wire::fields::{Fields, Malformed, Payload};

/// Max ranges in a message; a PCI device has up to seven.
pub const MAX_DEVICE_RANGES: usize = 64;

/// Max named devices in a message; the guest's further devices have no names.
pub const MAX_NAMED_DEVICES: usize = 64;
/// Max ranges of a named device.
pub const MAX_RANGES_OF_ONE: usize = 8;
/// Max bytes of a device's name: Linux has 31 for disks, 15 for network interfaces.
pub const MAX_DEVICE_NAME_BYTES: usize = 32;

/// A virtio device of a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedDevice {
    /// Its virtio name: `virtio3`.
    pub name: String,
    /// The guest's name of its disk or network interface: `vda`. `None`: it has neither.
    pub called: Option<String>,
    pub ranges: Vec<DeviceRange>,
}

/// A range of guest physical addresses or x86 I/O ports of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceRange {
    /// I/O ports instead of memory.
    pub ports: bool,
    pub first: u64,
    /// The last address, inclusive.
    pub last: u64,
}

pub(crate) fn write(ranges: &[DeviceRange], to: &mut Payload) {
    write_ranges(ranges, MAX_DEVICE_RANGES, to);
}

pub(crate) fn read(from: &mut Fields<'_>) -> Result<Vec<DeviceRange>, Malformed> {
    read_ranges(from, MAX_DEVICE_RANGES)
}

pub(crate) fn write_named(devices: &[NamedDevice], to: &mut Payload) {
    to.list(first(devices, MAX_NAMED_DEVICES), |to, device| {
        to.text(&device.name);
        to.option(device.called.as_ref(), |to, called| {
            to.text(called);
        });
        write_ranges(&device.ranges, MAX_RANGES_OF_ONE, to);
    });
}

pub(crate) fn read_named(from: &mut Fields<'_>) -> Result<Vec<NamedDevice>, Malformed> {
    let devices = from.list(|from| {
        let (name, called) = (from.text()?, from.option(Fields::text)?);
        let is_long = |name: &String| name.len() > MAX_DEVICE_NAME_BYTES;
        if is_long(&name) || called.as_ref().is_some_and(is_long) {
            return Err(Malformed);
        }
        Ok(NamedDevice { name, called, ranges: read_ranges(from, MAX_RANGES_OF_ONE)? })
    })?;
    if devices.len() > MAX_NAMED_DEVICES { Err(Malformed) } else { Ok(devices) }
}

fn first<T>(all: &[T], max: usize) -> &[T] {
    all.get(..max).unwrap_or(all)
}

fn write_ranges(ranges: &[DeviceRange], max: usize, to: &mut Payload) {
    to.list(first(ranges, max), |to, range| {
        to.flag(range.ports).u64(range.first).u64(range.last);
    });
}

fn read_ranges(from: &mut Fields<'_>, max: usize) -> Result<Vec<DeviceRange>, Malformed> {
    let ranges = from.list(|from| {
        let (ports, first, last) = (from.flag()?, from.u64()?, from.u64()?);
        if first > last {
            return Err(Malformed);
        }
        Ok(DeviceRange { ports, first, last })
    })?;
    if ranges.len() > max { Err(Malformed) } else { Ok(ranges) }
}
