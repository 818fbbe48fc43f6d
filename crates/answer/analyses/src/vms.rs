//! Which VMs a recording shows.

use rustc_hash::FxHashMap;
use sources::Recording;
use timeline::{Vm, VmVcpu, find_vcpus, group_vms};

/// The VMs of `recording`; `tick` receives the number of bytes read.
#[must_use]
pub fn find_vms(recording: &Recording, progress: &(dyn Fn(u64) + Sync)) -> Vec<Vm> {
    group_vms(recording, &find_vcpus(recording, progress))
}

/// VMs by the indexes of their vCPUs: there may be as many as a recording has threads.
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

    /// The VM that a vCPU belongs to, and what it is there.
    pub(crate) fn find(&self, vcpu: usize) -> Option<(&'v Vm, &'v VmVcpu)> {
        self.0.get(&vcpu).map(|(_, vm, vcpu)| (*vm, *vcpu))
    }

    /// The place of the VM that a vCPU belongs to.
    pub(crate) fn place(&self, vcpu: usize) -> Option<usize> {
        self.0.get(&vcpu).map(|(at, ..)| *at)
    }
}
