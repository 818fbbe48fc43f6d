//! Whose thread a vCPU is: the VMs that run here, looked up again when an unknown process turns up.

use std::collections::{HashMap, HashSet};

/// Names of VMs by the process of their VMM.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    names: HashMap<u32, String>,
}

impl Owners {
    /// Knows all of these processes from now on; those that are gone keep their names while they are among them.
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
        // What has ended before it could be looked at, or is no VM of a known kind.
        for &process in processes {
            self.names.entry(process).or_insert_with(|| format!("vm-{process}"));
        }
    }

    /// The name of a process' VM.
    pub(crate) fn name(&self, process: u32) -> String {
        self.names.get(&process).cloned().unwrap_or_else(|| format!("vm-{process}"))
    }
}
