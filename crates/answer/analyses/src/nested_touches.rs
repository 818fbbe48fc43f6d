//! Model-specific registers, and VMCB field groups, that ancillary exits of level 1 accessed.

use std::collections::BTreeMap;

use timeline::Detail;

/// Max registers per reason, because a guest can use any number.
const MAX_MSRS: usize = 256;

/// Groups of fields of a VMCB, by their bits in its field "VMCB Clean" (AMD64 Architecture
/// Programmer's Manual, volume 2, 15.15.3).
const VMCB_GROUPS: [&str; 12] = [
    "intercepts",
    "permission maps",
    "ASID",
    "virtual interrupts",
    "nested paging",
    "CR0/3/4, EFER",
    "DR6/7",
    "GDT, IDT",
    "segments",
    "CR2",
    "LBR",
    "AVIC",
];

/// Groups that KVM marks as changed before each run, even if they are not.
const ALWAYS: [&str; 2] = ["virtual interrupts", "CR2"];

/// Accesses by exits of one reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct Touches {
    /// Exits by register number.
    msrs: BTreeMap<u64, u64>,
    vmcb: VmcbWrites,
}

/// A hypervisor's changes to VMCBs before its guest's runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VmcbWrites {
    /// Runs with known clean bits.
    pub runs: u64,
    /// Runs before which each group changed, by clean-bit number. A hypervisor can mark an unchanged group as
    /// changed.
    changed: [u64; VMCB_GROUPS.len()],
}

impl VmcbWrites {
    /// Groups that changed before some run, with the number of runs, most frequent first. The two groups that KVM
    /// always marks come last.
    #[must_use]
    pub fn groups(&self) -> Vec<(&'static str, u64)> {
        let all = VMCB_GROUPS.into_iter().zip(self.changed);
        let mut some: Vec<_> = all.filter(|(_, runs)| *runs > 0).collect();
        some.sort_by_key(|(group, runs)| (ALWAYS.contains(group), std::cmp::Reverse(*runs)));
        some
    }

    fn add(&mut self, clean_bits: u64) {
        self.runs = self.runs.saturating_add(1);
        for (bit, runs) in self.changed.iter_mut().enumerate() {
            *runs = runs.saturating_add(u64::from(clean_bits >> bit & 1 == 0));
        }
    }
}

impl Touches {
    /// Adds an exit's access, if it is known.
    pub(crate) fn add(&mut self, detail: Option<(Detail, u64)>) {
        match detail {
            Some((Detail::Msr, number)) => self.add_msr(number, 1),
            Some((Detail::VmcbClean, bits)) => self.vmcb.add(bits),
            _ => {}
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        other.msrs.iter().for_each(|(number, count)| self.add_msr(*number, *count));
        self.vmcb.runs = self.vmcb.runs.saturating_add(other.vmcb.runs);
        for (mine, others) in self.vmcb.changed.iter_mut().zip(other.vmcb.changed) {
            *mine = mine.saturating_add(others);
        }
    }

    /// Registers with numbers of exits, most frequent first; and VMCB changes.
    pub(crate) fn into_parts(self) -> (Vec<(u64, u64)>, VmcbWrites) {
        let mut msrs: Vec<(u64, u64)> = self.msrs.into_iter().collect();
        msrs.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        (msrs, self.vmcb)
    }

    fn add_msr(&mut self, number: u64, count: u64) {
        if self.msrs.len() < MAX_MSRS || self.msrs.contains_key(&number) {
            *self.msrs.entry(number).or_default() += count;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_that_is_not_set_is_a_group_that_changed() {
        let mut touches = Touches::default();
        // Clean bits of KVM for a repeated run: it always marks virtual interrupts and CR2 as changed.
        touches.add(Some((Detail::VmcbClean, 0xfff & !(1 << 3) & !(1 << 9))));
        touches.add(Some((Detail::Msr, 0x1d9)));
        touches.add(None);
        let mut other = Touches::default();
        // A first run has all groups changed; unknown bits are ignored.
        other.add(Some((Detail::VmcbClean, 1 << 31)));
        other.merge(&touches);
        let (msrs, vmcb) = other.into_parts();
        assert_eq!(msrs, [(0x1d9, 1)]);
        assert_eq!(vmcb.runs, 2);
        let groups = vmcb.groups();
        assert_eq!(groups.len(), VMCB_GROUPS.len());
        assert_eq!(groups[..2], [("intercepts", 1), ("permission maps", 1)]);
        assert_eq!(groups[10..], [("virtual interrupts", 2), ("CR2", 2)]);
    }
}
