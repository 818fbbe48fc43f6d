//! CPU usage: vCPUs by state, guest threads by the CPU time that they really got, host threads by their role for
//! VMs. Idle time is separate.

mod spread;
mod takers;
mod times;

use std::collections::{BTreeMap, HashMap};

use rustc_hash::FxHashMap;
use sources::Recording;
use timeline::{Losses, Vm};

use crate::align::GuestAlignment;
use crate::extent::{bounds_ns, span_ns};
use crate::recorded::RecordedParts;
use crate::states::{
    GuestCpu, GuestEventKinds, GuestFit, OccupantSpan, Part, Roles, StateSink, StateSpan, States,
    VcpuRef, VcpuState,
};
use crate::view::View;
use crate::vms::VmsByVcpu;

pub use spread::Spread;
pub use takers::TakenCpu;
pub use times::StateTimes;

/// Time of one vCPU by state.
#[derive(Clone, Debug, Default)]
pub struct VcpuUse {
    /// Index of the host's recording.
    pub recording: usize,
    /// Index of the VM among those of the recording.
    pub vm: usize,
    pub vcpu: u32,
    /// Its thread on the host.
    pub thread: u32,
    /// Time by state, from its first event to its last.
    pub times: StateTimes,
    /// Time that the guest's own recording covers; `None` without such a recording.
    pub guest_known_ns: Option<u64>,
    pub guest_events: GuestEventKinds,
}

/// All vCPUs of a VM, and other threads that work for it.
#[derive(Clone, Debug, Default)]
pub struct VmUse {
    /// Index of the host's recording.
    pub recording: usize,
    /// Its index among the VMs of that recording.
    pub index: usize,
    pub name: String,
    /// Number of vCPUs.
    pub vcpus: usize,
    /// The sums over its vCPUs.
    pub times: StateTimes,
    /// See [`VcpuUse::guest_known_ns`].
    pub guest_known_ns: Option<u64>,
    /// See [`VcpuUse::guest_events`].
    pub guest_events: GuestEventKinds,
    /// CPU time of host threads by role; `None` if switches were not recorded.
    pub by_part: Option<BTreeMap<Part, u64>>,
}

/// CPU time of a host thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadUse {
    /// Index of the recording.
    pub recording: usize,
    pub thread: u32,
    pub name: Option<String>,
    /// Its role for `vm`.
    pub part: Part,
    pub vm: Option<usize>,
    /// CPU time according to thread switches.
    pub cpu_ns: u64,
    /// CPU time of the guest's idle thread, if this is a vCPU; `None` if not recorded.
    pub guest_idle_ns: Option<u64>,
    /// Halt polling, if this is a vCPU.
    pub halt_poll_ns: u64,
}

impl ThreadUse {
    /// CPU time without idling and halt polling.
    #[must_use]
    pub fn busy_ns(&self) -> u64 {
        let idle_ns = self.guest_idle_ns.unwrap_or(0).saturating_add(self.halt_poll_ns);
        self.cpu_ns.saturating_sub(idle_ns)
    }
}

/// CPU time of a guest's thread.
#[derive(Clone, Debug, Default)]
pub struct TaskUse {
    /// Index of the guest's recording.
    pub recording: usize,
    /// Thread id; 0 for the idle threads of all CPUs.
    pub task: u32,
    pub name: Option<String>,
    /// The states of its vCPUs while the guest considered it running.
    pub times: StateTimes,
    /// Kinds of events in the guest's recording.
    pub guest_events: GuestEventKinds,
}

/// Usage of a host CPU.
#[derive(Clone, Debug, Default)]
pub struct HostCpuUse {
    /// Index of the recording.
    pub recording: usize,
    pub cpu: u16,
    /// Time by role of the running threads.
    pub by_part: BTreeMap<Part, u64>,
    /// Time without a known thread.
    pub unknown_ns: u64,
}

/// CPU usage in recordings read together.
#[derive(Debug)]
pub struct CpuUse {
    pub vms: Vec<VmUse>,
    /// By vCPU.
    pub vcpus: Vec<VcpuUse>,
    /// Host threads, by CPU time, descending.
    pub threads: Vec<ThreadUse>,
    /// Guest threads, by running time, descending.
    pub tasks: Vec<TaskUse>,
    pub cpus: Vec<HostCpuUse>,
    /// By recording: threads on the CPUs that vCPUs waited for, the longest time first.
    pub takers: Vec<TakenCpu>,
    /// Guests' recordings, and how well they fit their hosts'.
    pub placed: Vec<(usize, GuestFit)>,
    /// Guests' recordings, with the host's recording and the VM's name.
    pub guests: Vec<(usize, usize, String)>,
    /// By recording: states of vCPUs that it has events for.
    pub recorded: Vec<RecordedParts>,
    /// By recording.
    pub losses: Vec<Losses>,
    /// From the first event of all recordings to the last.
    pub span_ns: u64,
    /// Whether times are nanoseconds.
    pub nanoseconds: bool,
}

#[derive(Debug, Default)]
struct VcpuSum {
    times: StateTimes,
    /// First time seen.
    first_ns: Option<u64>,
    guest_known_ns: Option<u64>,
}

/// Sums spans.
#[derive(Debug, Default)]
pub(crate) struct CpuUseSink {
    /// By recording and index.
    vcpus: Vec<Vec<VcpuSum>>,
    tasks: BTreeMap<(u16, u32), StateTimes>,
    takers: takers::Takers,
    /// By recording, CPU and thread; `None` if the thread is unknown.
    cpus: FxHashMap<(GuestCpu, Option<u32>), u64>,
}

impl StateSink for CpuUseSink {
    fn vcpu(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        let sum = self.vcpu_mut(vcpu);
        sum.times.add(span.state, span.duration_ns());
        sum.first_ns = Some(sum.first_ns.map_or(span.from_ns, |ns| ns.min(span.from_ns)));
        if span.task.is_some() {
            let guest_known_ns = sum.guest_known_ns.get_or_insert(0);
            *guest_known_ns = guest_known_ns.saturating_add(span.duration_ns());
        }
        if span.level > 1 && span.state.is_guest() {
            sum.times.add_nested(span.duration_ns());
        }
        if matches!(span.state, VcpuState::Preempted | VcpuState::Waiting) {
            self.takers.wait(vcpu, span);
        }
    }

    fn task(&mut self, guest: GuestCpu, task: u32, span: &StateSpan) {
        let times = self.tasks.entry((guest.recording, task)).or_default();
        times.add(span.state, span.duration_ns());
    }

    fn cpu(&mut self, cpu: GuestCpu, span: &OccupantSpan) {
        self.takers.ran(cpu, span);
        let ns = span.to_ns.saturating_sub(span.from_ns);
        add(self.cpus.entry((cpu, span.thread)).or_default(), ns);
    }
}

impl CpuUseSink {
    #[inline]
    fn vcpu_mut(&mut self, vcpu: VcpuRef) -> &mut VcpuSum {
        let (recording, index) = (usize::from(vcpu.recording), vcpu.index as usize);
        if self.vcpus.len() <= recording {
            self.vcpus.resize_with(recording + 1, Vec::new);
        }
        let sums = &mut self.vcpus[recording];
        if sums.len() <= index {
            sums.resize_with(index + 1, VcpuSum::default);
        }
        &mut sums[index]
    }

    /// Settles the times of exits after all events were seen.
    fn settle(&mut self, states: &States) {
        self.takers.finish();
        for (sums, recorded) in self.vcpus.iter_mut().zip(&states.recorded) {
            sums.iter_mut().for_each(|sum| sum.times.settle(recorded));
        }
    }
}

/// Saturates: times of a damaged recording can have any value.
fn add(sum: &mut u64, ns: u64) {
    *sum = sum.saturating_add(ns);
}

/// CPU usage. `view` has the guests' alignments, which must have been applied. `processes` has, by recording, the
/// process of each vCPU thread as far as the recorder knows it. `progress` receives the number of bytes read.
#[must_use]
pub fn cpu(
    view: View<'_>,
    processes: &[HashMap<u32, u32>],
    progress: &(dyn Fn(u64) + Sync),
) -> CpuUse {
    let View { recordings, .. } = view;
    let mut sums = CpuUseSink::new(recordings);
    let states = crate::states::states_by_thread(view, &mut sums, progress);
    sums.answer(view, processes, &states)
}

impl CpuUseSink {
    pub(crate) fn new(recordings: &[Recording]) -> Self {
        let begun_ns = bounds_ns(recordings).map_or(0, |(from_ns, _)| from_ns);
        Self { takers: takers::Takers::new(begun_ns), ..Self::default() }
    }

    /// The result, after all states were received.
    pub(crate) fn answer(
        mut self,
        view: View<'_>,
        processes: &[HashMap<u32, u32>],
        states: &States,
    ) -> CpuUse {
        let View { recordings, guests } = view;
        self.settle(states);
        let sums = &mut self;
        let takers = (0..recordings.len()).flat_map(|at| takers_of(states, sums, at)).collect();
        let vcpus = vcpus(states, guests, sums);
        let is_guest = |at: usize| {
            let made_in_guest =
                recordings.get(at).is_some_and(|recording| recording.peer().is_some());
            made_in_guest || guests.iter().any(|guest| guest.guest == at)
        };
        // A guest's view of its CPUs is not their real usage.
        sums.cpus.retain(|(cpu, _), _| !is_guest(usize::from(cpu.recording)));
        let none = HashMap::new();
        let (mut threads, mut cpus) = (Vec::new(), Vec::new());
        for at in 0..recordings.len() {
            let processes = processes.get(at).unwrap_or(&none);
            let of_it = |(cpu, thread): &(GuestCpu, Option<u32>)| {
                thread.filter(|_| usize::from(cpu.recording) == at)
            };
            let roles = Roles::new(states, at, processes, sums.cpus.keys().filter_map(of_it));
            threads.extend(host_threads(states, sums, at, &roles, &vcpus));
            cpus.extend(host_cpus(sums, at, &roles));
        }
        threads.sort_by_key(|thread| {
            (std::cmp::Reverse(thread.cpu_ns), thread.recording, thread.thread)
        });
        CpuUse {
            vms: vms(states, &vcpus, &threads),
            vcpus,
            threads,
            tasks: tasks(states, sums),
            cpus,
            takers,
            placed: states.placed.clone(),
            guests: guests
                .iter()
                .map(|guest| (guest.guest, guest.host, guest.vm.clone()))
                .collect(),
            recorded: states.recorded.clone(),
            losses: states.pass.losses.clone(),
            span_ns: span_ns(recordings),
            nanoseconds: recordings.iter().all(Recording::is_nanoseconds),
        }
    }
}

fn vcpus(states: &States, guests: &[GuestAlignment], sums: &CpuUseSink) -> Vec<VcpuUse> {
    let mut vcpus = Vec::new();
    let guest_events = guest_events_by_thread(states, guests);
    for (recording, vms) in states.vms.iter().enumerate() {
        for (at, vm) in vms.iter().enumerate() {
            for vcpu in &vm.vcpus {
                let sum = sums.vcpus.get(recording).and_then(|sums| sums.get(vcpu.index));
                vcpus.push(VcpuUse {
                    recording,
                    vm: at,
                    vcpu: vcpu.vcpu,
                    thread: vcpu.thread,
                    times: sum.map(|sum| sum.times.clone()).unwrap_or_default(),
                    guest_known_ns: sum.and_then(|sum| sum.guest_known_ns),
                    guest_events: guest_events
                        .get(&(recording, vcpu.thread))
                        .copied()
                        .unwrap_or_default(),
                });
            }
        }
    }
    vcpus
}

/// Kinds of events in the guest's recording, by host's recording and vCPU thread.
fn guest_events_by_thread(
    states: &States,
    guests: &[GuestAlignment],
) -> FxHashMap<(usize, u32), GuestEventKinds> {
    let mut by_thread = FxHashMap::default();
    for guest in guests {
        let kinds = states.guest_events.get(guest.guest).copied().flatten().unwrap_or_default();
        for row in guest.result().map_or(&[][..], |result| &result.rows) {
            by_thread.entry((guest.host, row.thread)).or_insert(kinds);
        }
    }
    by_thread
}

/// Threads that ran on the CPUs that vCPUs of a recording waited for.
fn takers_of(states: &States, sums: &CpuUseSink, recording: usize) -> Vec<TakenCpu> {
    let vms = states.vms.get(recording).map_or(&[][..], Vec::as_slice);
    let homes = VmsByVcpu::new(vms);
    let mut by_vm: BTreeMap<(usize, u32), takers::Had> = BTreeMap::new();
    for ((vcpu, thread), had) in &sums.takers.sums.all {
        if usize::from(vcpu.recording) == recording
            && let Some(vm) = homes.place(vcpu.index as usize)
        {
            let vm_had = by_vm.entry((vm, *thread)).or_default();
            add(&mut vm_had.ns, had.ns);
            add(&mut vm_had.preempted_ns, had.preempted_ns);
            vm_had.spread.merge(&had.spread);
        }
    }
    let names = states.pass.names.get(recording);
    let waits: Vec<(u64, u64)> = vms.iter().map(|vm| waits_ns(vm, sums, recording)).collect();
    let row = |((vm, thread), had): ((usize, u32), takers::Had)| {
        let name = names.and_then(|names| names.get(thread)).map(str::to_owned);
        let (vm_begins_ns, vm_waited_ns) = *waits.get(vm)?;
        let takers::Had { ns, preempted_ns, spread } = had;
        let vm = vms.get(vm)?.name.clone();
        Some(TakenCpu {
            recording,
            vm,
            vm_begins_ns,
            vm_waited_ns,
            thread,
            name,
            ns,
            preempted_ns,
            spread,
        })
    };
    let mut takers: Vec<TakenCpu> = by_vm.into_iter().filter_map(row).collect();
    takers.sort_by_key(|taker| (std::cmp::Reverse(taker.ns), taker.thread));
    takers
}

/// When a VM was first seen, relative to the start of the recordings, and the total run-queue wait of its vCPUs.
fn waits_ns(vm: &Vm, sums: &CpuUseSink, recording: usize) -> (u64, u64) {
    let all = sums.vcpus.get(recording).map_or(&[][..], Vec::as_slice);
    let of_vcpus = || vm.vcpus.iter().filter_map(|vcpu| all.get(vcpu.index));
    let first_ns = of_vcpus().filter_map(|sum| sum.first_ns).min();
    let begins_ns = first_ns.map_or(0, |first_ns| sums.takers.after_beginning_ns(first_ns));
    let waits = [VcpuState::Waiting, VcpuState::Preempted];
    let waited_ns = of_vcpus().map(|sum| sum.times.of_all(&waits)).fold(0, u64::saturating_add);
    (begins_ns, waited_ns)
}

fn host_threads(
    states: &States,
    sums: &CpuUseSink,
    recording: usize,
    roles: &Roles<'_>,
    vcpus: &[VcpuUse],
) -> Vec<ThreadUse> {
    let mut by_thread: BTreeMap<u32, u64> = BTreeMap::new();
    for ((cpu, thread), ns) in &sums.cpus {
        if let Some(thread) = thread.filter(|_| usize::from(cpu.recording) == recording) {
            add(by_thread.entry(thread).or_default(), *ns);
        }
    }
    let mut vcpus_of: HashMap<u32, Vec<&VcpuUse>> = HashMap::new();
    for vcpu in vcpus.iter().filter(|vcpu| vcpu.recording == recording) {
        vcpus_of.entry(vcpu.thread).or_default().push(vcpu);
    }
    let names = states.pass.names.get(recording);
    let use_of = |(thread, cpu_ns): (u32, u64)| {
        let role = roles.role_of(thread);
        let vcpus = || vcpus_of.get(&thread).into_iter().flatten();
        let idle = |vcpu: &&VcpuUse| {
            vcpu.guest_known_ns.map(|_| vcpu.times.in_state(VcpuState::GuestIdle))
        };
        ThreadUse {
            recording,
            thread,
            name: names.and_then(|names| names.get(thread)).map(str::to_owned),
            part: role.part,
            vm: role.vm,
            cpu_ns,
            guest_idle_ns: vcpus().filter_map(idle).reduce(u64::saturating_add),
            halt_poll_ns: vcpus()
                .map(|vcpu| vcpu.times.in_state(VcpuState::HaltPoll))
                .fold(0, u64::saturating_add),
        }
    };
    by_thread.into_iter().map(use_of).collect()
}

fn host_cpus(sums: &CpuUseSink, recording: usize, roles: &Roles<'_>) -> Vec<HostCpuUse> {
    let mut cpus: BTreeMap<u16, HostCpuUse> = BTreeMap::new();
    for ((at, thread), ns) in &sums.cpus {
        if usize::from(at.recording) != recording {
            continue;
        }
        let cpu = cpus.entry(at.cpu).or_default();
        (cpu.recording, cpu.cpu) = (recording, at.cpu);
        match thread {
            Some(thread) => add(cpu.by_part.entry(roles.role_of(*thread).part).or_default(), *ns),
            None => add(&mut cpu.unknown_ns, *ns),
        }
    }
    cpus.into_values().collect()
}

fn vms(states: &States, vcpus: &[VcpuUse], threads: &[ThreadUse]) -> Vec<VmUse> {
    let mut all = Vec::new();
    for (recording, vms) in states.vms.iter().enumerate() {
        let named = |(index, vm): (usize, &Vm)| VmUse {
            recording,
            index,
            name: vm.name.clone(),
            ..VmUse::default()
        };
        let mut sums: Vec<VmUse> = vms.iter().enumerate().map(named).collect();
        if threads.iter().any(|thread| thread.recording == recording) {
            sums.iter_mut().for_each(|sum| sum.by_part = Some(BTreeMap::new()));
        }
        for vcpu in vcpus.iter().filter(|vcpu| vcpu.recording == recording) {
            sums.get_mut(vcpu.vm).into_iter().for_each(|sum| sum.add_vcpu(vcpu));
        }
        for thread in threads.iter().filter(|thread| thread.recording == recording) {
            let by_part = thread.vm.and_then(|vm| sums.get_mut(vm)?.by_part.as_mut());
            if let Some(by_part) = by_part {
                add(by_part.entry(thread.part).or_default(), thread.cpu_ns);
            }
        }
        all.append(&mut sums);
    }
    all
}

impl VmUse {
    fn add_vcpu(&mut self, vcpu: &VcpuUse) {
        self.vcpus += 1;
        self.guest_events.modes |= vcpu.guest_events.modes;
        self.guest_events.irqs |= vcpu.guest_events.irqs;
        self.times.merge(&vcpu.times);
        let known_ns = [self.guest_known_ns, vcpu.guest_known_ns];
        self.guest_known_ns = known_ns.into_iter().flatten().reduce(u64::saturating_add);
    }
}

fn tasks(states: &States, sums: &CpuUseSink) -> Vec<TaskUse> {
    let use_of = |((recording, task), times): (&(u16, u32), &StateTimes)| {
        let recording = usize::from(*recording);
        let names = states.pass.names.get(recording);
        TaskUse {
            recording,
            task: *task,
            name: names.and_then(|names| names.get(*task)).map(str::to_owned),
            times: times.clone(),
            guest_events: states.guest_events.get(recording).copied().flatten().unwrap_or_default(),
        }
    };
    let mut tasks: Vec<TaskUse> = sums.tasks.iter().map(use_of).collect();
    tasks.sort_by_key(|task| (std::cmp::Reverse(task.times.guest()), task.recording, task.task));
    tasks
}
