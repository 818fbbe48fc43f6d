//! Rows of the CPU analysis by VM, so that each VM is explained without a search over all.

use rustc_hash::FxHashMap;

use super::Observed;
use crate::cpu::{CpuUse, TakenCpu, ThreadUse, VcpuUse};
use crate::states::Part;

#[derive(Debug, Default)]
pub(super) struct Index<'c> {
    vcpus: FxHashMap<(usize, usize), Vec<&'c VcpuUse>>,
    threads: FxHashMap<(usize, usize), Vec<&'c ThreadUse>>,
    takers: FxHashMap<(usize, &'c str), Vec<&'c TakenCpu>>,
    parts: FxHashMap<(usize, u32), Part>,
    /// By the host's recording and the VM's name, the guest's recording.
    guests: FxHashMap<(usize, &'c str), usize>,
}

impl<'c> Index<'c> {
    pub(super) fn new(cpu: &'c CpuUse) -> Self {
        let mut index = Self::default();
        for vcpu in &cpu.vcpus {
            index.vcpus.entry((vcpu.recording, vcpu.vm)).or_default().push(vcpu);
        }
        for thread in &cpu.threads {
            index.parts.insert((thread.recording, thread.thread), thread.part);
            if let Some(vm) = thread.vm {
                index.threads.entry((thread.recording, vm)).or_default().push(thread);
            }
        }
        for taker in &cpu.takers {
            index.takers.entry((taker.recording, &taker.vm)).or_default().push(taker);
        }
        for (guest, host, vm) in &cpu.guests {
            index.guests.insert((*host, vm), *guest);
        }
        index
    }
}

impl<'o> Observed<'o> {
    fn key(&self) -> (usize, usize) {
        (self.vm.recording, self.vm.index)
    }

    pub(super) fn vcpus(&self) -> impl Iterator<Item = &'o VcpuUse> {
        self.index.vcpus.get(&self.key()).into_iter().flatten().copied()
    }

    /// Recording and thread of each vCPU.
    pub(super) fn vm_vcpus(&self) -> impl Iterator<Item = (usize, u32)> {
        self.vcpus().map(|vcpu| (vcpu.recording, vcpu.thread))
    }

    /// The VM's threads that play this part.
    pub(super) fn threads_of(&self, part: Part) -> impl Iterator<Item = &'o ThreadUse> {
        let threads = self.index.threads.get(&self.key()).into_iter().flatten().copied();
        threads.filter(move |thread| thread.part == part)
    }

    /// Threads that had the CPUs which the VM's vCPUs waited for, the longest first.
    pub(super) fn takers(&self) -> impl Iterator<Item = &'o TakenCpu> {
        let key = (self.vm.recording, self.vm.name.as_str());
        self.index.takers.get(&key).into_iter().flatten().copied()
    }

    pub(super) fn part_of(&self, thread: u32) -> Part {
        self.index.parts.get(&(self.vm.recording, thread)).copied().unwrap_or_default()
    }

    /// The guest's own recording.
    pub(super) fn guest_recording(&self) -> Option<usize> {
        self.index.guests.get(&(self.vm.recording, self.vm.name.as_str())).copied()
    }
}
