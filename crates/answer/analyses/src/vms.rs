//! VMs in a recording.

use rustc_hash::FxHashMap;
use sources::Recording;
use timeline::{Vm, VmVcpu, find_vcpus, group_vms};

/// VMs in `recording`; `progress` receives the number of bytes read.
#[must_use]
pub fn find_vms(recording: &Recording, progress: &(dyn Fn(u64) + Sync)) -> Vec<Vm> {
    group_vms(recording, &find_vcpus(recording, progress))
}

/// Index of VMs by vCPU, because a recording can have as many vCPUs as threads.
#[derive(Debug)]
pub(crate) struct VmsByVcpu<'v>(FxHashMap<usize, (usize, &'v Vm, &'v VmVcpu)>);

impl<'v> VmsByVcpu<'v> {
    pub(crate) fn new(vms: &'v [Vm]) -> Self {
        let mut by_vcpu = FxHashMap::default();
        for (at, vm) in vms.iter().enumerate() {
            for vcpu in &vm.vcpus {
                by_vcpu.entry(vcpu.index).or_insert((at, vm, vcpu));
            }
        }
        Self(by_vcpu)
    }

    /// The VM of a vCPU, and the vCPU's entry in it.
    pub(crate) fn find(&self, vcpu: usize) -> Option<(&'v Vm, &'v VmVcpu)> {
        self.0.get(&vcpu).map(|(_, vm, vcpu)| (*vm, *vcpu))
    }

    /// Index of a vCPU's VM.
    pub(crate) fn place(&self, vcpu: usize) -> Option<usize> {
        self.0.get(&vcpu).map(|(at, ..)| *at)
    }
}
