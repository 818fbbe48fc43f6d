//! Which vCPU threads belong to one VM.
//!
//! A recording holds thread ids but no process ids. Recordings that name their guests (trace-cmd's
//! GUEST option) settle it; else threads are put together by what KVM shows: within a VM each vCPU
//! id occurs once, and a VMM makes its vCPU threads in the order of their ids.

use std::collections::HashMap;

use sources::Recording;

use crate::least_tree::LeastTree;
use crate::vcpus::VcpuInfo;

/// A virtual machine seen on the recorded host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vm {
    /// The guest's name where the recording has it, else `vm-` and its first vCPU's thread id; or what its user
    /// calls it instead.
    pub name: String,
    /// The VMM's comm, as recorded for the first vCPU thread.
    pub comm: Option<String>,
    /// Its vCPUs, in the order of their ids.
    pub vcpus: Vec<VmVcpu>,
}

/// A vCPU of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmVcpu {
    /// Index in [`crate::ExitPass::vcpus`].
    pub index: usize,
    /// The id within the VM: KVM's where events carry it, else the order of the threads.
    pub vcpu: u32,
    /// Its thread.
    pub thread: u32,
}

/// Groups the vCPU threads of a recording into VMs, in the order of their thread ids.
#[must_use]
pub fn group_vms(recording: &Recording, infos: &[VcpuInfo]) -> Vec<Vm> {
    let guest_threads = recording.guests_by_thread();
    let mut order: Vec<usize> = (0..infos.len()).collect();
    order.sort_by_key(|&at| infos.get(at).map(|info| (info.thread, info.first_ns)));
    let mut found = FoundVms::default();
    for index in order {
        let Some(info) = infos.get(index) else { continue };
        let guest = guest_threads.get(&info.thread).copied();
        let id = guest.map(|(_, vcpu)| vcpu).or(info.vcpu_id);
        // A guest can be identified without a name: its vCPU ids count, its name doesn't.
        let guest = guest.map(|(name, _)| name).filter(|name| !name.is_empty());
        found.add(guest, recording.comm(info.thread), (index, info.thread, id));
    }
    let mut vms = found.vms;
    for vm in &mut vms {
        vm.name = recording.vm_name(&vm.name).to_owned();
        vm.vcpus.sort_by_key(|vcpu| (vcpu.vcpu, vcpu.thread));
    }
    vms
}

/// The VMs found so far, and by what the next vCPU finds the one that it belongs to without looking
/// at all of them.
#[derive(Default)]
struct FoundVms {
    vms: Vec<Vm>,
    /// The newest VM of each name.
    by_name: HashMap<String, usize>,
    /// Number in `groups`, by comm without digits: a VM's threads differ at most in the number in
    /// their comm ("CPU 0/KVM", "CPU 1/KVM").
    by_comm: HashMap<Option<String>, usize>,
    groups: Vec<SimilarVms>,
    /// Per VM its group, and its place in that.
    places: Vec<(usize, usize)>,
}

/// VMs whose threads have the same comm but for digits, the newest last.
#[derive(Default)]
struct SimilarVms {
    /// Numbers in [`FoundVms::vms`].
    vms: Vec<usize>,
    /// The id of the vCPU that each got last.
    last_ids: LeastTree,
}

impl FoundVms {
    fn add(
        &mut self,
        guest: Option<&str>,
        comm: Option<&str>,
        (index, thread, id): (usize, u32, Option<u32>),
    ) {
        let without_digits =
            comm.map(|comm| comm.chars().filter(|char| !char.is_ascii_digit()).collect());
        let groups = self.groups.len();
        let group = *self.by_comm.entry(without_digits).or_insert(groups);
        if group == groups {
            self.groups.push(SimilarVms::default());
        }
        let at = self.home(guest, group, id).unwrap_or_else(|| {
            let name = guest.map_or_else(|| format!("vm-{thread}"), str::to_owned);
            self.make(name, comm, group)
        });
        let Some(vm) = self.vms.get_mut(at) else { return };
        let vcpu = id.unwrap_or(vm.vcpus.len() as u32);
        vm.vcpus.push(VmVcpu { index, vcpu, thread });
        let Some(&(group, place)) = self.places.get(at) else { return };
        if let Some(group) = self.groups.get_mut(group) {
            group.last_ids.set(place, vcpu);
        }
    }

    /// The newest VM that the vCPU can belong to.
    fn home(&self, guest: Option<&str>, group: usize, id: Option<u32>) -> Option<usize> {
        if let Some(name) = guest {
            return self.by_name.get(name).copied();
        }
        let group = self.groups.get(group)?;
        let place = match id {
            None => group.vms.len().checked_sub(1),
            Some(0) => None,
            Some(id) => group.last_ids.last_below(id),
        };
        group.vms.get(place?).copied()
    }

    fn make(&mut self, name: String, comm: Option<&str>, group: usize) -> usize {
        let at = self.vms.len();
        self.by_name.insert(name.clone(), at);
        self.vms.push(Vm { name, comm: comm.map(str::to_owned), vcpus: Vec::new() });
        let place = self.groups.get(group).map_or(0, |group| group.vms.len());
        self.places.push((group, place));
        if let Some(group) = self.groups.get_mut(group) {
            group.vms.push(at);
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the VMs of these vCPUs: guest, comm, id; threads count from 1.
    fn homes(vcpus: &[(Option<&str>, &str, Option<u32>)]) -> Vec<(String, Vec<u32>)> {
        let mut found = FoundVms::default();
        for (thread, &(guest, comm, id)) in (1..).zip(vcpus) {
            found.add(guest, Some(comm), (0, thread, id));
        }
        let threads = |vm: &Vm| vm.vcpus.iter().map(|vcpu| vcpu.thread).collect();
        found.vms.iter().map(|vm| (vm.name.clone(), threads(vm))).collect()
    }

    #[test]
    fn vcpus_join_the_newest_vm_that_has_no_such_id_yet() {
        let [zero, first, second] = [0, 1, 2].map(|id| (None, "CPU 7/KVM", Some(id)));
        let other = (None, "vmm", Some(1));
        let found = homes(&[zero, zero, other, first, first, second, second, first]);
        let expected = [
            ("vm-1", vec![1, 5, 7]),
            ("vm-2", vec![2, 4, 6]),
            ("vm-3", vec![3]),
            ("vm-8", vec![8]),
        ];
        assert_eq!(found, expected.map(|(name, threads)| (name.to_owned(), threads)));
    }

    #[test]
    fn named_guests_and_threads_without_ids_find_their_vm() {
        let unknown = (None, "qemu-3", None);
        let named = |name, id| (Some(name), "qemu-1", Some(id));
        let found =
            homes(&[unknown, unknown, named("web", 0), named("db", 0), named("web", 1), unknown]);
        let expected = [("vm-1", vec![1, 2]), ("web", vec![3, 5]), ("db", vec![4, 6])];
        assert_eq!(found, expected.map(|(name, threads)| (name.to_owned(), threads)));
    }
}
