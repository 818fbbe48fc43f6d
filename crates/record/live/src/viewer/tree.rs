//! An interval as a tree: VMs, their vCPUs, and their reasons, each with the same numbers, sorted and filtered. Guests
//! with nested guests have a line per level.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::{Histogram, Interval, Row, Vcpu};
use timeline::VcpuActivity;

/// The sort key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// CPU time of handling exits.
    #[default]
    Cost,
    Exits,
    /// Run-queue wait.
    RunQueue,
    /// The 99th percentile of times.
    P99,
    Name,
}

impl Sort {
    /// All, in the order of the keys' help.
    pub const ALL: [Self; 5] = [Self::Cost, Self::Exits, Self::RunQueue, Self::P99, Self::Name];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cost => "cost",
            Self::Exits => "exits",
            Self::RunQueue => "run queue",
            Self::P99 => "p99",
            Self::Name => "name",
        }
    }
}

/// Identifies a line: a VM, a vCPU, a level of either, or a reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The VM's name.
    pub vm: String,
    /// A vCPU.
    pub vcpu: Option<u32>,
    /// The level, if the line is a part of a VM or a vCPU.
    pub level: Option<u8>,
    /// A reason and its level.
    pub reason: Option<(String, u8)>,
}

/// A line of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub place: Place,
    pub exits: u64,
    /// CPU time of handling exits; 0 for waiting exits.
    pub cost_ns: u64,
    /// Run-queue wait.
    pub run_queue_ns: u64,
    /// Guest time, of a VM or a vCPU.
    pub guest_ns: u64,
    /// Times of non-waiting exits; a reason's line has the times of its own exits.
    pub times: Histogram,
    /// Run-queue waits.
    pub waits: Histogram,
    /// A waiting exit.
    pub waiting: bool,
}

impl Line {
    fn new(place: Place) -> Self {
        Self {
            place,
            exits: 0,
            cost_ns: 0,
            run_queue_ns: 0,
            guest_ns: 0,
            times: Histogram::default(),
            waits: Histogram::default(),
            waiting: false,
        }
    }

    /// Depth in the tree.
    #[must_use]
    pub fn depth(&self) -> usize {
        let is_part = self.place.reason.is_some() || self.place.level.is_some();
        usize::from(self.place.vcpu.is_some()) + usize::from(is_part)
    }

    /// Whether it can be expanded.
    #[must_use]
    pub fn can_open(&self) -> bool {
        self.place.reason.is_none() && self.place.level.is_none()
    }

    /// Its own name.
    #[must_use]
    pub fn name(&self) -> String {
        match (&self.place.reason, self.place.level, self.place.vcpu) {
            (Some((reason, level)), ..) if *level > 1 => format!("{reason} (L{level})"),
            (Some((reason, _)), ..) => reason.clone(),
            (None, Some(level), _) => format!("level {level}"),
            (None, None, Some(vcpu)) => format!("vCPU {vcpu}"),
            (None, None, None) => self.place.vm.clone(),
        }
    }

    fn add_exits(&mut self, row: &Row, alone: bool) {
        self.exits = self.exits.saturating_add(row.sums.count);
        if !row.waiting {
            self.cost_ns = self.cost_ns.saturating_add(row.sums.cost_ns());
        }
        if !row.waiting || alone {
            self.times.add(&row.sums.times);
        }
    }

    /// Adds exits of the line's own reason.
    fn add_own_exits(&mut self, row: &Row) {
        self.waiting = row.waiting;
        self.run_queue_ns = self.run_queue_ns.saturating_add(row.sums.parts.runnable_ns);
        self.add_exits(row, true);
    }

    fn add_vcpu(&mut self, vcpu: &Vcpu) {
        let activity_ns = |activity| vcpu.states.time_ns(activity);
        let queue =
            activity_ns(VcpuActivity::Preempted).saturating_add(activity_ns(VcpuActivity::Waiting));
        self.run_queue_ns = self.run_queue_ns.saturating_add(queue);
        self.add_guest(activity_ns(VcpuActivity::Guest));
        self.waits.add(&vcpu.waits.times);
    }

    fn add_guest(&mut self, guest_ns: u64) {
        self.guest_ns = self.guest_ns.saturating_add(guest_ns);
    }
}

/// The lines of an interval whose rows are by vCPU: each VM with its levels, if it has several; its vCPUs below it, and
/// their levels and reasons below those, as far as `is_open`. With a filter, only lines count whose VM or reason
/// contains it.
pub(crate) fn lines(
    interval: &Interval,
    sort: Sort,
    filter: &str,
    is_open: impl Fn(&Place) -> bool,
) -> Vec<Line> {
    let all = sums(interval, filter);
    let mut vms: Vec<&Line> = all.values().filter(|line| line.depth() == 0).collect();
    order(&mut vms, sort);
    let mut lines = Vec::new();
    for vm in vms {
        lines.push(vm.clone());
        lines.extend(levels(&all, &vm.place));
        if !is_open(&vm.place) {
            continue;
        }
        for vcpu in below(&all, &vm.place, sort) {
            lines.push(vcpu.clone());
            if is_open(&vcpu.place) {
                lines.extend(levels(&all, &vcpu.place));
                lines.extend(below(&all, &vcpu.place, sort).into_iter().cloned());
            }
        }
    }
    lines
}

/// A VM's vCPUs, or a vCPU's reasons.
fn below<'l>(all: &'l BTreeMap<Place, Line>, place: &Place, sort: Sort) -> Vec<&'l Line> {
    let is_below = |line: &&Line| match place.vcpu {
        None => line.place.vcpu.is_some() && line.can_open(),
        Some(_) => line.place.reason.is_some(),
    };
    let mut lines: Vec<&Line> = within(all, place).filter(is_below).collect();
    order(&mut lines, sort);
    lines
}

/// The levels of a VM or a vCPU, lowest first; empty if there is only one.
fn levels(all: &BTreeMap<Place, Line>, place: &Place) -> Vec<Line> {
    let of_place = within(all, place).take_while(|line| line.place.vcpu == place.vcpu);
    let levels: Vec<Line> = of_place.filter(|line| line.place.level.is_some()).cloned().collect();
    if levels.len() > 1 { levels } else { Vec::new() }
}

/// All lines of a VM or of a vCPU: they are contiguous.
fn within<'l>(all: &'l BTreeMap<Place, Line>, place: &Place) -> impl Iterator<Item = &'l Line> {
    let Place { vm, vcpu, .. } = place.clone();
    all.range(place.clone()..)
        .map(|(_, line)| line)
        .take_while(move |line| line.place.vm == vm && (vcpu.is_none() || line.place.vcpu == vcpu))
}

/// Sorts stably: lines of equal weight stay in the order of their places.
fn order(lines: &mut [&Line], sort: Sort) {
    match sort {
        Sort::Cost => lines.sort_by_key(|line| (line.waiting, Reverse(line.cost_ns))),
        Sort::Exits => lines.sort_by_key(|line| Reverse(line.exits)),
        Sort::RunQueue => lines.sort_by_key(|line| Reverse(line.run_queue_ns)),
        Sort::P99 => {
            lines.sort_by_key(|line| (line.waiting, Reverse(line.times.quantile_ns(0.99))));
        }
        Sort::Name => {}
    }
}

fn sums(interval: &Interval, filter: &str) -> BTreeMap<Place, Line> {
    let mut all = BTreeMap::new();
    for row in &interval.rows {
        let vm = row.vm.clone().unwrap_or_else(|| "other".to_owned());
        if !vm.contains(filter) && !row.reason.contains(filter) {
            continue;
        }
        let vcpu = Some(row.vcpu.unwrap_or_default());
        let reason = Some((row.reason.clone(), row.level));
        let place = Place { vm: vm.clone(), vcpu, level: None, reason };
        line_at(&mut all, place).add_own_exits(row);
        for (vcpu, level) in parts(vcpu, row.level) {
            let place = Place { vm: vm.clone(), vcpu, level, reason: None };
            line_at(&mut all, place).add_exits(row, false);
        }
    }
    // A vCPU counts if its VM or one of its reasons matches the filter.
    for vcpu in &interval.vcpus {
        let number = Some(vcpu.vcpu.unwrap_or_default());
        let place = Place { vm: vcpu.vm.clone(), vcpu: number, level: None, reason: None };
        if vcpu.vm.contains(filter) || all.contains_key(&place) {
            add_states(&mut all, vcpu, number);
        }
    }
    all
}

/// Adds a vCPU's states to its lines and to those of its VM.
fn add_states(all: &mut BTreeMap<Place, Line>, vcpu: &Vcpu, number: Option<u32>) {
    let nested_ns = vcpu.states.nested_ns();
    let own_ns = vcpu.states.time_ns(VcpuActivity::Guest).saturating_sub(nested_ns);
    for number in [number, None] {
        let place = |level| Place { vm: vcpu.vm.clone(), vcpu: number, level, reason: None };
        line_at(all, place(None)).add_vcpu(vcpu);
        for (level, guest_ns) in [(1, own_ns), (2, nested_ns)] {
            if guest_ns > 0 {
                line_at(all, place(Some(level))).add_guest(guest_ns);
            }
        }
    }
}

fn line_at(all: &mut BTreeMap<Place, Line>, place: Place) -> &mut Line {
    all.entry(place.clone()).or_insert_with(|| Line::new(place))
}

/// The vCPUs and levels of the lines that an exit belongs to; an unknown level counts as level 1.
fn parts(vcpu: Option<u32>, level: u8) -> impl Iterator<Item = (Option<u32>, Option<u8>)> {
    let level = Some(level.max(1));
    [(vcpu, None), (None, None), (vcpu, level), (None, level)].into_iter()
}
