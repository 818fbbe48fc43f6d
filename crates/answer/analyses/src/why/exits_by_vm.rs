//! The exits of a recording by VM, so that each VM is explained without a search over all.

use rustc_hash::FxHashMap;

use super::Unseen;
use crate::advice::{ExitEvidence, VmEvidence};
use crate::nested::{Nested, NestedRow};
use crate::recorded::RecordedParts;

#[derive(Debug)]
pub(super) struct ExitsByVm<'e> {
    pub(super) recorded: RecordedParts,
    /// Whether registers, ports or addresses of exits were recorded.
    pub(super) has_details: bool,
    has_exits: bool,
    vms: FxHashMap<&'e str, &'e VmEvidence>,
    nested: FxHashMap<&'e str, Vec<&'e NestedRow>>,
}

impl<'e> ExitsByVm<'e> {
    pub(super) fn new(exits: &'e ExitEvidence, nested: &'e Nested) -> Self {
        let mut rows: FxHashMap<&str, Vec<&NestedRow>> = FxHashMap::default();
        for row in &nested.rows {
            rows.entry(&row.vm).or_default().push(row);
        }
        Self {
            recorded: exits.recorded,
            has_details: exits.has_details(),
            has_exits: exits.has_exits(),
            vms: exits.vms.iter().map(|vm| (vm.vm.as_str(), vm)).collect(),
            nested: rows,
        }
    }

    pub(super) fn of_vm(&self, vm: &str) -> Option<&'e VmEvidence> {
        self.vms.get(vm).copied()
    }

    /// Exits of guests inside a VM.
    pub(super) fn nested_in(&self, vm: &str) -> impl Iterator<Item = &'e NestedRow> {
        self.nested.get(vm).into_iter().flatten().copied()
    }

    /// What the recording lacks.
    pub(super) fn unseen(&self) -> Vec<Unseen> {
        let recorded = &self.recorded;
        let unseen =
            |is_missing: bool, events, shows| is_missing.then_some(Unseen { events, shows });
        [
            unseen(!recorded.off_cpu, "sched:sched_switch", "waits for a CPU, and who ran instead"),
            unseen(
                recorded.off_cpu && !recorded.wake,
                "sched:sched_waking",
                "late threads of the VMM",
            ),
            unseen(!recorded.user, "kvm:kvm_userspace_exit", "the VMM's share of exits"),
            unseen(
                self.has_exits && !self.has_details,
                "kvm:kvm_msr, kvm_pio, kvm_page_fault, kvm_mmio",
                "registers, ports and devices that exits were about",
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
