//! Roles of a host's threads for its VMs, derived from the threads that run guests, from names, and from parent threads.

use std::collections::HashMap;

use rustc_hash::FxHashMap;
use timeline::Vm;
use timeline::trace_events::ThreadNames;

use super::States;
use crate::recorders::is_recorder;

/// Role of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// Runs a vCPU.
    Vcpu,
    /// Another thread of the VMM: its main loop, its workers.
    Vmm,
    /// A vhost worker, which serves a VM's devices in the kernel.
    Vhost,
    /// Another kernel thread that KVM creates for a VM.
    Kvm,
    /// Belongs to the recorder.
    Recorder,
    /// No known relation to a VM.
    #[default]
    Other,
    /// The idle thread.
    Idle,
}

impl Part {
    /// Name in reports and scripts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vcpu => "vcpu",
            Self::Vmm => "vmm",
            Self::Vhost => "vhost",
            Self::Kvm => "kvm",
            Self::Recorder => "recorder",
            Self::Other => "other",
            Self::Idle => "idle",
        }
    }
}

/// Role of a thread, and its VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    pub part: Part,
    /// Index of the VM among those of the recording.
    pub vm: Option<usize>,
}

/// Prefixes of kernel threads whose names end with the id of their owner, a VMM's thread: `vhost`
/// (`vhost_dev_set_owner`) and `kvm-pit/` (`kvm_create_pit`).
const OWNED: [(&str, Part); 3] =
    [("vhost-", Part::Vhost), ("kvm-pit/", Part::Kvm), ("kvm-nx-lpage-recovery-", Part::Kvm)];

/// Max length of a chain of creators.
const MAX_MAKERS: usize = 64;

/// Roles of one recording's threads.
#[derive(Debug)]
pub struct Roles<'s> {
    vms: &'s [Vm],
    names: Option<&'s ThreadNames>,
    makers: Option<&'s FxHashMap<u32, u32>>,
    vcpus: FxHashMap<u32, usize>,
    /// VMs by thread, for certain threads of VMMs.
    vmms: FxHashMap<u32, usize>,
    /// First vCPU threads with their VMs, ascending.
    by_first: Vec<(u32, usize)>,
    /// As `by_first`, by name of the VM's vCPU threads.
    by_name: FxHashMap<&'s str, Vec<(u32, usize)>>,
}

impl<'s> Roles<'s> {
    /// Roles in a recording. `processes` has the processes of vCPU threads as far as the recorder knows them;
    /// `threads` are all threads of the recording.
    #[must_use]
    pub fn new(
        states: &'s States,
        recording: usize,
        processes: &HashMap<u32, u32>,
        threads: impl Iterator<Item = u32>,
    ) -> Self {
        let vms = states.vms.get(recording).map_or(&[][..], Vec::as_slice);
        let all = |vm: &'s Vm| vm.vcpus.iter().map(|vcpu| vcpu.thread);
        let pairs =
            || vms.iter().enumerate().flat_map(|(at, vm)| all(vm).map(move |thread| (thread, at)));
        let known = pairs().filter_map(|(thread, vm)| Some((*processes.get(&thread)?, vm)));
        let mut roles = Self {
            vms,
            names: states.pass.names.get(recording),
            makers: states.makers.get(recording),
            vcpus: pairs().collect(),
            vmms: known.collect(),
            by_first: Vec::new(),
            by_name: FxHashMap::default(),
        };
        roles.sort_vms();
        for thread in threads {
            if let Some((_, owner)) = roles.owned(thread)
                && let Some(vm) = Self::vm_above(&roles.by_first, owner)
            {
                roles.vmms.entry(owner).or_insert(vm);
            }
        }
        roles
    }

    #[must_use]
    pub fn role_of(&self, thread: u32) -> Role {
        if thread == 0 {
            return Role { part: Part::Idle, vm: None };
        }
        if let Some(vm) = self.vcpus.get(&thread) {
            return Role { part: Part::Vcpu, vm: Some(*vm) };
        }
        if let Some((part, owner)) = self.owned(thread) {
            let vm = self.vcpus.get(&owner).or_else(|| self.vmms.get(&owner));
            return Role { part, vm: vm.copied() };
        }
        match self.of_vmm(thread) {
            Some(vm) => Role { part: Part::Vmm, vm: Some(vm) },
            None => Role { part: self.of_no_vm(thread), vm: None },
        }
    }

    fn of_no_vm(&self, thread: u32) -> Part {
        if self.name(thread).is_some_and(is_recorder) { Part::Recorder } else { Part::Other }
    }

    /// The VM whose VMM a thread belongs to.
    fn of_vmm(&self, thread: u32) -> Option<usize> {
        let mut maker = thread;
        for _ in 0..MAX_MAKERS {
            if let Some(vm) = self.vmms.get(&maker) {
                return Some(*vm);
            }
            let Some(next) = self.makers.and_then(|makers| makers.get(&maker)) else { break };
            maker = *next;
        }
        // A VMM that does not name its threads: they have the same name as its vCPUs.
        let name = self.name(thread)?;
        Self::vm_above(self.by_name.get(name)?, thread)
    }

    /// The VM whose first vCPU thread has the next higher id: a VMM's main thread creates the vCPU threads.
    fn vm_above(vms: &[(u32, usize)], thread: u32) -> Option<usize> {
        let above = vms.partition_point(|(first, _)| *first < thread);
        vms.get(above).map(|(_, vm)| *vm)
    }

    /// Fills `by_first` and `by_name`.
    fn sort_vms(&mut self) {
        for (at, vm) in self.vms.iter().enumerate() {
            let Some(first) = vm.vcpus.iter().map(|vcpu| vcpu.thread).min() else { continue };
            self.by_first.push((first, at));
            for vcpu in &vm.vcpus {
                if let Some(name) = self.names.and_then(|names| names.get(vcpu.thread)) {
                    self.by_name.entry(name).or_default().push((first, at));
                }
            }
        }
        self.by_first.sort_unstable();
        self.by_name.values_mut().for_each(|vms| vms.sort_unstable());
    }

    /// The role of a kernel thread that works for a VMM, and its owner.
    fn owned(&self, thread: u32) -> Option<(Part, u32)> {
        let name = self.name(thread)?;
        OWNED
            .iter()
            .find_map(|(start, part)| Some((*part, name.strip_prefix(start)?.parse().ok()?)))
    }

    fn name(&self, thread: u32) -> Option<&str> {
        self.names?.get(thread)
    }
}
