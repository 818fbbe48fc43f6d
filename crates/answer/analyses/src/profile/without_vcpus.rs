//! The code of machines none of whose vCPUs are recorded: a guest that was sampled by itself, a host without events of
//! KVM. Nothing says how long anything ran but the samples, each of which stands for its own period.

use std::collections::{BTreeMap, HashMap};

use sources::{Recording, WeighedSample, WeightUnit};

use super::code::Code;
use super::sample_log::{Logged, SampleLog, Whose};
use super::samples::{MachineSamples, Place, is_kernel};
use super::slices::{SliceGrid, SliceTimes};
use super::sums::SampleKind;
use super::{CodeFrame, Evidence, SampledTime, weights};
use crate::states::{States, VcpuState};

/// A machine that was sampled, and of which no vCPU is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledMachine {
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
    /// What a guest did whose stack this is, also one that the kernel says ran on a host; of a host's own code
    /// there is no such state.
    #[must_use]
    pub fn state_of(&self, stack: &[CodeFrame]) -> Option<VcpuState> {
        let leaf = stack.last();
        let in_user = leaf.is_some_and(|leaf| leaf.user_space);
        let state = if in_user { VcpuState::GuestUser } else { VcpuState::GuestKernel };
        let in_guest = self.is_guest || leaf.is_some_and(CodeFrame::is_of_a_guest);
        in_guest.then_some(state)
    }

    /// Whether a stack is of the host's own code.
    #[must_use]
    pub fn is_host_code(&self, stack: &[CodeFrame]) -> bool {
        self.state_of(stack).is_none()
    }

    /// What says that this stack ran.
    #[must_use]
    pub fn evidence_of(&self, stack: &[CodeFrame]) -> Evidence {
        if stack.is_empty() {
            Evidence::None
        } else if self.is_guest {
            Evidence::Agent
        } else {
            Evidence::Host
        }
    }
}

/// A thread of such a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledThread {
    pub thread: u32,
    /// Its name.
    pub comm: Option<String>,
    /// By stack, from the root on; empty: it was not recorded. Times are sums of periods.
    pub stacks: Vec<(Vec<CodeFrame>, SampledTime)>,
    /// By stack: numbers of slices of the profile and the time in them, ascending; empty where those were not asked for.
    pub by_slice: Vec<Vec<(u32, u64)>>,
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
    seen: BTreeMap<Place, PlaceWeight>,
    weight: u64,
    squares: f64,
}

/// Samples that saw some code.
#[derive(Debug, Default)]
struct PlaceWeight {
    samples: u64,
    weight: u64,
    by_slice: SliceTimes,
}

impl PlaceWeight {
    fn merge(&mut self, other: &Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.weight = self.weight.saturating_add(other.weight);
        self.by_slice.extend(&other.by_slice);
    }
}

impl ThreadWeights {
    fn add(&mut self, place: Place, sample: &WeighedSample, grid: Option<&mut SliceGrid>) {
        let (weight, seen) = (sample.weight, self.seen.entry(place).or_default());
        seen.samples = seen.samples.saturating_add(1);
        seen.weight = seen.weight.saturating_add(weight);
        if let Some(grid) = grid {
            seen.by_slice.add_at(grid, sample.at.time_ns, weight);
        }
        self.weight = self.weight.saturating_add(weight);
        self.squares += (weight as f64).powi(2);
    }
}

/// The samples of all machines, where no recording has a vCPU; by slices of `grid`, if there is one.
pub(super) fn gather(
    samples: &mut MachineSamples<'_>,
    states: &States,
    recordings: &[Recording],
    mut grid: Option<&mut SliceGrid>,
) -> Vec<MachineWeights> {
    if !states.vms.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    let mut machines: Vec<MachineWeights> = Vec::new();
    for (at, recording) in recordings.iter().enumerate() {
        machines.extend(machine(samples, at, recording, grid.as_deref_mut()));
        if let Some(grid) = grid.as_deref_mut() {
            coarsen(&mut machines, grid);
        }
    }
    machines
}

/// Has wider slices where there are too many. Of a machine there may be as many times as samples until then.
fn coarsen(machines: &mut [MachineWeights], grid: &mut SliceGrid) {
    while grid.is_too_fine() {
        grid.widen();
        let threads = machines.iter_mut().flat_map(|machine| machine.threads.values_mut());
        for seen in threads.flat_map(|thread| thread.seen.values_mut()) {
            seen.by_slice.widen();
            grid.count(&seen.by_slice);
        }
    }
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
    source: &Recording,
    mut grid: Option<&mut SliceGrid>,
) -> Option<MachineWeights> {
    let mut threads: BTreeMap<u32, ThreadWeights> = BTreeMap::new();
    let mut idle_samples = 0;
    let (unit, is_guest) = each_of(samples, recording, source, |_, sample, place| {
        if sample.thread == 0 {
            idle_samples += 1;
        } else {
            if let Some(grid) = grid.as_deref_mut() {
                grid.reach(sample.at.time_ns, sample.at.time_ns);
            }
            threads.entry(sample.thread).or_default().add(place, sample, grid.as_deref_mut());
        }
    })?;
    Some(MachineWeights { recording, is_guest, unit, idle_samples, threads })
}

/// Calls `each` with the samples of a machine that are in its range; what they are, and whether it is a guest.
fn each_of(
    samples: &mut MachineSamples<'_>,
    recording: usize,
    source: &Recording,
    mut each: impl FnMut(&WeightUnit, &WeighedSample, Place),
) -> Option<(WeightUnit, bool)> {
    let number = u16::try_from(recording).ok()?;
    let own_samples = samples.of_recording(number)?;
    let (unit, all) = own_samples.weighed()?;
    let is_in = |time_ns| source.range().is_none_or(|range| range.contains(time_ns));
    for sample in all.iter().filter(|sample| is_in(sample.at.time_ns)) {
        let place = match sample.thread {
            0 => Place::Host(None),
            _ => samples.place(number, sample.at).unwrap_or(Place::Host(None)),
        };
        each(&unit, sample, place);
    }
    Some((unit, own_samples.is_of_guest()))
}

impl MachineWeights {
    pub(super) fn recording(&self) -> usize {
        self.recording
    }

    /// The machine, its places named by `code`, and its times by slices of `grid`.
    pub(super) fn named(
        self,
        source: &Recording,
        processes: &HashMap<u32, u32>,
        code: &Code<'_>,
        grid: Option<&SliceGrid>,
    ) -> SampledMachine {
        let Self { recording, is_guest, unit, idle_samples, threads } = self;
        let thread = |(thread, weights): (u32, ThreadWeights)| {
            let (stacks, by_slice) = stacks(&weights, code).into_iter().unzip();
            let by_slice: Vec<SliceTimes> = by_slice;
            let numbered = |grid| by_slice.into_iter().map(|times| times.numbered(grid)).collect();
            SampledThread {
                thread,
                comm: comm(source, processes, thread).map(str::to_owned),
                stacks,
                by_slice: grid.map(numbered).unwrap_or_default(),
            }
        };
        let mut threads: Vec<SampledThread> = threads.into_iter().map(thread).collect();
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.time_ns()));
        SampledMachine { recording, is_guest, unit, idle_samples, threads }
    }
}

/// A thread's name: that of its process's first thread where it has none of its own, as threads begin with the name of
/// whoever makes them.
fn comm<'r>(source: &'r Recording, processes: &HashMap<u32, u32>, thread: u32) -> Option<&'r str> {
    let of_process = || processes.get(&thread).and_then(|process| source.comm(*process));
    source.comm(thread).or_else(of_process)
}

/// The stack at a place of such a machine.
pub(super) fn stack(place: Place, code: &Code<'_>) -> Vec<CodeFrame> {
    match place {
        // Of guests that run on it the kernel says no more.
        Place::Guest(address) => {
            vec![CodeFrame::of_a_guest(address != 0 && !is_kernel(address))]
        }
        place => code.of_host(place),
    }
}

/// The stacks of a thread, those first that took longest; each with its times by slices.
fn stacks(
    thread_weights: &ThreadWeights,
    code: &Code<'_>,
) -> Vec<((Vec<CodeFrame>, SampledTime), SliceTimes)> {
    let mut by_stack: BTreeMap<Vec<CodeFrame>, PlaceWeight> = BTreeMap::new();
    for (&place, seen) in &thread_weights.seen {
        by_stack.entry(stack(place, code)).or_default().merge(seen);
    }
    let effective = weights::effective(thread_weights.weight as f64, thread_weights.squares);
    let time = |of_stack: &PlaceWeight| {
        weights::time(thread_weights.weight, of_stack.weight, of_stack.samples, effective)
    };
    let mut stacks: Vec<((Vec<CodeFrame>, SampledTime), SliceTimes)> = by_stack
        .into_iter()
        .map(|(stack, of_stack)| ((stack, time(&of_stack)), of_stack.by_slice))
        .collect();
    stacks.sort_by_key(|((_, time), _)| std::cmp::Reverse(time.ns));
    stacks
}
