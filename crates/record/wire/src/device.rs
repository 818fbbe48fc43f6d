//! Where in a guest's memory, and among its ports, the device behind its channel is.

use crate::fields::{Fields, Malformed, Payload};

/// Ranges that a message has at most; a PCI device has seven.
pub const MAX_DEVICE_RANGES: usize = 64;

/// Guest physical addresses, or x86's ports, at which a device is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceRange {
    /// Ports, not memory.
    pub ports: bool,
    /// The first.
    pub first: u64,
    /// The last, which belongs to it.
    pub last: u64,
}

pub(crate) fn write(ranges: &[DeviceRange], to: &mut Payload) {
    let fits = ranges.get(..MAX_DEVICE_RANGES).unwrap_or(ranges);
    to.list(fits, |to, range| {
        to.flag(range.ports).u64(range.first).u64(range.last);
    });
}

pub(crate) fn read(from: &mut Fields<'_>) -> Result<Vec<DeviceRange>, Malformed> {
    let ranges = from.list(|from| {
        let (ports, first, last) = (from.flag()?, from.u64()?, from.u64()?);
        if first > last {
            return Err(Malformed);
        }
        Ok(DeviceRange { ports, first, last })
    })?;
    if ranges.len() > MAX_DEVICE_RANGES { Err(Malformed) } else { Ok(ranges) }
}
