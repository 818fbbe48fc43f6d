//! Matches VMs between runs.

use rustc_hash::{FxHashMap, FxHashSet};

use super::question::{Run, RunVm};

/// Distinct VMs of all runs.
#[derive(Debug, Default)]
pub(super) struct Matching {
    /// The VMs, with the names from the first run of each.
    pub(super) vms: Vec<RunVm>,
    /// By run: indexes of its VMs in `vms`.
    pub(super) places: Vec<Vec<usize>>,
    /// Matched VMs with different names.
    pub(super) renamed: Vec<(String, String)>,
}

impl Matching {
    pub(super) fn from_runs<'r>(runs: impl Iterator<Item = &'r Run>) -> Self {
        let mut matching = Self::default();
        for run in runs {
            matching.add(&run.vms);
        }
        matching
    }

    /// Matches VMs: single VMs of runs are the same VM. Others match by name, and the rest by their order among
    /// VMs with the same number of vCPUs.
    fn add(&mut self, vms: &[RunVm]) {
        let known = self.vms.len();
        let mut places: Vec<Option<usize>> = match (vms, known) {
            ([_], 1) => vec![Some(0)],
            _ => {
                let mut by_name = FxHashMap::default();
                for (at, vm) in self.vms.iter().enumerate() {
                    by_name.entry(vm.name.as_str()).or_insert(at);
                }
                vms.iter().map(|vm| by_name.get(vm.name.as_str()).copied()).collect()
            }
        };
        // Unmatched VMs by number of vCPUs, the first one last.
        let taken_places: FxHashSet<usize> = places.iter().copied().flatten().collect();
        let mut free: FxHashMap<_, Vec<usize>> = FxHashMap::default();
        for (at, vm) in
            self.vms.iter().enumerate().rev().filter(|(at, _)| !taken_places.contains(at))
        {
            free.entry(vm.vcpus).or_default().push(at);
        }
        for (at, vm) in vms.iter().enumerate() {
            if places.get(at).is_some_and(Option::is_some) {
                continue;
            }
            let like = free.get_mut(&vm.vcpus).and_then(Vec::pop);
            let place = like.unwrap_or(self.vms.len());
            if place == self.vms.len() {
                self.vms.push(vm.clone());
            }
            if let Some(slot) = places.get_mut(at) {
                *slot = Some(place);
            }
        }
        let places: Vec<usize> = places.into_iter().flatten().collect();
        let mut renamed: FxHashSet<(String, String)> = self.renamed.iter().cloned().collect();
        for (vm, place) in vms.iter().zip(&places) {
            let Some(known_vm) = self.vms.get(*place).filter(|known_vm| known_vm.name != vm.name)
            else {
                continue;
            };
            let pair = (known_vm.name.clone(), vm.name.clone());
            if renamed.insert(pair.clone()) {
                self.renamed.push(pair);
            }
        }
        self.places.push(places);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vms(specs: &[(&str, usize)]) -> Vec<RunVm> {
        specs
            .iter()
            .map(|(name, vcpus)| RunVm { name: (*name).to_owned(), vcpus: *vcpus })
            .collect()
    }

    fn places(runs: &[&[(&str, usize)]]) -> Matching {
        let mut matching = Matching::default();
        runs.iter().for_each(|run| matching.add(&vms(run)));
        matching
    }

    #[test]
    fn sole_vms_are_the_same_whatever_their_names() {
        let found = places(&[&[("vm-148", 1)], &[("vm-99", 2)]]);
        assert_eq!(found.places, [[0], [0]]);
        assert_eq!(found.renamed, [("vm-148".to_owned(), "vm-99".to_owned())]);
    }

    #[test]
    fn names_come_before_order() {
        let found = places(&[&[("db", 2), ("web", 2)], &[("web", 2), ("vm-7", 2)]]);
        assert_eq!(found.places, [[0, 1], [1, 0]]);
        assert_eq!(found.renamed, [("db".to_owned(), "vm-7".to_owned())]);
    }

    #[test]
    fn a_vm_with_other_vcpus_is_another_one() {
        let found = places(&[&[("vm-1", 1), ("vm-2", 4)], &[("vm-3", 4), ("vm-4", 8)]]);
        assert_eq!(found.places, [[0, 1], [1, 2]]);
        assert_eq!(found.vms.len(), 3);
        assert_eq!(places(&[&[], &[("vm-1", 1)]]).places, [vec![], vec![0]]);
    }
}
