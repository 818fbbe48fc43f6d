//! The code that other threads of a sampled host ran for its VMs: those of the VMM, and the kernel's own.

use std::collections::BTreeMap;

use sources::Samples;

use super::code::Code;
use super::seen::SeenBy;
use super::sums::StratumSum;
use super::{CodeFrame, Evidence, SampledTime};
use crate::states::{Part, Roles, States};

/// A thread of a host that works for a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileThread {
    /// Its VM's name.
    pub vm: String,
    /// What it does for it.
    pub part: Part,
    /// The thread.
    pub thread: u32,
    /// Its name.
    pub comm: Option<String>,
    /// Time on CPUs.
    pub time_ns: u64,
    /// By stack, from the root on; empty: no sample says. The times add up to `time_ns`.
    pub stacks: Vec<(Vec<CodeFrame>, Evidence, SampledTime)>,
}

/// The threads of a recording that work for VMs, those first that took longest.
pub(super) fn threads(
    states: &States,
    recording: usize,
    samples: &Samples,
    sums: BTreeMap<u32, StratumSum>,
    code: &Code<'_>,
) -> Vec<ProfileThread> {
    let roles = Roles::new(states, recording, samples.processes(), sums.keys().copied());
    let vms = states.vms.get(recording).map_or(&[][..], Vec::as_slice);
    let names = states.pass.names.get(recording);
    let mut threads: Vec<ProfileThread> = Vec::new();
    for (thread, sum) in sums {
        let role = roles.of(thread);
        let is_other = matches!(role.part, Part::Vmm | Part::Vhost | Part::Kvm);
        let Some(vm) = role.vm.filter(|_| is_other).and_then(|at| vms.get(at)) else { continue };
        threads.push(ProfileThread {
            vm: vm.name.clone(),
            part: role.part,
            thread,
            comm: names.and_then(|names| names.of(thread)).map(str::to_owned),
            time_ns: sum.time_ns,
            stacks: stacks(&sum, code),
        });
    }
    threads.sort_by_key(|one| std::cmp::Reverse(one.time_ns));
    threads
}

fn stacks(sum: &StratumSum, code: &Code<'_>) -> Vec<(Vec<CodeFrame>, Evidence, SampledTime)> {
    if sum.host.seen.is_empty() {
        return vec![(Vec::new(), Evidence::None, SampledTime::known(sum.time_ns))];
    }
    let seen = SeenBy::of(&sum.host, |place| code.of_host(place));
    let evidence = |stack: &[CodeFrame]| match stack.is_empty() {
        true => Evidence::None,
        false => Evidence::Host,
    };
    let shares = seen.shares(sum.time_ns);
    shares.map(|(stack, time)| (stack.clone(), evidence(&stack), time)).collect()
}
