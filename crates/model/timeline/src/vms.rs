//! Which vCPU threads belong to one VM.
//!
//! A recording holds thread ids but no process ids. Recordings that name their guests (trace-cmd's
//! GUEST option) settle it; else threads are put together by what KVM shows: within a VM each vCPU
//! id occurs once, and a VMM makes its vCPU threads in the order of their ids.

use sources::Recording;

use crate::vcpus::VcpuInfo;

/// A virtual machine seen on the recorded host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vm {
    /// The guest's name where the recording has it, else `vm-` and its first vCPU's thread id.
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
    let mut order: Vec<usize> = (0..infos.len()).collect();
    order.sort_by_key(|&at| infos.get(at).map(|info| (info.thread, info.first_ns)));
    let mut vms: Vec<Vm> = Vec::new();
    for index in order {
        let Some(info) = infos.get(index) else { continue };
        let guest = recording.guest_of_thread(info.thread);
        let comm = recording.comm(info.thread).map(str::to_owned);
        let id = guest.map(|(_, vcpu)| vcpu).or(info.vcpu_id);
        // A guest can be identified without a name: its vCPU ids count, its name doesn't.
        let guest = guest.filter(|(name, _)| !name.is_empty());
        let name = match guest {
            Some((name, _)) => name.to_owned(),
            None => format!("vm-{}", info.thread),
        };
        let home = vms.iter_mut().rev().find(|vm| belongs(vm, guest, id, comm.as_deref()));
        match home {
            Some(vm) => vm.vcpus.push(VmVcpu {
                index,
                vcpu: id.unwrap_or(vm.vcpus.len() as u32),
                thread: info.thread,
            }),
            None => vms.push(Vm {
                name,
                comm,
                vcpus: vec![VmVcpu { index, vcpu: id.unwrap_or(0), thread: info.thread }],
            }),
        }
    }
    for vm in &mut vms {
        vm.vcpus.sort_by_key(|vcpu| (vcpu.vcpu, vcpu.thread));
    }
    vms
}

fn belongs(vm: &Vm, guest: Option<(&str, u32)>, id: Option<u32>, comm: Option<&str>) -> bool {
    match (guest, id) {
        (Some((name, _)), _) => vm.name == name,
        // A VM's threads differ at most in the number in their comm ("CPU 0/KVM", "CPU 1/KVM").
        _ if without_digits(vm.comm.as_deref()) != without_digits(comm) => false,
        (None, Some(id)) => id != 0 && vm.vcpus.last().is_some_and(|last| last.vcpu < id),
        (None, None) => true,
    }
}

fn without_digits(comm: Option<&str>) -> Option<String> {
    comm.map(|comm| comm.chars().filter(|one| !one.is_ascii_digit()).collect())
}
