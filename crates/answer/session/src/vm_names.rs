//! What VMs of foreign recordings are called: `--name vm-119=web`.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::OnceLock;

use analyses::vms::find_vms;
use anyhow::bail;
use sources::Recording;

use crate::Misuse;

/// A VM as a recording calls it, and as it is to be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmName {
    /// As the recording calls it.
    pub vm: String,
    /// As it is to be called.
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

/// The names of a command line.
#[derive(Debug, Default)]
pub struct VmNames {
    names: Vec<VmName>,
    /// Recordings are read as one: each name is of a VM of one of them.
    are_together: bool,
}

/// Those of this run.
static NAMES: OnceLock<VmNames> = OnceLock::new();

impl VmNames {
    /// These names.
    #[must_use]
    pub fn new(names: &[VmName], are_together: bool) -> Self {
        Self { names: names.to_vec(), are_together }
    }

    /// Has all recordings that are opened from now on use them.
    pub fn apply(self) {
        // The command line is read once.
        let _ = NAMES.set(self);
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

/// Names the VMs of recordings as the command line says.
///
/// # Errors
/// When there is no VM of a name given, or two would have the same.
pub(crate) fn name_vms(recordings: &mut [Recording]) -> anyhow::Result<()> {
    let Some(names) = NAMES.get().filter(|names| !names.names.is_empty()) else { return Ok(()) };
    let by_vm = names.by_vm()?;
    let mut seen = BTreeSet::new();
    for recording in recordings.iter_mut() {
        let own: Vec<String> = find_vms(recording, &|_| ()).into_iter().map(|vm| vm.name).collect();
        recording.set_vm_names(by_vm.clone());
        let mut called = BTreeSet::new();
        for vm in &own {
            let name = recording.vm_name(vm);
            if !called.insert(name.to_owned()) {
                bail!(Misuse(format!(
                    "{}: --name calls two of its VMs {name}",
                    recording.path().display()
                )));
            }
        }
        seen.extend(own);
    }
    let unknown = by_vm.keys().find(|vm| !seen.contains(*vm)).filter(|_| names.are_together);
    if let Some(unknown) = unknown {
        let all: Vec<&str> = seen.iter().map(String::as_str).collect();
        let there = match all.is_empty() {
            true => "there is no VM".to_owned(),
            false => format!("there are: {}", all.join(", ")),
        };
        bail!(Misuse(format!("--name: no VM is called {unknown}; {there}")));
    }
    Ok(())
}
