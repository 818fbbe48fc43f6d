//! Devices by address, as guests' agents reported them.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use timeline::Detail;

/// Devices by the process of their VM's VMM.
#[derive(Clone, Debug, Default)]
pub struct VmDevices(HashMap<u32, Places>);

/// By first address: the last address, and the device's name.
type Ranges = BTreeMap<u64, (u64, String)>;

#[derive(Clone, Debug, Default)]
struct Places {
    memory: Ranges,
    ports: Ranges,
}

impl VmDevices {
    /// Adds guest physical addresses, or ports, of a device in this process's VM.
    pub fn add(&mut self, process: u32, name: &str, ports: bool, at: RangeInclusive<u64>) {
        let places = self.0.entry(process).or_default();
        let ranges = if ports { &mut places.ports } else { &mut places.memory };
        ranges.entry(*at.start()).or_insert_with(|| (*at.end(), name.to_owned()));
    }

    /// The device that an exit of level 1 accessed.
    pub(super) fn name_at(&self, process: u32, (detail, value): (Detail, u64)) -> Option<&str> {
        let places = self.0.get(&process)?;
        let ranges = match detail {
            Detail::Gpa => &places.memory,
            Detail::Port => &places.ports,
            _ => return None,
        };
        let (_, (last, name)) = ranges.range(..=value).next_back()?;
        (value <= *last).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_at_its_own_addresses_of_its_own_vm() {
        let mut devices = VmDevices::default();
        devices.add(7, "vda", false, 0xfe00_0000..=0xfe00_0fff);
        devices.add(7, "vdb", false, 0xfe00_1000..=0xfe00_1fff);
        devices.add(7, "vda", true, 0xc000..=0xc03f);
        let name_at = |process, about| devices.name_at(process, about);
        assert_eq!(name_at(7, (Detail::Gpa, 0xfe00_0000)), Some("vda"));
        assert_eq!(name_at(7, (Detail::Gpa, 0xfe00_0fff)), Some("vda"));
        assert_eq!(name_at(7, (Detail::Gpa, 0xfe00_1000)), Some("vdb"));
        assert_eq!(name_at(7, (Detail::Port, 0xc010)), Some("vda"));
        let of_none = [
            (Detail::Gpa, 0xfe00_2000),
            (Detail::Gpa, 0xc010),
            (Detail::Port, 0xc040),
            (Detail::Msr, 0xc010),
        ];
        assert!(of_none.iter().all(|about| name_at(7, *about).is_none()));
        assert_eq!(name_at(8, (Detail::Port, 0xc010)), None);
    }
}
