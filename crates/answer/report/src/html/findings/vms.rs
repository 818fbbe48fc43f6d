//! The VMs of a recording with separate findings, and one finding for all others.

use std::cmp::Reverse;

use analyses::cpu::TakenCpu;
use analyses::exits::ExitRow;
use rustc_hash::FxHashMap;

use super::time::Amounts;
use super::{Finding, Link, Weight};
use crate::{Source, counted, plural, share};

/// Max VMs per recording with separate findings: those whose exits cost most.
pub(super) const MAX_VMS: usize = 100;

#[derive(Debug)]
pub(super) struct RowsOfVm<'s> {
    pub(super) vm: &'s str,
    /// Its exits, the costliest first.
    pub(super) rows: Vec<&'s ExitRow>,
    /// Threads that had the CPUs for which its vCPUs waited.
    pub(super) takers: Vec<&'s TakenCpu>,
}

/// The VMs of a recording that have exits.
#[derive(Debug)]
pub(super) struct ListedVms<'s> {
    /// VMs with separate findings, in the order of the recording.
    pub(super) vms: Vec<RowsOfVm<'s>>,
    pub(super) others: Others,
}

/// Sums over the other VMs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Others {
    vms: u64,
    exits: u64,
    /// Cost of exits that don't wait or, if it is unknown, their time.
    value: u64,
}

impl<'s> ListedVms<'s> {
    pub(super) fn new(source: &'s Source, takers: &[&'s TakenCpu]) -> Self {
        let all = rows_by_vm(source, takers);
        let weights: Vec<(u64, u64)> = all.iter().map(|vm| vm.weight(source)).collect();
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|at| weights.get(*at).copied().map(Reverse));
        let mut is_listed = vec![true; all.len()];
        let mut others = Others::default();
        for &at in order.iter().skip(MAX_VMS) {
            if let (Some(is_listed), Some((value, exits))) =
                (is_listed.get_mut(at), weights.get(at))
            {
                *is_listed = false;
                others.add(*value, *exits);
            }
        }
        let listed_vms = all.into_iter().zip(is_listed).filter(|(_, is_listed)| *is_listed);
        Self { vms: listed_vms.map(|(vm, _)| vm).collect(), others }
    }
}

/// The rows of each VM that has exits.
fn rows_by_vm<'s>(source: &'s Source, takers: &[&'s TakenCpu]) -> Vec<RowsOfVm<'s>> {
    let mut places: FxHashMap<&str, usize> = FxHashMap::default();
    let mut all: Vec<RowsOfVm<'s>> = Vec::new();
    for vm in &source.exits.vms {
        places.entry(&vm.name).or_insert_with(|| {
            all.push(RowsOfVm { vm: &vm.name, rows: Vec::new(), takers: Vec::new() });
            all.len() - 1
        });
    }
    for row in &source.exits.rows {
        let place = row.group.vm.as_deref().and_then(|vm| places.get(vm));
        if let Some(vm) = place.and_then(|at| all.get_mut(*at)) {
            vm.rows.push(row);
        }
    }
    for &had in takers {
        let place = places.get(had.vm.as_str());
        if let Some(vm) = place.and_then(|at| all.get_mut(*at)) {
            vm.takers.push(had);
        }
    }
    all.retain(|vm| vm.rows.iter().any(|row| row.tally.count > 0));
    all
}

impl RowsOfVm<'_> {
    /// Cost of exits that don't wait or, if it is unknown, their time; and the number of all exits.
    fn weight(&self, source: &Source) -> (u64, u64) {
        let working = self.rows.iter().filter(|row| !row.waiting);
        let value = |row: &&ExitRow| Amounts::new(&row.tally, &source.exits.recorded).value();
        let exits = self.rows.iter().map(|row| row.tally.count);
        (working.map(value).fold(0, u64::saturating_add), exits.fold(0, u64::saturating_add))
    }
}

impl Others {
    fn add(&mut self, value: u64, exits: u64) {
        self.vms += 1;
        self.exits = self.exits.saturating_add(exits);
        self.value = self.value.saturating_add(value);
    }

    /// The finding; `totals` are those of all exits of the recording.
    pub(super) fn finding(self, totals: Amounts) -> Option<Finding> {
        let values = [
            &counted(self.vms, "further VM", "further VMs"),
            &plural(self.exits, "exit"),
            &share(self.value, totals.value()),
            totals.name(),
        ];
        let sentence = "*{}* with {} took {} of the {} of all exits; the tables list them.";
        let link = Link { section: "exits", ..Link::default() };
        (self.vms > 0).then(|| Finding::new(Weight::Info, sentence, &values).to(link))
    }
}
