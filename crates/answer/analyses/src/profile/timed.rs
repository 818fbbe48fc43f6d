//! Samples with their code, one by one, and time that has none: for who asks how the time in functions changes.

use std::collections::HashMap;

use rustc_hash::FxHashMap;
use sources::{Recording, Samples};

use super::code::{Code, CodeAt};
use super::found::Found;
use super::sample_log::{Logged, SampleLog, Whose};
use super::samples::Place;
use super::state_log::{StateBlock, StateKey};
use super::sums::{SampleKind, Stratum, StratumSum};
use super::{CodeFrame, GuestAlignment};
use crate::states::{Part, Roles, States, VcpuState};

/// A sample of the first recording's vCPUs and threads, or time that no sample says more of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedSample<'c> {
    /// The VM, by its place in [`States::vms`] of the first recording.
    pub(crate) vm: Option<usize>,
    /// What the vCPU did, or what the thread is.
    pub(crate) part: &'static str,
    /// 1: the guest, or a thread of the host's; 2: a guest inside it.
    pub(crate) level: u8,
    /// The exit that was handled, by the kernel's name.
    pub(crate) reason: Option<&'c str>,
    /// From the root on; empty: nothing says where it was.
    pub(crate) stack: &'c [CodeFrame],
    /// The code is the host's.
    pub(crate) host_code: bool,
    /// When it was taken; of time without samples, within some milliseconds of it.
    pub(crate) at_ns: u64,
    /// What it stands for.
    pub(crate) time_ns: u64,
    /// It is no sample: events say how long it was.
    pub(crate) is_known: bool,
    /// It counts for the function that ran.
    pub(crate) is_own: bool,
    /// It counts for the functions of the stack.
    pub(crate) is_stack: bool,
}

/// What the code of a sample depends on: VM, state, level, exit and thread of the guest, and place.
type CodeKey = (Option<usize>, VcpuState, u8, Option<(u8, u64)>, Option<u32>, Place);

/// Whose a sample is, among those of the first recording.
#[derive(Clone, Copy, Debug)]
struct Owner<'t> {
    vm: Option<usize>,
    /// Of a vCPU; else of a thread, which is that part.
    stratum: Option<Stratum>,
    thread_is: &'static str,
    sum: &'t StratumSum,
}

/// The code of a sample, and the exit's name.
type NamedCode = (CodeAt, Option<String>);

/// Calls `each` with the samples of a run, whose first recording is the host's, and then with the time of its vCPUs that
/// has none. Where a guest sampled itself, its samples count for stacks and the host's for what ran.
pub(crate) fn each_sample(
    recordings: &[Recording],
    guests: &[GuestAlignment],
    samples: &[Option<Samples>],
    tick: &(dyn Fn(u64) + Sync),
    each: &mut dyn FnMut(&TimedSample<'_>),
) -> States {
    let log = Some(SampleLog::default());
    let mut found = Found::gather(recordings, guests, samples, log, tick);
    let (kept, stride) = found.log.take().unwrap_or_default().finish();
    let times = found.state_log.take().unwrap_or_default().finish();
    let mut reasons = found.reasons.drain(..).next();
    let mut reason = |exit: Option<(u8, u64)>| {
        exit.and_then(|(isa, code)| Some(reasons.as_mut()?.name(isa, code)))
    };
    let owners = Owners::new(&found);
    let mut known: FxHashMap<CodeKey, NamedCode> = FxHashMap::default();
    for logged in &kept {
        let Some(owner) = owners.of(logged.whose) else { continue };
        let (is_own, is_stack) = owner.counts(logged.kind);
        if !is_own && !is_stack {
            continue;
        }
        let (at, reason) = known.entry(owner.code_key(logged.place)).or_insert_with(|| {
            let exit = owner.stratum.and_then(|of| of.exit);
            (owner.code_at(owners.code(owner.vm), logged.place), reason(exit))
        });
        each(&TimedSample {
            vm: owner.vm,
            part: if owner.stratum.is_some() { at.state.name() } else { owner.thread_is },
            level: owner.stratum.map_or(1, |of| of.level),
            reason: reason.as_deref(),
            stack: &at.stack,
            host_code: at.host_code,
            at_ns: logged.at_ns,
            time_ns: time(logged, stride, owner.sum),
            is_known: false,
            is_own,
            is_stack,
        });
    }
    for StateBlock { key, at_ns, time_ns } in owners.without_samples(times) {
        let named = reason(key.exit);
        each(&TimedSample {
            vm: owners.vms.get(&key.vcpu.index).copied(),
            part: owners.settled(key.state).name(),
            level: key.level,
            reason: named.as_deref(),
            stack: &[],
            host_code: false,
            at_ns,
            time_ns,
            is_known: true,
            is_own: true,
            is_stack: true,
        });
    }
    drop(owners);
    found.states
}

/// Who has samples in the first recording.
struct Owners<'f> {
    found: &'f Found<'f>,
    roles: Roles<'f>,
    /// By [`crate::states::VcpuRef::index`], the VM's place.
    vms: FxHashMap<u32, usize>,
}

impl<'f> Owners<'f> {
    fn new(found: &'f Found<'f>) -> Self {
        let of_threads = found.threads.keys().filter(|(recording, _)| *recording == 0);
        let threads = of_threads.map(|(_, thread)| *thread);
        let processes = found.samples_of(0).map(Samples::processes);
        let roles = Roles::new(&found.states, 0, processes.unwrap_or(&HashMap::new()), threads);
        let vms = found.states.vms.first().into_iter().flatten().enumerate();
        let indices = vms.flat_map(|(at, vm)| {
            vm.vcpus.iter().filter_map(move |one| Some((u32::try_from(one.index).ok()?, at)))
        });
        Self { found, roles, vms: indices.collect() }
    }

    /// Whose a sample is; `None`: another recording's, or a thread's that works for no VM.
    fn of(&self, whose: Whose) -> Option<Owner<'f>> {
        match whose {
            Whose::Vcpu(mut stratum) if stratum.vcpu.recording == 0 => {
                let sum = self.found.strata.get(&stratum)?;
                let vm = self.vms.get(&stratum.vcpu.index).copied();
                stratum.state = self.settled(stratum.state);
                Some(Owner { vm, stratum: Some(stratum), thread_is: "", sum })
            }
            Whose::Thread((0, thread)) => {
                let sum = self.found.threads.get(&(0, thread))?;
                let role = self.roles.of(thread);
                let works = matches!(role.part, Part::Vmm | Part::Vhost | Part::Kvm);
                let thread_is = role.part.name();
                works.then_some(Owner { vm: role.vm, stratum: None, thread_is, sum })
            }
            Whose::Vcpu(_) | Whose::Thread(_) => None,
        }
    }

    /// What a state is called where not all events were recorded.
    fn settled(&self, state: VcpuState) -> VcpuState {
        self.found.states.recorded.first().map_or(state, |recorded| state.settled(recorded))
    }

    /// The time of vCPUs in strata that no stack was sampled in; `times` are of all.
    fn without_samples(&self, times: Vec<StateBlock>) -> impl Iterator<Item = StateBlock> {
        let mut sums: FxHashMap<StateKey, (u64, u64)> = FxHashMap::default();
        for (stratum, sum) in &self.found.strata {
            let owner = Owner { vm: None, stratum: Some(*stratum), thread_is: "", sum };
            let (all_ns, without_ns) = sums.entry(StateKey::of(stratum)).or_default();
            *all_ns = all_ns.saturating_add(sum.time_ns);
            if sum.of(owner.kinds().1).count == 0 {
                *without_ns = without_ns.saturating_add(sum.time_ns);
            }
        }
        times.into_iter().filter(|one| one.key.vcpu.recording == 0).filter_map(move |one| {
            let &(all_ns, without_ns) = sums.get(&one.key)?;
            let part = u128::from(one.time_ns) * u128::from(without_ns) / u128::from(all_ns.max(1));
            let time_ns = u64::try_from(part).unwrap_or(u64::MAX);
            (time_ns > 0).then_some(StateBlock { time_ns, ..one })
        })
    }

    fn code(&self, vm: Option<usize>) -> Code<'_> {
        let vms = self.found.states.vms.first();
        self.found.code(0, vm.and_then(|at| vms?.get(at)))
    }
}

impl Owner<'_> {
    /// Whether a sample of a kind counts for what ran, and for its stack.
    fn counts(&self, kind: SampleKind) -> (bool, bool) {
        let (own, stack) = self.kinds();
        (kind == own, kind == stack)
    }

    /// The kind of samples that counts for what ran, and the one that counts for stacks.
    fn kinds(&self) -> (SampleKind, SampleKind) {
        let by_host = self.sum.seen_by_host();
        let has_host = self.sum.of(by_host).count > 0;
        let has_guest = self.stratum.is_some_and(|of| of.level == 1) && self.sum.agent.count > 0;
        let own = if has_host { by_host } else { SampleKind::Agent };
        (own, if has_guest { SampleKind::Agent } else { own })
    }

    fn state(&self) -> VcpuState {
        self.stratum.map_or(VcpuState::ExitKernel, |of| of.state)
    }

    fn code_key(&self, place: Place) -> CodeKey {
        let of = self.stratum;
        let (level, exit, task) = of.map_or((0, None, None), |of| (of.level, of.exit, of.task));
        (self.vm, self.state(), level, exit, task, place)
    }

    fn code_at(&self, code: Code<'_>, place: Place) -> CodeAt {
        match &self.stratum {
            Some(of) => code.at(of, place),
            None => CodeAt { state: self.state(), host_code: true, stack: code.of_host(place) },
        }
    }
}

/// What a sample stands for, so that all of a stratum's kind add up to its time.
fn time(logged: &Logged, stride: u64, sum: &StratumSum) -> u64 {
    let whole_ns = sum.of(logged.kind).weight_ns as f64;
    let share = logged.weight_ns as f64 * stride as f64 / whole_ns.max(1.0);
    (share * sum.time_ns as f64) as u64
}
