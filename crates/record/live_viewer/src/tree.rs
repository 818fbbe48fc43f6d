//! An interval as a tree: VMs, their vCPUs, the reasons of these, each with the same numbers, sorted and
//! filtered.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use live::{Histogram, Interval, Row, Vcpu};
use timeline::VcpuActivity;

/// What lines are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// What handling exits took on a CPU.
    #[default]
    Cost,
    /// Exits.
    Exits,
    /// Time that could have been run, and wasn't.
    RunQueue,
    /// The 99th percentile of times.
    P99,
    /// By name.
    Name,
}

impl Sort {
    /// All, in the order of their keys' help.
    pub const ALL: [Self; 5] = [Self::Cost, Self::Exits, Self::RunQueue, Self::P99, Self::Name];

    /// What it is called.
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

/// Which line this is: a VM, a vCPU of it, a reason of that.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The VM's name.
    pub vm: String,
    /// A vCPU.
    pub vcpu: Option<u32>,
    /// A reason and its level.
    pub reason: Option<(String, u8)>,
}

/// A line of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Which.
    pub place: Place,
    /// Exits.
    pub exits: u64,
    /// What they took on CPUs; null of waiting exits, which cost nothing.
    pub cost_ns: u64,
    /// Without a CPU though there was something to do.
    pub run_queue_ns: u64,
    /// In the guest, of a VM or a vCPU.
    pub guest_ns: u64,
    /// Times of exits that don't wait; of a reason, of its own.
    pub times: Histogram,
    /// Waits for a CPU.
    pub waits: Histogram,
    /// A guest with nothing to do.
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

    /// How deep it stands.
    #[must_use]
    pub fn depth(&self) -> usize {
        usize::from(self.place.vcpu.is_some()) + usize::from(self.place.reason.is_some())
    }

    /// Its own name.
    #[must_use]
    pub fn name(&self) -> String {
        match (&self.place.reason, self.place.vcpu) {
            (Some((reason, level)), _) if *level > 1 => format!("{reason} (L{level})"),
            (Some((reason, _)), _) => reason.clone(),
            (None, Some(vcpu)) => format!("vCPU {vcpu}"),
            (None, None) => self.place.vm.clone(),
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

    fn add_vcpu(&mut self, vcpu: &Vcpu) {
        let of = |activity| vcpu.states.of(activity);
        let queue = of(VcpuActivity::Preempted).saturating_add(of(VcpuActivity::Waiting));
        self.run_queue_ns = self.run_queue_ns.saturating_add(queue);
        self.guest_ns = self.guest_ns.saturating_add(of(VcpuActivity::Guest));
        self.waits.add(&vcpu.waits.times);
    }
}

/// The lines of an interval whose rows are by vCPU: each VM, its vCPUs below it, and their reasons below
/// those, as far as `is_open` says. Of a filter only lines count whose VM or reason holds it.
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
        if !is_open(&vm.place) {
            continue;
        }
        for vcpu in below(&all, &vm.place, 1, sort) {
            lines.push(vcpu.clone());
            if is_open(&vcpu.place) {
                lines.extend(below(&all, &vcpu.place, 2, sort).into_iter().cloned());
            }
        }
    }
    lines
}

fn below<'l>(
    all: &'l BTreeMap<Place, Line>,
    place: &Place,
    depth: usize,
    sort: Sort,
) -> Vec<&'l Line> {
    let is_below = |line: &&Line| {
        line.depth() == depth
            && line.place.vm == place.vm
            && (depth == 1 || line.place.vcpu == place.vcpu)
    };
    let mut lines: Vec<&Line> = all.values().filter(is_below).collect();
    order(&mut lines, sort);
    lines
}

/// By place, so that lines of the same weight don't change places.
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
    let mut at = |place: Place, add: &dyn Fn(&mut Line)| {
        add(all.entry(place.clone()).or_insert_with(|| Line::new(place)));
    };
    for row in &interval.rows {
        let vm = row.vm.clone().unwrap_or_else(|| "other".to_owned());
        if !vm.contains(filter) && !row.reason.contains(filter) {
            continue;
        }
        let vcpu = Some(row.vcpu.unwrap_or_default());
        let reason = Some((row.reason.clone(), row.level));
        at(Place { vm: vm.clone(), vcpu, reason }, &|line| {
            line.waiting = row.waiting;
            line.run_queue_ns = line.run_queue_ns.saturating_add(row.sums.parts.runnable_ns);
            line.add_exits(row, true);
        });
        at(Place { vm: vm.clone(), vcpu, reason: None }, &|line| line.add_exits(row, false));
        at(Place { vm, vcpu: None, reason: None }, &|line| line.add_exits(row, false));
    }
    // Of a reason that is asked for, its vCPUs; of none, all there are.
    for vcpu in &interval.vcpus {
        let number = Some(vcpu.vcpu.unwrap_or_default());
        let own = Place { vm: vcpu.vm.clone(), vcpu: number, reason: None };
        if !vcpu.vm.contains(filter) && !all.contains_key(&own) {
            continue;
        }
        let vm = Place { vm: vcpu.vm.clone(), vcpu: None, reason: None };
        for place in [own, vm] {
            let line = all.entry(place.clone()).or_insert_with(|| Line::new(place));
            line.add_vcpu(vcpu);
        }
    }
    all
}
