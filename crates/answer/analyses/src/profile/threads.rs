//! Code of other host threads that work for VMs: threads of the VMM and of the kernel.

use std::collections::BTreeMap;

use sources::Samples;

use super::code::Code;
use super::seen::SeenBy;
use super::slices::{SliceGrid, SliceTimes};
use super::sums::StratumSum;
use super::{CodeFrame, Evidence, SampledTime};
use crate::states::{Part, Roles, States};

/// A host thread that works for a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileThread {
    /// Name of its VM.
    pub vm: String,
    /// Its role for the VM.
    pub part: Part,
    pub thread: u32,
    pub comm: Option<String>,
    /// CPU time.
    pub time_ns: u64,
    /// By stack from the root; an empty stack if no sample covers the time. The times add up to `time_ns`.
    pub stacks: Vec<(Vec<CodeFrame>, Evidence, SampledTime)>,
}

/// By stack: slice numbers with the time in them.
type StackSlices = Vec<Vec<(u32, u64)>>;

/// Threads of a recording that work for VMs, the longest time first.
pub(super) fn threads(
    states: &States,
    recording: usize,
    samples: &Samples,
    sums: BTreeMap<u32, StratumSum>,
    code: &Code<'_>,
    grid: Option<&SliceGrid>,
) -> Vec<(ProfileThread, StackSlices)> {
    let roles = Roles::new(states, recording, samples.processes(), sums.keys().copied());
    let vms = states.vms.get(recording).map_or(&[][..], Vec::as_slice);
    let names = states.pass.names.get(recording);
    let mut threads: Vec<(ProfileThread, StackSlices)> = Vec::new();
    for (thread, sum) in sums {
        let role = roles.role_of(thread);
        let is_other = matches!(role.part, Part::Vmm | Part::Vhost | Part::Kvm);
        let Some(vm) = role.vm.filter(|_| is_other).and_then(|at| vms.get(at)) else { continue };
        let (stacks, by_slice) = stacks(sum, code, grid);
        let thread = ProfileThread {
            vm: vm.name.clone(),
            part: role.part,
            thread,
            comm: names.and_then(|names| names.get(thread)).map(str::to_owned),
            time_ns: stacks.iter().fold(0, |sum: u64, (.., time)| sum.saturating_add(time.ns)),
            stacks,
        };
        threads.push((thread, by_slice));
    }
    threads.sort_by_key(|(thread, _)| std::cmp::Reverse(thread.time_ns));
    threads
}

/// A stack of a thread with its time.
type Stack = (Vec<CodeFrame>, Evidence, SampledTime);

/// Stacks of a thread, and their times by slices if requested.
fn stacks(sum: StratumSum, code: &Code<'_>, grid: Option<&SliceGrid>) -> (Vec<Stack>, StackSlices) {
    let numbered = |all: Vec<SliceTimes>| {
        grid.map(|grid| all.into_iter().map(|times| times.numbered(grid)).collect())
            .unwrap_or_default()
    };
    if sum.host.seen.is_empty() {
        let unknown = (Vec::new(), Evidence::None, SampledTime::known(sum.time_ns));
        return (vec![unknown], numbered(vec![sum.by_slice]));
    }
    let seen = SeenBy::from_samples(&sum.host, |place| code.of_host(place));
    let evidence =
        |stack: &[CodeFrame]| if stack.is_empty() { Evidence::None } else { Evidence::Host };
    let (mut stacks, mut weights) = (Vec::new(), Vec::new());
    for (stack, time) in seen.shares(sum.time_ns) {
        stacks.push((stack.clone(), evidence(stack), time));
        weights.push(seen.by_slice(stack));
    }
    let times: Vec<u64> = stacks.iter().map(|(.., time): &Stack| time.ns).collect();
    let by_slice = grid.map(|_| sum.by_slice.shared_out(&times, weights)).unwrap_or_default();
    (stacks, numbered(by_slice))
}
