//! Identities: vCPU threads, VMs, guests' CPUs, and roles of threads.

use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};
use sources::Recording;
use timeline::Vm;

use super::Actor;
use crate::align::GuestAlignment;
use crate::recorders::is_recorder;
use crate::view::View;
use crate::vms::find_vms;

/// A thread: index of the recording, and thread id.
pub(crate) type Thread = (u16, u32);

/// A vCPU and its VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VcpuOf {
    /// Index in [`Machines::vcpus`].
    pub(crate) index: usize,
    pub(crate) vm: u16,
}

/// A vCPU: its VM, its id in it, its thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VcpuId {
    pub(crate) vm: u16,
    pub(crate) id: u32,
    thread: Thread,
}

/// Machines in the recordings, known before the first event.
#[derive(Debug, Default)]
pub(crate) struct Machines<'r> {
    pub(crate) recordings: &'r [Recording],
    pub(crate) vcpus: Vec<VcpuId>,
    vms: Vec<Vm>,
    /// By recording: names of its VMMs' threads, without digits.
    vmm_comms: FxHashSet<(u16, String)>,
    by_thread: FxHashMap<Thread, VcpuOf>,
    /// vCPUs by VM and id; the first thread if several ran the vCPU.
    by_id: FxHashMap<(u16, u32), usize>,
    /// The vCPU of VMs with a single vCPU; `None` for others.
    only_vcpus: FxHashMap<u16, Option<usize>>,
    /// The VM of recordings with a single VM; `None` for others.
    only_vms: FxHashMap<u16, Option<u16>>,
    /// VMs by recording and name.
    vms_by_name: FxHashMap<(u16, String), u16>,
    /// vCPUs by guest's recording and CPU.
    guest_cpus: FxHashMap<(u16, u16), usize>,
    /// CPUs in guests' recordings by vCPU.
    cpus_of_vcpus: FxHashMap<usize, Vec<(u16, u16)>>,
    guests: Vec<u16>,
}

impl<'r> Machines<'r> {
    /// Finds the VMs in the hosts' recordings.
    pub(crate) fn new(view: View<'r>) -> Self {
        let View { recordings, guests } = view;
        let is_guest = |at| guests.iter().any(|guest| guest.guest == at);
        let vms_of =
            |(at, recording)| if is_guest(at) { Vec::new() } else { find_vms(recording, &|_| ()) };
        let vms: Vec<Vec<Vm>> = recordings.iter().enumerate().map(vms_of).collect();
        Self::with_vms(view, &vms)
    }

    /// `vms` has the VMs by recording.
    pub(crate) fn with_vms(view: View<'r>, vms: &[Vec<Vm>]) -> Self {
        let View { recordings, guests } = view;
        let mut machines = Self { recordings, ..Self::default() };
        for (at, vms) in (0u16..).zip(vms) {
            if guests.iter().any(|guest| guest.guest == usize::from(at)) {
                machines.guests.push(at);
            } else {
                machines.add_vms(at, vms);
            }
        }
        guests.iter().for_each(|guest| machines.add_guest(guest));
        for (place, vcpu) in &machines.guest_cpus {
            machines.cpus_of_vcpus.entry(*vcpu).or_default().push(*place);
        }
        machines.cpus_of_vcpus.values_mut().for_each(|places| places.sort_unstable());
        machines
    }

    fn add_vms(&mut self, recording: u16, vms: &[Vm]) {
        for vm in vms.iter().cloned() {
            let Ok(number) = u16::try_from(self.vms.len()) else { return };
            for vcpu in &vm.vcpus {
                self.add_vcpu(VcpuId {
                    vm: number,
                    id: vcpu.vcpu,
                    thread: (recording, vcpu.thread),
                });
            }
            keep_if_alone(&mut self.only_vms, recording, number);
            self.vms_by_name.entry((recording, vm.name.clone())).or_insert(number);
            let comm = vm.comm.as_deref().map(without_digits);
            self.vmm_comms.extend(comm.map(|comm| (recording, comm)));
            self.vms.push(vm);
        }
    }

    fn add_vcpu(&mut self, vcpu: VcpuId) {
        let index = self.vcpus.len();
        // A thread that ran several vCPUs one after the other counts as the first one.
        self.by_thread.entry(vcpu.thread).or_insert(VcpuOf { index, vm: vcpu.vm });
        self.by_id.entry((vcpu.vm, vcpu.id)).or_insert(index);
        keep_if_alone(&mut self.only_vcpus, vcpu.vm, index);
        self.vcpus.push(vcpu);
    }

    fn add_guest(&mut self, guest: &GuestAlignment) {
        let (Ok(host), Ok(recording)) = (u16::try_from(guest.host), u16::try_from(guest.guest))
        else {
            return;
        };
        let Some(vm) = self.vms_by_name.get(&(host, guest.vm.clone())).copied() else { return };
        for row in guest.result().into_iter().flat_map(|result| &result.rows) {
            if let (Some(index), Ok(cpu)) =
                (self.by_id.get(&(vm, row.vcpu)), u16::try_from(row.guest_cpu))
            {
                self.guest_cpus.insert((recording, cpu), *index);
            }
        }
    }

    /// The vCPU of a thread.
    #[inline]
    pub(crate) fn vcpu_of(&self, thread: Thread) -> Option<VcpuOf> {
        self.by_thread.get(&thread).copied()
    }

    /// The vCPU of a guest's CPU.
    pub(super) fn vcpu_of_guest(&self, recording: u16, cpu: u16) -> Option<usize> {
        self.guest_cpus.get(&(recording, cpu)).copied()
    }

    /// A vCPU's CPUs in guests' recordings, ascending.
    pub(super) fn guest_cpus_of(&self, vcpu: usize) -> &[(u16, u16)] {
        self.cpus_of_vcpus.get(&vcpu).map_or(&[], Vec::as_slice)
    }

    /// Host threads of all vCPUs, by index.
    pub(crate) fn vcpu_threads(&self) -> impl Iterator<Item = Thread> {
        self.vcpus.iter().map(|vcpu| vcpu.thread)
    }

    /// The host thread of a vCPU.
    pub(crate) fn thread_of(&self, vcpu: usize) -> Option<Thread> {
        self.vcpus.get(vcpu).map(|vcpu| vcpu.thread)
    }

    /// CPUs in guests' recordings, with their vCPUs.
    pub(crate) fn guest_cpus(&self) -> impl Iterator<Item = ((u16, u16), usize)> {
        self.guest_cpus.iter().map(|(place, vcpu)| (*place, *vcpu))
    }

    pub(super) fn is_guest(&self, recording: u16) -> bool {
        self.guests.contains(&recording)
    }

    /// The VMs by index.
    pub(super) fn into_vms(self) -> Vec<Vm> {
        self.vms
    }

    pub(crate) fn vm_name(&self, vm: u16) -> Option<&str> {
        self.vms.get(usize::from(vm)).map(|vm| vm.name.as_str())
    }

    /// The vCPU with this id in a VM; without an id, the VM's only vCPU.
    pub(crate) fn vcpu_by_id(&self, vm: u16, id: Option<u64>) -> Option<usize> {
        match id {
            Some(id) => self.by_id.get(&(vm, u32::try_from(id).ok()?)).copied(),
            None => self.only_vcpus.get(&vm).copied().flatten(),
        }
    }

    /// The VM of a recording with a single VM.
    pub(crate) fn only_vm(&self, recording: u16) -> Option<u16> {
        self.only_vms.get(&recording).copied().flatten()
    }

    /// Role of a thread, by its vCPU and its name.
    pub(crate) fn role(&self, thread: Thread) -> Actor {
        if self.is_guest(thread.0) {
            return Actor::Guest;
        }
        if self.by_thread.contains_key(&thread) {
            return Actor::Vcpu;
        }
        let recording = self.recordings.get(usize::from(thread.0));
        let Some(comm) = recording.and_then(|recording| recording.comm(thread.1)) else {
            return Actor::Host;
        };
        let is_vmms = || self.vmm_comms.contains(&(thread.0, without_digits(comm)));
        match comm {
            // Kernel threads of vhost are named after their owner: `vhost-713`.
            _ if comm.starts_with("vhost-") => Actor::Vhost,
            _ if is_recorder(comm) => Actor::Recorder,
            _ if is_iothread(comm) || is_vmms() => Actor::Iothread,
            _ => Actor::Host,
        }
    }
}

/// Stores the first value of a key, or `None` if there are several.
fn keep_if_alone<K: Eq + Hash, V>(alone: &mut FxHashMap<K, Option<V>>, key: K, value: V) {
    alone.entry(key).and_modify(|place| *place = None).or_insert(Some(value));
}

/// Names that QEMU, cloud-hypervisor and Firecracker give to threads other than vCPUs.
fn is_iothread(comm: &str) -> bool {
    ["IO ", "iothread", "qemu", "kvm", "fc_", "firecracker", "vmm", "_disk", "_net", "virtiofsd"]
        .iter()
        .any(|beginning| comm.starts_with(beginning))
        && !comm.starts_with("kvm-pit")
        && !comm.starts_with("kvm-nx")
}

fn without_digits(comm: &str) -> String {
    comm.chars().filter(|c| !c.is_ascii_digit()).collect()
}
