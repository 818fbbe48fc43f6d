//! Samples with their code, one by one: for who asks how the time in functions changes.

use std::collections::HashMap;

use rustc_hash::FxHashMap;
use sources::{Recording, Samples};

use super::code::{Code, CodeAt};
use super::found::Found;
use super::sample_log::{Logged, SampleLog, Whose};
use super::samples::Place;
use super::sums::{SampleKind, Stratum, StratumSum};
use super::{CodeFrame, GuestAlignment};
use crate::states::{Part, Roles, States, VcpuState};

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

/// Whose a sample is, among those of the first recording.
#[derive(Clone, Copy, Debug)]
struct Owner<'t> {
    vm: Option<usize>,
    /// Of a vCPU; else of a thread, which is that part.
    stratum: Option<Stratum>,
    thread_is: &'static str,
    sum: &'t StratumSum,
}

/// Calls `each` with the samples of a run, whose first recording is the host's; where a guest sampled itself, its
/// samples count for stacks and the host's for what ran.
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
    let owners = Owners::new(&found);
    let mut known: FxHashMap<CodeKey, CodeAt> = FxHashMap::default();
    for logged in &kept {
        let Some(owner) = owners.of(logged.whose) else { continue };
        let (is_own, is_stack) = owner.counts(logged.kind);
        if !is_own && !is_stack {
            continue;
        }
        let at = known
            .entry(owner.code_key(logged.place))
            .or_insert_with(|| owner.code_at(owners.code(owner.vm), logged.place));
        if at.stack.is_empty() {
            continue;
        }
        let part = if owner.stratum.is_some() { at.state.name() } else { owner.thread_is };
        let (vm, stack, at_ns) = (owner.vm, &at.stack, logged.at_ns);
        let time_ns = time(logged, stride, owner.sum);
        each(&TimedSample { vm, part, stack, at_ns, time_ns, is_own, is_stack });
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
                if let Some(recorded) = self.found.states.recorded.first() {
                    stratum.state = stratum.state.settled(recorded);
                }
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

    fn code(&self, vm: Option<usize>) -> Code<'_> {
        let vms = self.found.states.vms.first();
        self.found.code(0, vm.and_then(|at| vms?.get(at)))
    }
}

impl Owner<'_> {
    /// Whether a sample of a kind counts for what ran, and for its stack.
    fn counts(&self, kind: SampleKind) -> (bool, bool) {
        let by_host = self.sum.seen_by_host();
        let has_host = self.sum.of(by_host).count > 0;
        let has_guest = self.stratum.is_some_and(|of| of.level == 1) && self.sum.agent.count > 0;
        let own = if has_host { by_host } else { SampleKind::Agent };
        let stack = if has_guest { SampleKind::Agent } else { own };
        (kind == own, kind == stack)
    }

    fn state(&self) -> VcpuState {
        self.stratum.map_or(VcpuState::ExitKernel, |of| of.state)
    }

    fn code_key(&self, place: Place) -> CodeKey {
        let (level, task) = self.stratum.map_or((0, None), |of| (of.level, of.task));
        (self.vm, self.state(), level, task, place)
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
