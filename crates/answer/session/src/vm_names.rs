//! Names for VMs of recordings by other tools: `--name vm-119=web`.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use analyses::vms::find_vms;
use anyhow::bail;
use sources::Recording;

use crate::Misuse;

/// A VM's name in the recording, and its new name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmName {
    /// The name in the recording.
    pub vm: String,
    /// The new name.
    pub name: String,
}

impl FromStr for VmName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=').map(|(vm, name)| (vm.trim(), name.trim())) {
            Some((vm, name)) if !vm.is_empty() && !name.is_empty() => {
                Ok(Self { vm: vm.to_owned(), name: name.to_owned() })
            }
            _ => Err("write VM=NAME, as in vm-119=web".to_owned()),
        }
    }
}

/// The new names of VMs in the recordings to be opened.
#[derive(Clone, Debug, Default)]
pub struct VmNames {
    names: Vec<VmName>,
    /// Refuse a name whose VM is in no recording.
    must_exist: bool,
}

impl VmNames {
    /// Names for one session: each VM must exist in one of its recordings.
    #[must_use]
    pub fn of_one_session(names: &[VmName]) -> Self {
        Self { names: names.to_vec(), must_exist: true }
    }

    /// Names for each of several sessions, which need not have the same VMs.
    #[must_use]
    pub fn of_each_session(names: &[VmName]) -> Self {
        Self { names: names.to_vec(), must_exist: false }
    }

    fn by_vm(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let mut by_vm = BTreeMap::new();
        for VmName { vm, name } in &self.names {
            if by_vm.insert(vm.clone(), name.clone()).is_some() {
                bail!(Misuse(format!("--name gives {vm} two names")));
            }
        }
        Ok(by_vm)
    }
}

/// Renames the VMs of recordings.
///
/// # Errors
/// When a VM does not exist, or two VMs would have the same name.
pub(crate) fn name_vms(recordings: &mut [Recording], names: &VmNames) -> anyhow::Result<()> {
    if names.names.is_empty() {
        return Ok(());
    }
    let by_vm = names.by_vm()?;
    let mut seen = BTreeSet::new();
    for recording in recordings.iter_mut() {
        let vms: Vec<String> = find_vms(recording, &|_| ()).into_iter().map(|vm| vm.name).collect();
        recording.set_vm_names(by_vm.clone());
        let mut called = BTreeSet::new();
        for vm in &vms {
            let name = recording.vm_name(vm);
            if !called.insert(name.to_owned()) {
                bail!(Misuse(format!(
                    "{}: --name gives two of its VMs the name {name}",
                    recording.path().display()
                )));
            }
        }
        seen.extend(vms);
    }
    let unknown = by_vm.keys().find(|vm| !seen.contains(*vm)).filter(|_| names.must_exist);
    if let Some(unknown) = unknown {
        let all: Vec<&str> = seen.iter().map(String::as_str).collect();
        let there = if all.is_empty() {
            "the recordings have no VM".to_owned()
        } else {
            format!("there are: {}", all.join(", "))
        };
        bail!(Misuse(format!("--name: no VM is called {unknown}; {there}")));
    }
    Ok(())
}
