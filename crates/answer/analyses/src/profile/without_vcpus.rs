//! Code of machines without recorded vCPUs: a guest's own samples, or a host without KVM events. Only samples show
//! how long code ran: each represents its own period.

use std::collections::{BTreeMap, HashMap};

use sources::{Recording, WeighedSample, WeightUnit};

use super::code::Code;
use super::sample_log::{Logged, SampleLog, Whose};
use super::samples::{MachineSamples, Place, is_kernel};
use super::slices::{SliceGrid, SliceTimes};
use super::sums::SampleKind;
use super::{CodeFrame, Evidence, SampledTime, weights};
use crate::states::{States, VcpuState};

/// A sampled machine without recorded vCPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledMachine {
    pub recording: usize,
    /// Whether it is a guest that sampled itself.
    pub is_guest: bool,
    /// Event of the samples, and unit of their weights.
    pub unit: WeightUnit,
    /// Samples of an idle CPU, which belong to no thread.
    pub idle_samples: u64,
    /// Threads, the longest time first.
    pub threads: Vec<SampledThread>,
}

impl SampledMachine {
    /// State of a guest with this stack, including guest samples on a host; `None` for the host's own code.
    #[must_use]
    pub fn state_of(&self, stack: &[CodeFrame]) -> Option<VcpuState> {
        let leaf = stack.last();
        let in_user = leaf.is_some_and(|leaf| leaf.user_space);
        let state = if in_user { VcpuState::GuestUser } else { VcpuState::GuestKernel };
        let in_guest = self.is_guest || leaf.is_some_and(CodeFrame::is_of_a_guest);
        in_guest.then_some(state)
    }

    /// Whether a stack is the host's own code.
    #[must_use]
    pub fn is_host_code(&self, stack: &[CodeFrame]) -> bool {
        self.state_of(stack).is_none()
    }

    /// The source of this stack.
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

/// A thread of a sampled machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledThread {
    pub thread: u32,
    pub comm: Option<String>,
    /// By stack from the root; an empty stack if none was recorded. Times are sums of periods.
    pub stacks: Vec<(Vec<CodeFrame>, SampledTime)>,
    /// By stack: slice numbers of the profile with the time in them, ascending; empty if not requested.
    pub by_slice: Vec<Vec<(u32, u64)>>,
}

impl SampledThread {
    /// Sum of all periods.
    #[must_use]
    pub fn time_ns(&self) -> u64 {
        self.stacks.iter().fold(0, |sum, (_, time)| sum.saturating_add(time.ns))
    }
}

/// Samples of a machine before their places have names.
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

/// Samples at one place.
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

/// Samples of all machines if no recording has a vCPU; by slices of `grid`, if there is one.
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

/// Doubles the slice width while there are too many times. Until then, a machine can have as many times as
/// samples.
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

/// Logs single samples of the first recording's threads, if no recording has a vCPU and sample weights are times.
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

/// Calls `each` with a machine's samples in its time range; returns their unit, and whether it is a guest.
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

    /// Names the places with `code`, and numbers the slices of `grid`.
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

/// A thread's name; without its own name, that of its process's main thread, because threads inherit the name of
/// their creator.
fn comm<'r>(source: &'r Recording, processes: &HashMap<u32, u32>, thread: u32) -> Option<&'r str> {
    let of_process = || processes.get(&thread).and_then(|process| source.comm(*process));
    source.comm(thread).or_else(of_process)
}

/// The stack at a place of a machine without vCPUs.
pub(super) fn stack(place: Place, code: &Code<'_>) -> Vec<CodeFrame> {
    match place {
        // The host's kernel reports nothing else about its guests.
        Place::Guest(address) => {
            vec![CodeFrame::of_a_guest(address != 0 && !is_kernel(address))]
        }
        place => code.of_host(place),
    }
}

/// Stacks of a thread, the longest time first, each with its times by slices.
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
