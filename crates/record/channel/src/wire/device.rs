//! Where in a guest's memory, and among its ports, its devices are: that behind its channel, and those of virtio with their names.

use crate::wire::fields::{Fields, Malformed, Payload};

/// Ranges that a message has at most; a PCI device has seven.
pub const MAX_DEVICE_RANGES: usize = 64;

/// Devices that a message names at most: what a guest has beyond them has no names.
pub const MAX_NAMED_DEVICES: usize = 64;
/// Ranges of a device that has a name, at most.
pub const MAX_RANGES_OF_ONE: usize = 8;
/// Bytes of a device's name at most: Linux names disks with 31, networks' interfaces with 15.
pub const MAX_DEVICE_NAME_BYTES: usize = 32;

/// A virtio device of a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedDevice {
    /// Its name among the devices of virtio: `virtio3`.
    pub name: String,
    /// What the guest calls its disk or network interface: `vda`. None: it has neither.
    pub called: Option<String>,
    pub ranges: Vec<DeviceRange>,
}

/// Guest physical addresses, or x86's ports, at which a device is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceRange {
    /// Ports, not memory.
    pub ports: bool,
    pub first: u64,
    /// The last, which belongs to it.
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
