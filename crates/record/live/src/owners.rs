//! Maps vCPU threads to VMs: looks up the running VMs again when an unknown process appears.

use std::collections::{HashMap, HashSet};

/// Names of VMs by the process of their VMM.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    names: HashMap<u32, String>,
}

impl Owners {
    /// Looks up these processes; ended ones keep their names while they are listed.
    pub(crate) fn know(&mut self, processes: &HashSet<u32>) {
        self.names.retain(|process, _| processes.contains(process));
        if processes.iter().all(|process| self.names.contains_key(process)) {
            return;
        }
        for vm in vms::running() {
            if processes.contains(&vm.pid) {
                self.names.insert(vm.pid, vm.name);
            }
        }
        // It ended before it was looked up, or is no known type of VM.
        for &process in processes {
            self.names.entry(process).or_insert_with(|| format!("vm-{process}"));
        }
    }

    /// The name of a process's VM.
    pub(crate) fn name(&self, process: u32) -> String {
        self.names.get(&process).cloned().unwrap_or_else(|| format!("vm-{process}"))
    }
}
