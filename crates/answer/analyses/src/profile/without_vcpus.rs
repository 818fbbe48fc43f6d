//! The code of machines none of whose vCPUs are recorded: a guest that was sampled by itself, a host without events of
//! KVM. Nothing says how long anything ran but the samples, each of which stands for its own period.

use std::collections::{BTreeMap, HashMap};

use sources::{Recording, WeighedSample, WeightUnit};

use super::code::Code;
use super::sample_log::{Logged, SampleLog, Whose};
use super::samples::{MachineSamples, Place};
use super::sums::SampleKind;
use super::{CodeFrame, Evidence, SampledTime, weights};
use crate::states::{States, VcpuState};

/// A machine that was sampled, and of which no vCPU is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledMachine {
    /// Which recording.
    pub recording: usize,
    /// It was sampled by itself, as guests are.
    pub is_guest: bool,
    /// What made the samples, and what their weights are.
    pub unit: WeightUnit,
    /// Samples in which a CPU had nothing to run, which are in no thread.
    pub idle_samples: u64,
    /// Its threads, those first that ran longest.
    pub threads: Vec<SampledThread>,
}

impl SampledMachine {
    /// What a guest did whose stack this is; of a host there is no such state.
    #[must_use]
    pub fn state_of(&self, stack: &[CodeFrame]) -> Option<VcpuState> {
        let in_user = stack.last().is_some_and(|leaf| leaf.user_space);
        let state = if in_user { VcpuState::GuestUser } else { VcpuState::GuestKernel };
        Some(state).filter(|_| self.is_guest)
    }

    /// What says that this stack ran.
    #[must_use]
    pub fn evidence_of(&self, stack: &[CodeFrame]) -> Evidence {
        match (stack.is_empty(), self.is_guest) {
            (true, _) => Evidence::None,
            (false, true) => Evidence::Agent,
            (false, false) => Evidence::Host,
        }
    }
}

/// A thread of such a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledThread {
    /// The thread.
    pub thread: u32,
    /// Its name.
    pub comm: Option<String>,
    /// By stack, from the root on; empty: it was not recorded. Times are sums of periods.
    pub stacks: Vec<(Vec<CodeFrame>, SampledTime)>,
}

impl SampledThread {
    /// All of its periods.
    #[must_use]
    pub fn time_ns(&self) -> u64 {
        self.stacks.iter().fold(0, |sum, (_, time)| sum.saturating_add(time.ns))
    }
}

/// Samples of a machine, before their places have names.
#[derive(Debug)]
pub(super) struct MachineWeights {
    recording: usize,
    is_guest: bool,
    unit: WeightUnit,
    idle_samples: u64,
    threads: BTreeMap<u32, ThreadWeights>,
}

#[derive(Debug, Default)]
struct ThreadWeights {
    /// Samples and weights by place.
    seen: BTreeMap<Place, (u64, u64)>,
    weight: u64,
    squares: f64,
}

impl ThreadWeights {
    fn add(&mut self, place: Place, weight: u64) {
        let (samples, sum) = self.seen.entry(place).or_default();
        *samples = samples.saturating_add(1);
        *sum = sum.saturating_add(weight);
        self.weight = self.weight.saturating_add(weight);
        self.squares += (weight as f64).powi(2);
    }
}

/// The samples of all machines, where no recording has a vCPU.
pub(super) fn gather(
    samples: &mut MachineSamples<'_>,
    states: &States,
    recordings: &[Recording],
) -> Vec<MachineWeights> {
    if !states.vms.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    let of = |(at, recording): (usize, &Recording)| machine(samples, at, recording);
    recordings.iter().enumerate().filter_map(of).collect()
}

/// Logs those of the first recording's threads one by one, where no recording has a vCPU and they stand for times.
pub(super) fn log_first(
    samples: &mut MachineSamples<'_>,
    states: &States,
    recordings: &[Recording],
    log: &mut SampleLog,
) {
    let Some(first) = recordings.first().filter(|_| states.vms.iter().all(Vec::is_empty)) else {
        return;
    };
    each_of(samples, 0, first, |unit, sample, place| {
        if unit.nanoseconds && sample.thread != 0 {
            log.push(Logged {
                whose: Whose::Alone,
                kind: SampleKind::Host,
                place,
                at_ns: sample.at.time_ns,
                weight_ns: sample.weight,
            });
        }
    });
}

fn machine(
    samples: &mut MachineSamples<'_>,
    recording: usize,
    of: &Recording,
) -> Option<MachineWeights> {
    let mut threads: BTreeMap<u32, ThreadWeights> = BTreeMap::new();
    let mut idle_samples = 0;
    let (unit, is_guest) = each_of(samples, recording, of, |_, sample, place| {
        if sample.thread == 0 {
            idle_samples += 1;
        } else {
            threads.entry(sample.thread).or_default().add(place, sample.weight);
        }
    })?;
    Some(MachineWeights { recording, is_guest, unit, idle_samples, threads })
}

/// Calls `each` with the samples of a machine that are in its range; what they are, and whether it is a guest.
fn each_of(
    samples: &mut MachineSamples<'_>,
    recording: usize,
    of: &Recording,
    mut each: impl FnMut(&WeightUnit, &WeighedSample, Place),
) -> Option<(WeightUnit, bool)> {
    let number = u16::try_from(recording).ok()?;
    let own = samples.of(number)?;
    let (unit, all) = own.weighed()?;
    let is_in = |time_ns| of.range().is_none_or(|range| range.contains(time_ns));
    for sample in all.iter().filter(|sample| is_in(sample.at.time_ns)) {
        let place = match sample.thread {
            0 => Place::Host(None),
            _ => samples.place(number, sample.at).unwrap_or(Place::Host(None)),
        };
        each(&unit, sample, place);
    }
    Some((unit, own.is_of_guest()))
}

impl MachineWeights {
    pub(super) fn recording(&self) -> usize {
        self.recording
    }

    /// The machine, its places named by `code`.
    pub(super) fn named(
        self,
        of: &Recording,
        processes: &HashMap<u32, u32>,
        code: &Code<'_>,
    ) -> SampledMachine {
        let Self { recording, is_guest, unit, idle_samples, threads } = self;
        let thread = |(thread, weights): (u32, ThreadWeights)| SampledThread {
            thread,
            comm: comm(of, processes, thread).map(str::to_owned),
            stacks: stacks(&weights, code),
        };
        let mut threads: Vec<SampledThread> = threads.into_iter().map(thread).collect();
        threads.sort_by_key(|one| std::cmp::Reverse(one.time_ns()));
        SampledMachine { recording, is_guest, unit, idle_samples, threads }
    }
}

/// A thread's name: that of its process's first thread where it has none of its own, as threads begin with the name of
/// whoever makes them.
fn comm<'r>(of: &'r Recording, processes: &HashMap<u32, u32>, thread: u32) -> Option<&'r str> {
    let of_process = || processes.get(&thread).and_then(|process| of.comm(*process));
    of.comm(thread).or_else(of_process)
}

/// The stack at a place of such a machine.
pub(super) fn stack(place: Place, code: &Code<'_>) -> Vec<CodeFrame> {
    match place {
        // Of guests that run on it the kernel says no more.
        Place::Guest(_) => vec![CodeFrame::of_a_guest()],
        place => code.of_host(place),
    }
}

/// The stacks of a thread, those first that took longest.
fn stacks(of: &ThreadWeights, code: &Code<'_>) -> Vec<(Vec<CodeFrame>, SampledTime)> {
    let mut by_stack: BTreeMap<Vec<CodeFrame>, (u64, u64)> = BTreeMap::new();
    for (&place, &(samples, weight)) in &of.seen {
        let stack = stack(place, code);
        let sum = by_stack.entry(stack).or_default();
        sum.0 = sum.0.saturating_add(samples);
        sum.1 = sum.1.saturating_add(weight);
    }
    let effective = weights::effective(of.weight as f64, of.squares);
    let time = |samples, weight| weights::time(of.weight, weight, samples, effective);
    let mut stacks: Vec<(Vec<CodeFrame>, SampledTime)> = by_stack
        .into_iter()
        .map(|(stack, (samples, weight))| (stack, time(samples, weight)))
        .collect();
    stacks.sort_by_key(|(_, time)| std::cmp::Reverse(time.ns));
    stacks
}
