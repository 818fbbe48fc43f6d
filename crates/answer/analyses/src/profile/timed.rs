//! Samples with their code, one by one: for who asks how the time in functions changes.

use std::cell::RefCell;

use eventfmt::Kallsyms;
use rustc_hash::FxHashMap;
use sources::{Recording, Samples};
use symbols::{Machine, Names, Processes};

use super::code::{Code, CodeAt};
use super::sample_log::{Logged, SampleKind, SampleLog, Whose};
use super::samples::{MachineSamples, Place};
use super::sums::{ProfileSums, Stratum, StratumSamples, StratumSum};
use super::{CodeFrame, GuestAlignment};
use crate::ReasonNames;
use crate::states::{Part, Roles, States, VcpuState, states_with_pc};

/// A sample of the first recording's vCPUs and threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedSample<'c> {
    /// The VM, by its place in [`States::vms`] of the first recording.
    pub(crate) vm: Option<usize>,
    /// What the vCPU did, or what the thread is.
    pub(crate) part: &'static str,
    /// From the root on; not empty.
    pub(crate) stack: &'c [CodeFrame],
    /// When it was taken.
    pub(crate) at_ns: u64,
    /// What it stands for.
    pub(crate) time_ns: u64,
    /// It counts for the function that ran.
    pub(crate) is_own: bool,
    /// It counts for the functions of the stack.
    pub(crate) is_stack: bool,
}

/// What the code of a sample depends on: VM, state, level and thread of the guest, and place.
type CodeKey = (Option<usize>, VcpuState, u8, Option<u32>, Place);

/// Calls `each` with the samples of a run, whose first recording is the host's; where a guest sampled itself, its
/// samples count for stacks and the host's for what ran.
pub(crate) fn each_sample(
    recordings: &[Recording],
    guests: &[GuestAlignment],
    samples: &[Option<Samples>],
    tick: &(dyn Fn(u64) + Sync),
    each: &mut dyn FnMut(&TimedSample<'_>),
) -> States {
    let reasons = recordings.iter().map(ReasonNames::new).collect();
    let mut sums = ProfileSums::new(reasons, MachineSamples::new(recordings, guests, samples));
    sums.log = Some(SampleLog::default());
    let states = states_with_pc(recordings, guests, &mut sums, tick);
    let ProfileSums { strata, threads, samples: seen, log, .. } = sums;
    let (kept, stride) = log.unwrap_or_default().finish();
    let (machines, stacks) = seen.finish();
    let names = RefCell::new(Names::of_files_here());
    let vms = states.vms.first().map_or(&[][..], Vec::as_slice);
    let guest_of = |vm: &str| guests.iter().find(|one| one.host == 0 && one.vm == vm);
    let of_guests: Vec<Option<usize>> =
        vms.iter().map(|vm| guest_of(&vm.name).map(|one| one.guest)).collect();
    let kallsyms: Vec<Option<&Kallsyms>> =
        of_guests.iter().map(|at| Some(recordings.get((*at)?)?.kallsyms())).collect();
    let unsampled: Vec<Option<Machine<'_>>> = kallsyms
        .iter()
        .map(|kernel| Some(Machine::elsewhere((*kernel)?, Processes::default())))
        .collect();
    let machine = |at: usize| machines.get(at).and_then(Option::as_ref);
    let code = |vm: usize| {
        let guest = of_guests.get(vm).copied().flatten();
        let sampled = guest.and_then(|at| samples.get(at)?.as_ref());
        Code {
            guest: guest.and_then(machine).or(unsampled.get(vm).and_then(Option::as_ref)),
            host: machine(0),
            processes: sampled.map(Samples::processes),
            names: &names,
            stacks: &stacks,
        }
    };
    let processes = samples.first().and_then(Option::as_ref).map(Samples::processes);
    let none = std::collections::HashMap::new();
    let of_threads = threads.keys().filter(|(recording, _)| *recording == 0);
    let roles =
        Roles::new(&states, 0, processes.unwrap_or(&none), of_threads.map(|(_, thread)| *thread));
    let recorded = states.recorded.first();
    let mut known: FxHashMap<CodeKey, CodeAt> = FxHashMap::default();
    for logged in &kept {
        let (vm, of, sum) = match logged.whose {
            Whose::Vcpu(mut stratum) if stratum.vcpu.recording == 0 => {
                let Some(sum) = strata.get(&stratum) else { continue };
                let is_it = |index: usize| u32::try_from(index) == Ok(stratum.vcpu.index);
                let vm = vms.iter().position(|vm| vm.vcpus.iter().any(|one| is_it(one.index)));
                stratum.state =
                    recorded.map_or(stratum.state, |known| stratum.state.settled(known));
                (vm, Some(stratum), sum)
            }
            Whose::Thread(whose) if whose.0 == 0 => {
                let Some(sum) = threads.get(&whose) else { continue };
                (roles.of(whose.1).vm, None, sum)
            }
            _ => continue,
        };
        let thread_part = match logged.whose {
            Whose::Thread((_, thread)) => match roles.of(thread).part {
                part @ (Part::Vmm | Part::Vhost | Part::Kvm) => part.name(),
                _ => continue,
            },
            Whose::Vcpu(_) => "",
        };
        let (is_own, is_stack) = counts(of.as_ref(), sum, logged.kind);
        if !is_own && !is_stack {
            continue;
        }
        let state = of.map_or(VcpuState::ExitKernel, |of| of.state);
        let key = (vm, state, of.map_or(0, |of| of.level), of.and_then(|of| of.task), logged.place);
        let at = known.entry(key).or_insert_with(|| {
            let code = code(vm.unwrap_or(usize::MAX));
            match &of {
                Some(of) => code.at(of, logged.place),
                None => CodeAt { state, host_code: true, stack: code.of_host(logged.place) },
            }
        });
        if at.stack.is_empty() {
            continue;
        }
        let part = if of.is_some() { at.state.name() } else { thread_part };
        let time_ns = time(logged, stride, sum);
        let stack = &at.stack;
        each(&TimedSample { vm, part, stack, at_ns: logged.at_ns, time_ns, is_own, is_stack });
    }
    drop(known);
    states
}

/// Whether a sample counts for what ran, and for its stack.
fn counts(of: Option<&Stratum>, sum: &StratumSum, kind: SampleKind) -> (bool, bool) {
    let chosen = match sum.host.count.saturating_mul(2) >= sum.exits.count {
        true => SampleKind::Host,
        false => SampleKind::Exits,
    };
    let has_agent = of.is_some_and(|of| of.level == 1) && sum.agent.count > 0;
    let has_chosen = sum.host.count > 0 || sum.exits.count > 0;
    let own = if has_chosen { chosen } else { SampleKind::Agent };
    let stack = if has_agent { SampleKind::Agent } else { own };
    (kind == own, kind == stack)
}

/// What a sample stands for, so that all of a stratum's kind add up to its time.
fn time(logged: &Logged, stride: u64, sum: &StratumSum) -> u64 {
    let of: &StratumSamples = match logged.kind {
        SampleKind::Exits => &sum.exits,
        SampleKind::Host => &sum.host,
        SampleKind::Agent => &sum.agent,
    };
    let share = logged.weight_ns as f64 * stride as f64 / (of.weight_ns as f64).max(1.0);
    (share * sum.time_ns as f64) as u64
}
