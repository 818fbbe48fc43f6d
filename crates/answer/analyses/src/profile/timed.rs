//! Single samples with their code, and time without samples, to compare functions over time.

use std::collections::HashMap;

use rustc_hash::FxHashMap;
use sources::Samples;

use super::code::{Code, CodeAt};
use super::found::ProfileParts;
use super::sample_log::{Logged, Whose};
use super::samples::Place;
use super::sums::{SampleKind, Stratum, StratumSum};
use super::{CodeFrame, without_vcpus};
use crate::states::{Part, Roles, States, VcpuState};
use crate::view::View;

/// A sample of the first recording's vCPUs and threads, or time without samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedSample<'c> {
    /// The VM, as index in [`States::vms`] of the first recording.
    pub(crate) vm: Option<usize>,
    /// State of the vCPU, or role of the thread.
    pub(crate) part: &'static str,
    /// 1: the guest, or a host thread; 2: a nested guest.
    pub(crate) level: u8,
    /// The exit's reason, by the kernel's name.
    pub(crate) reason: Option<&'c str>,
    /// Frames from the root; empty if the code is unknown.
    pub(crate) stack: &'c [CodeFrame],
    /// Whether the code belongs to the host.
    pub(crate) host_code: bool,
    /// Time of the sample; for time without samples, the middle of its slice.
    pub(crate) at_ns: u64,
    /// The time that it represents.
    pub(crate) time_ns: u64,
    /// No sample: the time is known from events.
    pub(crate) is_known: bool,
    /// Whether it counts for the innermost function.
    pub(crate) is_own: bool,
    /// Whether it counts for all functions of the stack.
    pub(crate) is_stack: bool,
}

/// Everything that determines a sample's code: VM, state, level, exit, guest thread, and place.
type CodeKey = (Option<usize>, VcpuState, u8, Option<(u8, u64)>, Option<u32>, Place);

/// Owner of a sample in the first recording.
#[derive(Clone, Copy, Debug)]
struct Owner<'t> {
    vm: Option<usize>,
    /// Stratum of a vCPU; `None` for other threads, whose role is `thread_is`.
    stratum: Option<Stratum>,
    thread_is: &'static str,
    sum: &'t StratumSum,
}

/// Code of a sample, and the exit's reason.
type NamedCode = (CodeAt, Option<String>);

/// Calls `each` with the samples of a run, whose first recording is the host's, and then with the vCPUs' time
/// without samples. If a guest sampled itself, its own samples count for stacks, and the host's for innermost
/// functions.
pub(crate) fn each_sample(
    view: View<'_>,
    samples: &[Option<Samples>],
    progress: &(dyn Fn(u64) + Sync),
    each: &mut dyn FnMut(&TimedSample<'_>),
) -> States {
    let mut found = ProfileParts::gather_each(view, samples, progress);
    let (log, stride) = found.log.take().unwrap_or_default().finish();
    let mut reasons = found.reasons.drain(..).next();
    let mut reason = |exit: Option<(u8, u64)>| {
        exit.and_then(|(isa, code)| Some(reasons.as_mut()?.name(isa, code)))
    };
    each_alone(&found, &log, stride, each);
    let owners = Owners::new(&found);
    let mut known: FxHashMap<CodeKey, NamedCode> = FxHashMap::default();
    for logged in &log {
        let Some(owner) = owners.find(logged.whose) else { continue };
        let (is_own, is_stack) = owner.counts(logged.kind);
        if !is_own && !is_stack {
            continue;
        }
        let (at, reason) = known.entry(owner.code_key(logged.place)).or_insert_with(|| {
            let exit = owner.stratum.and_then(|stratum| stratum.exit);
            (owner.code_at(owners.code(owner.vm), logged.place), reason(exit))
        });
        each(&TimedSample {
            vm: owner.vm,
            part: if owner.stratum.is_some() { at.state.name() } else { owner.thread_is },
            level: owner.stratum.map_or(1, |stratum| stratum.level),
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
    for (stratum, times) in owners.without_samples() {
        let named = reason(stratum.exit);
        for (at_ns, time_ns) in times {
            each(&TimedSample {
                vm: owners.vms.get(&stratum.vcpu.index).copied(),
                part: owners.settled(stratum.state).name(),
                level: stratum.level,
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
    }
    drop(owners);
    found.states
}

/// Samples of a machine without recorded vCPUs.
fn each_alone(
    found: &ProfileParts<'_>,
    log: &[Logged],
    stride: u64,
    each: &mut dyn FnMut(&TimedSample<'_>),
) {
    let code = found.code(0, None);
    let mut known: FxHashMap<Place, Vec<CodeFrame>> = FxHashMap::default();
    let is_guest = found.samples_of(0).is_some_and(Samples::is_of_guest);
    for logged in log.iter().filter(|logged| logged.whose == Whose::Alone) {
        let at = logged.place;
        each(&TimedSample {
            vm: None,
            part: if is_guest { "guest" } else { "host" },
            level: 1,
            reason: None,
            stack: known.entry(at).or_insert_with(|| without_vcpus::stack(at, &code)),
            host_code: true,
            at_ns: logged.at_ns,
            time_ns: logged.weight_ns.saturating_mul(stride),
            is_known: false,
            is_own: true,
            is_stack: true,
        });
    }
}

/// Owners of samples in the first recording.
struct Owners<'f> {
    found: &'f ProfileParts<'f>,
    roles: Roles<'f>,
    /// Indexes of VMs by [`crate::states::VcpuRef::index`].
    vms: FxHashMap<u32, usize>,
}

impl<'f> Owners<'f> {
    fn new(found: &'f ProfileParts<'f>) -> Self {
        let of_threads = found.threads.keys().filter(|(recording, _)| *recording == 0);
        let threads = of_threads.map(|(_, thread)| *thread);
        let processes = found.samples_of(0).map(Samples::processes);
        let roles = Roles::new(&found.states, 0, processes.unwrap_or(&HashMap::new()), threads);
        let vms = found.states.vms.first().into_iter().flatten().enumerate();
        let indices = vms.flat_map(|(at, vm)| {
            vm.vcpus.iter().filter_map(move |vcpu| Some((u32::try_from(vcpu.index).ok()?, at)))
        });
        Self { found, roles, vms: indices.collect() }
    }

    /// The owner of a sample; `None` if it belongs to another recording, or to a thread that works for no VM.
    fn find(&self, whose: Whose) -> Option<Owner<'f>> {
        match whose {
            Whose::Vcpu(mut stratum) if stratum.vcpu.recording == 0 => {
                let sum = self.found.strata.get(&stratum)?;
                let vm = self.vms.get(&stratum.vcpu.index).copied();
                stratum.state = self.settled(stratum.state);
                Some(Owner { vm, stratum: Some(stratum), thread_is: "", sum })
            }
            Whose::Thread((0, thread)) => {
                let sum = self.found.threads.get(&(0, thread))?;
                let role = self.roles.role_of(thread);
                let works = matches!(role.part, Part::Vmm | Part::Vhost | Part::Kvm);
                let thread_is = role.part.name();
                works.then_some(Owner { vm: role.vm, stratum: None, thread_is, sum })
            }
            Whose::Vcpu(_) | Whose::Thread(_) | Whose::Alone => None,
        }
    }

    /// The final state, depending on the recorded events.
    fn settled(&self, state: VcpuState) -> VcpuState {
        self.found.states.recorded.first().map_or(state, |recorded| state.settled(recorded))
    }

    /// Strata without samples, with their times by slice: the middle of the slice, and the time in it.
    fn without_samples(&self) -> Vec<(Stratum, Vec<(u64, u64)>)> {
        let Some(grid) = &self.found.grid else { return Vec::new() };
        let (from_ns, slice_ns, _) = grid.extent();
        let middle = |slice: u32| {
            let before_ns = u64::from(slice).saturating_mul(slice_ns);
            from_ns.saturating_add(before_ns).saturating_add(slice_ns / 2)
        };
        let times = |(stratum, sum): (&Stratum, &StratumSum)| {
            let owner = Owner { vm: None, stratum: Some(*stratum), thread_is: "", sum };
            let is_one = stratum.vcpu.recording == 0 && sum.samples_of(owner.kinds().1).count == 0;
            let slices = is_one.then(|| sum.by_slice.clone().numbered(grid))?;
            Some((*stratum, slices.into_iter().map(|(slice, ns)| (middle(slice), ns)).collect()))
        };
        let mut all: Vec<(Stratum, Vec<_>)> = self.found.strata.iter().filter_map(times).collect();
        all.sort_by_key(|(stratum, _)| *stratum);
        all
    }

    fn code(&self, vm: Option<usize>) -> Code<'_> {
        let vms = self.found.states.vms.first();
        self.found.code(0, vm.and_then(|at| vms?.get(at)))
    }
}

impl Owner<'_> {
    /// Whether a sample of this kind counts for the innermost function, and for its stack.
    fn counts(&self, kind: SampleKind) -> (bool, bool) {
        let (own_kind, stack) = self.kinds();
        (kind == own_kind, kind == stack)
    }

    /// The kinds of samples that count for innermost functions, and for stacks.
    fn kinds(&self) -> (SampleKind, SampleKind) {
        let by_host = self.sum.seen_by_host();
        let has_host = self.sum.samples_of(by_host).count > 0;
        let has_guest =
            self.stratum.is_some_and(|stratum| stratum.level == 1) && self.sum.agent.count > 0;
        let own_kind = if has_host { by_host } else { SampleKind::Agent };
        (own_kind, if has_guest { SampleKind::Agent } else { own_kind })
    }

    fn state(&self) -> VcpuState {
        self.stratum.map_or(VcpuState::ExitKernel, |stratum| stratum.state)
    }

    fn code_key(&self, place: Place) -> CodeKey {
        let stratum = self.stratum;
        let (level, exit, task) =
            stratum.map_or((0, None, None), |stratum| (stratum.level, stratum.exit, stratum.task));
        (self.vm, self.state(), level, exit, task, place)
    }

    fn code_at(&self, code: Code<'_>, place: Place) -> CodeAt {
        match &self.stratum {
            Some(stratum) => code.at(stratum, place),
            None => CodeAt { state: self.state(), host_code: true, stack: code.of_host(place) },
        }
    }
}

/// The time that a sample represents; samples of one kind add up to the stratum's time.
fn time(logged: &Logged, stride: u64, sum: &StratumSum) -> u64 {
    let whole_ns = sum.samples_of(logged.kind).weight_ns as f64;
    let share = logged.weight_ns as f64 * stride as f64 / whole_ns.max(1.0);
    (share * sum.time_ns as f64) as u64
}
