//! An interval: exits by VM and reason with their times, and the states of each vCPU.

use std::collections::{BTreeMap, BTreeSet};

use timeline::arch::Isa;
use timeline::reasons::Code;

use crate::snapshot::{RowKey, Snapshot, Taker, VcpuState};
use crate::states::States;
use crate::sums::Sums;

/// How exits are grouped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// One row per VM and reason.
    #[default]
    Vm,
    /// One row per vCPU and reason.
    Vcpu,
}

/// What happened in an interval of the monotonic clock.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    pub begin_ns: u64,
    /// Its end, exclusive.
    pub end_ns: u64,
    /// Exits, sorted by descending cost; waiting exits come last.
    pub rows: Vec<Row>,
    /// vCPUs, by VM and number.
    pub vcpus: Vec<Vcpu>,
    /// The cost of measuring.
    pub cost: Cost,
    /// Events that are in no row, or in the wrong part.
    pub left_out: LeftOut,
}

/// Exits of one reason.
#[derive(Clone, Debug)]
pub struct Row {
    /// The VM; `None` for exits whose row the kernel had no room for.
    pub vm: Option<String>,
    /// The vCPU, if rows are per vCPU.
    pub vcpu: Option<u32>,
    /// 1: a guest of this host; 2: any nested guest; 0: unknown.
    pub level: u8,
    /// Architecture of the reasons.
    pub isa: Isa,
    /// The raw code; `None` for exits whose row the kernel had no room for.
    pub code: Option<Code>,
    /// The kernel's name for it.
    pub reason: String,
    /// A waiting exit: the guest is idle.
    pub waiting: bool,
    pub sums: Sums,
}

#[derive(Clone, Debug, Default)]
pub struct Vcpu {
    pub vm: String,
    pub process: u32,
    pub vcpu: Option<u32>,
    pub thread: u32,
    /// The thread has ended.
    pub gone: bool,
    /// Its states; they add up to the interval, without the time before its first exit and after its end.
    pub states: States,
    /// Its run-queue waits.
    pub waits: Sums,
    /// Threads that ran on the CPU for which it waited, sorted by descending time. They add up to the time of `waits`,
    /// without what is too old or had no room.
    pub ran_instead: Vec<RanInstead>,
}

/// A thread that ran while a vCPU waited for its CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RanInstead {
    /// The thread; 0: the CPU was idle until the vCPU got it.
    pub thread: u32,
    pub process: u32,
    /// Its name; `None` if it had ended.
    pub name: Option<String>,
    /// The VM that its process belongs to.
    pub vm: Option<String>,
    pub time_ns: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// CPU time of this process.
    pub process_ns: u64,
    /// CPU time of the BPF programs, if the kernel counts it.
    pub programs_ns: Option<u64>,
    /// Number of counted exits.
    pub exits: u64,
}

/// Events that are in no row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Exits of vCPUs beyond the capacity.
    pub without_state: u64,
    /// Parts of exits in which halt polling could not be detected.
    pub pieces: u64,
    /// Run-queue waits.
    pub waits: u64,
    /// Threads that ran while a vCPU waited.
    pub takers: u64,
    /// Switches and wake-ups that the kernel did not trace.
    pub sched_events: u64,
}

impl Cost {
    /// CPU time of process and programs.
    #[must_use]
    pub fn cpu_ns(&self) -> Option<u64> {
        Some(self.process_ns.saturating_add(self.programs_ns?))
    }

    /// CPU time of the programs per exit, including all events that belong to it.
    #[must_use]
    pub fn per_exit_ns(&self) -> Option<u64> {
        self.programs_ns?.checked_div(self.exits)
    }
}

impl Interval {
    #[must_use]
    pub fn interval_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}

/// Names that an interval needs.
pub(crate) trait Names {
    fn vm(&self, process: u32) -> String;
    /// The instruction set of an exit with this `isa` field.
    fn isa(&self, isa: u8) -> Isa;
    /// An exit reason.
    fn reason(&mut self, isa: u8, code: u64) -> String;
}

/// State of each thread at the interval's begin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    vcpus: BTreeMap<u32, (u64, States)>,
    left_out: LeftOut,
}

impl LeftOut {
    /// Before the first interval.
    fn from_snapshot(snapshot: &Snapshot) -> Self {
        Self {
            without_state: snapshot.without_state,
            pieces: snapshot.pieces_left_out,
            waits: snapshot.waits_left_out,
            takers: snapshot.takers_left_out,
            sched_events: snapshot.sched_events_unseen,
        }
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            without_state: self.without_state.saturating_sub(before.without_state),
            pieces: self.pieces.saturating_sub(before.pieces),
            waits: self.waits.saturating_sub(before.waits),
            takers: self.takers.saturating_sub(before.takers),
            sched_events: self.sched_events.saturating_sub(before.sched_events),
        }
    }
}

impl Before {
    /// Makes an interval from a snapshot taken after its end, and advances to the next.
    pub(crate) fn interval(
        &mut self,
        (begin_ns, end_ns): (u64, u64),
        snapshot: &Snapshot,
        by: By,
        names: &mut impl Names,
    ) -> Interval {
        let all = LeftOut::from_snapshot(snapshot);
        let left_out = all.since(&self.left_out);
        self.left_out = all;
        let rows = rows(snapshot, by, names);
        let exits = rows.iter().map(|row| row.sums.count).fold(0, u64::saturating_add);
        let vcpus = self.vcpus(end_ns, snapshot, names);
        Interval {
            begin_ns,
            end_ns,
            rows,
            vcpus,
            cost: Cost { exits: exits.saturating_add(left_out.without_state), ..Cost::default() },
            left_out,
        }
    }

    fn vcpus(&mut self, end_ns: u64, snapshot: &Snapshot, names: &impl Names) -> Vec<Vcpu> {
        let mut after = BTreeMap::new();
        let mut takers = takers_by_waiter(snapshot, names);
        let mut vcpus = Vec::new();
        for state in snapshot.vcpus.iter().filter(|state| state.born_ns < end_ns) {
            let done = state.done_by(end_ns);
            // A reused id belongs to another thread, which began later.
            let before = self.vcpus.get(&state.thread).filter(|(born, _)| *born == state.born_ns);
            let states = before.map_or(done, |(_, before)| done.since(before));
            let waits = snapshot.waits.iter().filter(|(thread, _)| *thread == state.thread);
            let mut all = Sums::default();
            waits.for_each(|(_, waits)| all.add(waits));
            let ran_instead = takers.remove(&state.thread).unwrap_or_default();
            vcpus.push(vcpu(state, states, (all, ran_instead), names));
            if !state.gone {
                after.insert(state.thread, (state.born_ns, done));
            }
        }
        self.vcpus = after;
        vcpus.sort_by(|a, b| (&a.vm, a.process, a.vcpu).cmp(&(&b.vm, b.process, b.vcpu)));
        vcpus
    }
}

/// By waiting thread: the threads that ran instead, longest first.
fn takers_by_waiter(snapshot: &Snapshot, names: &impl Names) -> BTreeMap<u32, Vec<RanInstead>> {
    let vms: BTreeSet<u32> = snapshot.vcpus.iter().map(|state| state.process).collect();
    let mut by_waiter: BTreeMap<u32, Vec<RanInstead>> = BTreeMap::new();
    for Taker { waiter, thread, process, name, time_ns } in &snapshot.takers {
        by_waiter.entry(*waiter).or_default().push(RanInstead {
            thread: *thread,
            process: *process,
            name: Some(name.clone()).filter(|name| !name.is_empty()),
            vm: vms.contains(process).then(|| names.vm(*process)),
            time_ns: *time_ns,
        });
    }
    for takers in by_waiter.values_mut() {
        takers.sort_by_key(|taker| (std::cmp::Reverse(taker.time_ns), taker.thread));
    }
    by_waiter
}

fn vcpu(
    state: &VcpuState,
    states: States,
    (waits, ran_instead): (Sums, Vec<RanInstead>),
    names: &impl Names,
) -> Vcpu {
    Vcpu {
        vm: names.vm(state.process),
        process: state.process,
        vcpu: state.vcpu,
        thread: state.thread,
        gone: state.gone,
        states,
        waits,
        ran_instead,
    }
}

fn rows(snapshot: &Snapshot, by: By, names: &mut impl Names) -> Vec<Row> {
    type Of = (Option<String>, Option<u32>, u8, u8, u64);
    let threads: BTreeMap<u32, &VcpuState> =
        snapshot.vcpus.iter().map(|state| (state.thread, state)).collect();
    let mut groups: BTreeMap<Of, Sums> = BTreeMap::new();
    for (RowKey { thread, level, isa, code }, sums) in &snapshot.rows {
        let state = threads.get(thread);
        let vm = state.map(|state| names.vm(state.process));
        let vcpu = state.and_then(|state| state.vcpu).filter(|_| by == By::Vcpu);
        groups.entry((vm, vcpu, *level, *isa, *code)).or_default().add(sums);
    }
    let mut rows: Vec<Row> = groups
        .into_iter()
        .map(|((vm, vcpu, level, isa, code), sums)| {
            let architecture = names.isa(isa);
            Row {
                vm,
                vcpu,
                level,
                isa: architecture,
                code: Some(Code::new(architecture, code)),
                reason: names.reason(isa, code),
                waiting: architecture.waits(code),
                sums,
            }
        })
        .collect();
    if snapshot.other.count > 0 {
        rows.push(other(&snapshot.other));
    }
    rows.sort_by_key(|row| (row.waiting, std::cmp::Reverse((row.sums.cost_ns(), row.sums.count))));
    rows
}

/// Exits whose rows the kernel had no room for: of all VMs and reasons.
fn other(sums: &Sums) -> Row {
    Row {
        vm: None,
        vcpu: None,
        level: 0,
        isa: Isa::Unknown,
        code: None,
        reason: "other".to_owned(),
        waiting: false,
        sums: sums.clone(),
    }
}

#[cfg(test)]
mod tests;
