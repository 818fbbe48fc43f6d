//! Counters over all intervals, of a bounded number of VMs and reasons.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Interval, LeftOut, Row};

use crate::metrics::vm::{REASON_SERIES, Reason, VM_SERIES, Vm};

/// Min number of series, without any VM: the sum of what has no room, and the cost of measuring.
pub const MIN_SERIES: usize = VM_SERIES + OWN_SERIES;
/// Series of the server itself, and of losses.
pub(crate) const OWN_SERIES: usize = 11;
/// The series of an ended VM stay this long, so that collectors see its last numbers.
const GONE_AFTER_NS: u64 = 60_000_000_000;
/// Max characters of a name; longer ones are cut, and share counters if they become equal.
const MAX_NAME_CHARS: usize = 128;

/// All sums.
#[derive(Clone, Debug)]
pub struct Totals {
    most_series: usize,
    series: usize,
    pub(crate) vms: BTreeMap<String, Vm>,
    /// VMs beyond the max number, and exits of unknown VMs.
    pub(crate) rest: Vm,
    pub(crate) cost: OwnCost,
    pub(crate) lost: LeftOut,
    pub(crate) intervals: u64,
    pub(crate) left_out: usize,
    pub(crate) end_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnCost {
    pub(crate) process_ns: u64,
    /// `None` until it was measured.
    pub(crate) programs_ns: Option<u64>,
    /// Exits that the programs counted.
    pub(crate) exits: u64,
}

impl Totals {
    /// Empty totals, with room for a number of series, at least [`MIN_SERIES`].
    #[must_use]
    pub fn new(most_series: usize) -> Self {
        Self {
            most_series: most_series.max(MIN_SERIES),
            series: MIN_SERIES,
            vms: BTreeMap::new(),
            rest: Vm::default(),
            cost: OwnCost::default(),
            lost: LeftOut::default(),
            intervals: 0,
            left_out: 0,
            end_ns: 0,
        }
    }

    pub fn add(&mut self, interval: &Interval) {
        self.end_ns = interval.end_ns;
        self.intervals += 1;
        self.drop_gone();
        let mut left_out = LeftOutSeries::default();
        self.add_vcpus(interval, &mut left_out);
        for row in &interval.rows {
            self.add_row(row, &mut left_out);
        }
        self.left_out = left_out.count();
        self.add_cost(interval);
    }

    #[must_use]
    pub fn series(&self) -> usize {
        self.series
    }

    /// Max number of series.
    #[must_use]
    pub fn most_series(&self) -> usize {
        self.most_series
    }

    fn drop_gone(&mut self) {
        let end_ns = self.end_ns;
        self.vms.retain(|_, vm| end_ns.saturating_sub(vm.seen_ns) <= GONE_AFTER_NS);
        self.series = MIN_SERIES + self.vms.values().map(Vm::series).sum::<usize>();
    }

    fn add_vcpus(&mut self, interval: &Interval, left_out: &mut LeftOutSeries) {
        self.rest.vcpus = 0;
        self.vms.values_mut().for_each(|vm| vm.vcpus = 0);
        for vcpu in &interval.vcpus {
            let name = label(&vcpu.vm);
            if self.admit(&name) {
                let vm = self.vms.entry(name).or_default();
                vm.seen_ns = interval.end_ns;
                vm.add_vcpu(vcpu);
            } else {
                self.rest.add_vcpu(vcpu);
                left_out.vms.insert(name);
            }
        }
    }

    /// Whether a VM is shown, or gets shown because there is room.
    fn admit(&mut self, name: &str) -> bool {
        if self.vms.contains_key(name) {
            return true;
        }
        let has_room = self.series + VM_SERIES <= self.most_series;
        if has_room {
            self.series += VM_SERIES;
        }
        has_room
    }

    fn add_row(&mut self, row: &Row, left_out: &mut LeftOutSeries) {
        let has_room = self.series + REASON_SERIES <= self.most_series;
        let name = row.vm.as_deref().map(label);
        let Some(vm) = name.as_ref().and_then(|name| self.vms.get_mut(name)) else {
            self.rest.add_exits(row);
            self.rest.other.add(&row.sums);
            left_out.vms.extend(name);
            return;
        };
        vm.add_exits(row);
        let reason = (row.level, label(&row.reason));
        if let Some(exits) = vm.reasons.get_mut(&reason) {
            exits.add(&row.sums);
        } else if has_room {
            self.series += REASON_SERIES;
            vm.reasons.entry(reason).or_default().add(&row.sums);
        } else {
            vm.other.add(&row.sums);
            left_out.reasons.insert((name, reason));
        }
    }

    fn add_cost(&mut self, interval: &Interval) {
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        add(&mut self.cost.process_ns, interval.cost.process_ns);
        add(&mut self.cost.exits, interval.cost.exits);
        if let Some(more) = interval.cost.programs_ns {
            add(self.cost.programs_ns.get_or_insert(0), more);
        }
        add(&mut self.lost.without_state, interval.left_out.without_state);
        add(&mut self.lost.pieces, interval.left_out.pieces);
        add(&mut self.lost.waits, interval.left_out.waits);
        add(&mut self.lost.sched_events, interval.left_out.sched_events);
    }
}

/// What had no room in an interval.
#[derive(Debug, Default)]
struct LeftOutSeries {
    vms: BTreeSet<String>,
    reasons: BTreeSet<(Option<String>, Reason)>,
}

impl LeftOutSeries {
    fn count(&self) -> usize {
        self.vms.len() * VM_SERIES + self.reasons.len() * REASON_SERIES
    }
}

/// Escapes a name for a label. An empty name is escaped, too, since the empty label is that of the rest.
fn label(name: &str) -> String {
    if name.is_empty() {
        return "unnamed".to_owned();
    }
    let cut: String = name.chars().take(MAX_NAME_CHARS).collect();
    printable::line(&cut).into()
}

#[cfg(test)]
pub(crate) mod tests;
