//! Maps vCPUs to their host threads, and to the CPUs in guests' recordings.

use rustc_hash::FxHashMap;

use crate::align::GuestAlignment;
use crate::path::{Machines, Thread};

/// A vCPU with its host thread and guest CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct VcpuLayer {
    pub(super) thread: Thread,
    /// Recording and CPU of the guest; `None` without a guest's recording.
    pub(super) guest_cpu: Option<(u16, u16)>,
    /// Bound of the guest's clock alignment.
    pub(super) bound_ns: u64,
}

/// All vCPUs, by the indexes of [`Machines`].
#[derive(Debug, Default)]
pub(super) struct Layers {
    vcpus: Vec<VcpuLayer>,
    by_guest_cpu: FxHashMap<(u16, u16), usize>,
}

impl Layers {
    pub(super) fn new(machines: &Machines<'_>, guests: &[GuestAlignment]) -> Self {
        let layer = |thread| VcpuLayer { thread, guest_cpu: None, bound_ns: 0 };
        let mut vcpus: Vec<VcpuLayer> = machines.vcpu_threads().map(layer).collect();
        let by_guest_cpu: FxHashMap<(u16, u16), usize> = machines.guest_cpus().collect();
        let mut bounds_ns: FxHashMap<usize, u64> = FxHashMap::default();
        for guest in guests {
            let rows = guest.result().map_or(&[][..], |alignment| &alignment.rows);
            let bound_ns = rows.iter().filter_map(|row| row.bound_ns).max().unwrap_or(0);
            let widest_ns = bounds_ns.entry(guest.guest).or_default();
            *widest_ns = bound_ns.max(*widest_ns);
        }
        for (&place, &vcpu) in &by_guest_cpu {
            let Some(layer) = vcpus.get_mut(vcpu) else { continue };
            let bound_ns = bounds_ns.get(&usize::from(place.0)).copied();
            (layer.guest_cpu, layer.bound_ns) = (Some(place), bound_ns.unwrap_or(0));
        }
        Self { vcpus, by_guest_cpu }
    }

    pub(super) fn vcpu(&self, vcpu: usize) -> Option<VcpuLayer> {
        self.vcpus.get(vcpu).copied()
    }

    /// The vCPU of a guest's CPU.
    pub(super) fn vcpu_of_guest(&self, recording: u16, cpu: u16) -> Option<usize> {
        self.by_guest_cpu.get(&(recording, cpu)).copied()
    }
}
