//! Groups vCPU threads into VMs.
//!
//! A recording has thread ids but no process ids. If it names its guests (trace-cmd's GUEST
//! option), these decide; otherwise threads are grouped by what KVM shows: a vCPU id occurs once
//! per VM, and a VMM creates its vCPU threads in the order of their ids.

use std::collections::HashMap;

use sources::Recording;

use crate::least_tree::LeastTree;
use crate::vcpus::VcpuInfo;

/// A virtual machine on the recorded host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vm {
    /// The guest's name if the recording has it, otherwise `vm-` with the thread id of its first
    /// vCPU; or a name that the user has chosen.
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
    /// The id within the VM: KVM's if events have it, otherwise the index of the thread.
    pub vcpu: u32,
    /// Its thread id.
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
        // A guest entry without a name still identifies the vCPU ids.
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

/// The VMs so far, with indices that find the VM of the next vCPU without a linear search.
#[derive(Default)]
struct FoundVms {
    vms: Vec<Vm>,
    /// The newest VM of each name.
    by_name: HashMap<String, usize>,
    /// Index in `groups`, by comm without digits: a VM's threads differ at most in the number in
    /// their comm ("CPU 0/KVM", "CPU 1/KVM").
    by_comm: HashMap<Option<String>, usize>,
    groups: Vec<SimilarVms>,
    /// Per VM: its group, and its index in the group.
    places: Vec<(usize, usize)>,
}

/// VMs whose threads have the same comm except for digits, newest last.
#[derive(Default)]
struct SimilarVms {
    /// Indices in [`FoundVms::vms`].
    vms: Vec<usize>,
    /// The id of the last vCPU of each VM.
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

    /// The newest VM to which the vCPU can belong.
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

    /// The names of the VMs of these vCPUs: guest, comm, id; thread ids count from 1.
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
