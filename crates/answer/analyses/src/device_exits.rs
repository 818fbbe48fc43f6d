//! Counts exits at the addresses of a device: the cost of accessing it.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use sources::Recording;
use timeline::{Detail, ExitSink, ExitSpan, each_exit, has_detail};

/// A guest's device and its addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceAddresses {
    /// The guest's vCPU threads; `None`: any guest.
    pub vcpus: Option<BTreeSet<u32>>,
    /// Guest physical addresses of the device's registers and memory.
    pub memory: Vec<RangeInclusive<u64>>,
    pub ports: Vec<RangeInclusive<u64>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceExits {
    /// Exits at its memory addresses: kicks, register accesses and page faults.
    pub memory: u64,
    pub ports: u64,
    /// All exits of the guest's vCPUs.
    pub all: u64,
    /// Whether the counts are complete, apart from losses: the guest's exits are recorded, with events that have
    /// addresses.
    pub is_known: bool,
}

/// Counts the exits at each of `devices`; `progress` receives the number of bytes read.
///
/// Addresses belong to the host's own guests. Nested guests have address spaces of their own, so their exits only
/// count in `all`.
#[must_use]
pub fn device_exits(
    host: &Recording,
    devices: &[DeviceAddresses],
    progress: &(dyn Fn(u64) + Sync),
) -> Vec<DeviceExits> {
    let pass = each_exit(host, true, DeviceExitCounter { devices, by_vcpu: Vec::new() }, progress);
    let counts = pass.sink.by_vcpu;
    let of_device = |(at, device): (usize, &DeviceAddresses)| {
        let mut sum = DeviceExits::default();
        let mut is_seen = false;
        for (info, counted) in pass.vcpus.iter().zip(&counts) {
            if device.vcpus.as_ref().is_none_or(|vcpus| vcpus.contains(&info.thread)) {
                let accesses = counted.by_device.get(at).copied().unwrap_or_default();
                sum.memory += accesses.memory;
                sum.ports += accesses.ports;
                sum.all += counted.all;
                is_seen |= counted.all > 0;
            }
        }
        let is_known = |ranges: &[_], detail| ranges.is_empty() || has_detail(host, detail);
        let has_detail =
            is_known(&device.memory, Detail::Gpa) && is_known(&device.ports, Detail::Port);
        DeviceExits { is_known: is_seen && has_detail, ..sum }
    };
    devices.iter().enumerate().map(of_device).collect()
}

/// Counts exits by vCPU: the VM of a vCPU is only known at the end.
#[derive(Debug)]
struct DeviceExitCounter<'d> {
    devices: &'d [DeviceAddresses],
    by_vcpu: Vec<OfVcpu>,
}

#[derive(Clone, Debug, Default)]
struct OfVcpu {
    all: u64,
    by_device: Vec<Accesses>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Accesses {
    memory: u64,
    ports: u64,
}

impl ExitSink for DeviceExitCounter<'_> {
    fn exit(&mut self, vcpu: usize, span: &ExitSpan) {
        if self.by_vcpu.len() <= vcpu {
            let none = OfVcpu { all: 0, by_device: vec![Accesses::default(); self.devices.len()] };
            self.by_vcpu.resize(vcpu + 1, none);
        }
        let Some(of_vcpu) = self.by_vcpu.get_mut(vcpu) else { return };
        of_vcpu.all += 1;
        let Some((detail, value)) = span.detail.filter(|_| span.level == 1) else { return };
        let is_at =
            |ranges: &[RangeInclusive<u64>]| ranges.iter().any(|range| range.contains(&value));
        for (device, accesses) in self.devices.iter().zip(&mut of_vcpu.by_device) {
            match detail {
                Detail::Gpa => accesses.memory += u64::from(is_at(&device.memory)),
                Detail::Port => accesses.ports += u64::from(is_at(&device.ports)),
                _ => {}
            }
        }
    }
}
