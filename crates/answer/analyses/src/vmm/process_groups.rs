//! Assigns threads to VMMs: by the recorder's list, and by private futexes, which only threads of one process
//! share.

use std::collections::HashMap;

use rustc_hash::{FxHashMap, FxHashSet};
use timeline::Vm;

/// Max pairs of threads.
const MAX_PAIRS: usize = 1 << 16;

/// Pairs of threads of the same process.
#[derive(Debug, Default)]
pub(super) struct ProcessGroups(FxHashSet<(u32, u32)>);

impl ProcessGroups {
    /// One thread woke another by a private futex.
    pub(super) fn share(&mut self, thread: u32, other: u32) {
        if self.0.len() < MAX_PAIRS {
            self.0.insert((thread.min(other), thread.max(other)));
        }
    }

    /// Indexes of VMs in `vms` by thread of their VMM; `processes` has the processes of threads.
    pub(super) fn owners(
        &self,
        vms: &[Vm],
        processes: &HashMap<u32, u32>,
        threads: impl Iterator<Item = u32>,
    ) -> FxHashMap<u32, usize> {
        let all = vms.iter().enumerate();
        let vcpus = all.flat_map(|(at, vm)| vm.vcpus.iter().map(move |vcpu| (vcpu.thread, at)));
        let mut owners: FxHashMap<u32, usize> = vcpus.collect();
        let of_process: FxHashMap<u32, usize> =
            owners.iter().filter_map(|(thread, vm)| Some((*processes.get(thread)?, *vm))).collect();
        // The main thread of a process has the process id.
        let known = |thread: u32| of_process.get(processes.get(&thread).unwrap_or(&thread));
        let listed: Vec<(u32, usize)> =
            threads.filter_map(|thread| Some((thread, *known(thread)?))).collect();
        for (thread, vm) in listed {
            owners.entry(thread).or_insert(vm);
        }
        self.spread(&mut owners);
        owners
    }

    /// A thread of the same process as a VMM's thread belongs to the VMM as well.
    fn spread(&self, owners: &mut FxHashMap<u32, usize>) {
        let mut pairs: Vec<(u32, u32)> = self.0.iter().copied().collect();
        pairs.sort_unstable();
        loop {
            let before = owners.len();
            for (thread, other) in &pairs {
                match (owners.get(thread).copied(), owners.get(other).copied()) {
                    (Some(vm), None) => drop(owners.insert(*other, vm)),
                    (None, Some(vm)) => drop(owners.insert(*thread, vm)),
                    _ => {}
                }
            }
            if owners.len() == before {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use timeline::VmVcpu;

    use super::*;

    fn vm(thread: u32) -> Vm {
        let vcpus = vec![VmVcpu { index: 0, vcpu: 0, thread }];
        Vm { name: format!("vm-{thread}"), comm: None, vcpus }
    }

    #[test]
    fn by_process_and_by_shared_memory() {
        let vms = [vm(11), vm(21)];
        let mut kin = ProcessGroups::default();
        kin.share(21, 25);
        kin.share(26, 25);
        kin.share(90, 91);
        let processes = HashMap::from([(11, 10), (12, 10), (99, 98)]);
        let owners = kin.owners(&vms, &processes, [10, 12, 25, 26, 90, 91, 98, 99].into_iter());
        let mut owners: Vec<(u32, usize)> = owners.into_iter().collect();
        owners.sort_unstable();
        assert_eq!(owners, [(10, 0), (11, 0), (12, 0), (21, 1), (25, 1), (26, 1)]);
    }
}
