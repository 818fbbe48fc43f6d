//! Lanes of states of vCPUs, CPUs and tasks: one pass over all recordings, and another one over each with calls.

use std::collections::HashSet;

use rustc_hash::FxHashMap;
use timeline::reasons::ReasonNames;

use super::arrows::{ArrowSink, Arrows, LanePlaces};
use super::of_calls::add_calls;
use super::{Lane, LaneKind, LaneRoom, LaneSet, Span, State};
use crate::align::GuestAlignment;
use crate::calls::RecordedCalls;
use crate::states::{GuestCpu, OccupantSpan, StateSink, StateSpan, States, VcpuRef, VcpuState};
use crate::view::View;
use crate::vms::VmsByVcpu;

/// Max threads of a host, and tasks of a guest, that are shown by default: those with most running time.
const SHOWN_THREADS: usize = 12;
const SHOWN_TASKS: usize = 32;

/// Max threads of a host, and tasks of a guest, that are stored for later queries.
const MAX_LANES_OF_A_KIND: usize = 300;

/// Facts about a recording's machine, known before its lanes are built.
#[derive(Clone, Debug)]
pub struct LaneMachine {
    pub name: String,
    /// Whether it is a guest.
    pub is_guest: bool,
    /// vCPU threads.
    pub vcpu_threads: HashSet<u32>,
}

/// The guest's recording by host's recording, for hosts with only one guest: only then the guest's tasks are
/// unambiguous.
fn only_guests(guests: &[GuestAlignment]) -> FxHashMap<u16, u16> {
    let mut only = FxHashMap::default();
    for alignment in guests.iter().filter(|alignment| alignment.chosen.is_some()) {
        let alone = guests.iter().filter(|other| other.host == alignment.host).count() == 1;
        if let (true, Ok(host), Ok(guest)) =
            (alone, alignment.host.try_into(), alignment.guest.try_into())
        {
            only.insert(host, guest);
        }
    }
    only
}

/// The subject of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    Cpu(GuestCpu),
    Vcpu(VcpuRef),
    Thread(u16, u32),
    Task(u16, u32),
}

impl Subject {
    const fn kind(self) -> LaneKind {
        match self {
            Self::Cpu(_) => LaneKind::Cpu,
            Self::Vcpu(_) => LaneKind::Vcpu,
            Self::Thread(..) => LaneKind::Thread,
            Self::Task(..) => LaneKind::Task,
        }
    }

    const fn recording(self) -> u16 {
        match self {
            Self::Cpu(cpu) => cpu.recording,
            Self::Vcpu(vcpu) => vcpu.recording,
            Self::Thread(recording, _) | Self::Task(recording, _) => recording,
        }
    }
}

/// Converts states to spans.
pub(crate) struct LaneSink<'m> {
    set: LaneSet,
    reasons: Vec<ReasonNames>,
    machines: &'m [LaneMachine],
    only_guest: FxHashMap<u16, u16>,
    lanes: FxHashMap<Subject, usize>,
    reason_labels: FxHashMap<(u16, u8, u64), u32>,
    thread_labels: FxHashMap<(u16, u32), u32>,
}

impl<'m> LaneSink<'m> {
    pub(crate) fn new(view: View<'_>, machines: &'m [LaneMachine], room: LaneRoom) -> Self {
        let View { recordings, guests } = view;
        Self {
            set: LaneSet::new(room),
            reasons: recordings.iter().map(ReasonNames::new).collect(),
            machines,
            only_guest: only_guests(guests),
            lanes: FxHashMap::default(),
            reason_labels: FxHashMap::default(),
            thread_labels: FxHashMap::default(),
        }
    }

    /// The lanes after all states were received, arrows between them, and calls, which need another pass over
    /// recordings that have any.
    pub(crate) fn answer(
        self,
        view: View<'_>,
        states: &States,
        arrows: ArrowSink,
        progress: &(dyn Fn(u64) + Sync),
    ) -> (LaneSet, Arrows, Vec<(usize, RecordedCalls)>) {
        let View { recordings, guests } = view;
        let machines = self.machines;
        let mut set = self.finish(states);
        let places = LanePlaces::new(&set, states, guests);
        let arrows = arrows.answer(&set, places);
        let calls = add_calls(&mut set, recordings, machines, &states.pass, progress);
        (set, arrows, calls)
    }

    fn push(&mut self, subject: Subject, span: Span) {
        let lane = *self.lanes.entry(subject).or_insert_with(|| {
            let machine = self.machines.get(usize::from(subject.recording()));
            let name = machine.map_or("", |machine| machine.name.as_str());
            let lane = Lane::new(name, subject.kind(), "");
            self.set.add(Lane { subject: Some(subject), ..lane })
        });
        self.set.push(lane, span);
    }

    fn reason(&mut self, recording: u16, isa: u8, code: u64) -> u32 {
        if let Some(&label) = self.reason_labels.get(&(recording, isa, code)) {
            return label;
        }
        let names = self.reasons.get_mut(usize::from(recording));
        let name = names.map_or_else(String::new, |names| names.name(isa, code));
        let label = self.set.label(&name);
        self.reason_labels.insert((recording, isa, code), label);
        label
    }

    /// A thread's label: a placeholder until the end of the pass, when names are known.
    fn thread(&mut self, recording: u16, thread: u32) -> u32 {
        if let Some(&label) = self.thread_labels.get(&(recording, thread)) {
            return label;
        }
        let label = self.set.label(&format!("\0{recording}:{thread}"));
        self.thread_labels.insert((recording, thread), label);
        label
    }

    /// Label of a vCPU's span: the exit's reason, or the guest's thread.
    fn about(&mut self, recording: u16, span: &StateSpan) -> u32 {
        match (span.exit, span.task, self.only_guest.get(&recording).copied()) {
            (Some(exit), ..) => self.reason(recording, exit.isa, exit.code),
            (None, Some(task), Some(guest)) if task != 0 => self.thread(guest, task),
            _ => 0,
        }
    }

    /// Sets all names, and drops lanes that show little.
    fn finish(mut self, states: &States) -> LaneSet {
        let named = |recording: u16, thread: u32| {
            let names = states.pass.names.get(usize::from(recording));
            let comm = names.and_then(|names| names.get(thread)).unwrap_or("<...>");
            if thread == 0 { "idle".to_owned() } else { format!("{comm}-{thread}") }
        };
        for (&(recording, thread), &label) in &self.thread_labels {
            self.set.rename_label(label, named(recording, thread));
        }
        let homes: Vec<_> = states.vms.iter().map(|vms| VmsByVcpu::new(vms)).collect();
        for (&subject, &at) in &self.lanes {
            let Some(lane) = self.set.lane_mut(at) else { continue };
            match subject {
                Subject::Cpu(cpu) => lane.name = format!("CPU {}", cpu.cpu),
                Subject::Thread(recording, thread) | Subject::Task(recording, thread) => {
                    lane.name = named(recording, thread);
                }
                Subject::Vcpu(vcpu) => {
                    let home = homes.get(usize::from(vcpu.recording));
                    if let Some((vm, vm_vcpu)) = home.and_then(|all| all.find(vcpu.index as usize))
                    {
                        lane.name = format!("vCPU {}", vm_vcpu.vcpu);
                        lane.vm = Some(vm.name.clone());
                    }
                }
            }
        }
        let vms: HashSet<String> = states.vms.iter().flatten().map(|vm| vm.name.clone()).collect();
        // The vCPU's lane shows the activity of a guest's CPU, if the host was recorded.
        self.set.retain(|lane| lane.kind != LaneKind::Cpu || !vms.contains(&lane.machine));
        self.set.keep_busiest(LaneKind::Thread, SHOWN_THREADS, MAX_LANES_OF_A_KIND);
        self.set.keep_busiest(LaneKind::Task, SHOWN_TASKS, MAX_LANES_OF_A_KIND);
        self.set.sort();
        self.set
    }

    fn is_guest(&self, recording: u16) -> bool {
        self.machines.get(usize::from(recording)).is_some_and(|machine| machine.is_guest)
    }

    fn is_vcpu(&self, recording: u16, thread: u32) -> bool {
        let machine = self.machines.get(usize::from(recording));
        machine.is_some_and(|machine| machine.vcpu_threads.contains(&thread))
    }
}

impl StateSink for LaneSink<'_> {
    fn vcpu(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        let label = self.about(vcpu.recording, span);
        let state = State::of_vcpu(span.state, span.level);
        let span = Span { from_ns: span.from_ns, to_ns: span.to_ns, state, label };
        self.push(Subject::Vcpu(vcpu), span);
    }

    fn task(&mut self, guest: GuestCpu, task: u32, span: &StateSpan) {
        // The vCPU's lane shows idle time; unknown time is not shown.
        if task == 0 || span.state == VcpuState::Unknown {
            return;
        }
        let state = State::of_vcpu(span.state, span.level);
        let label = 0;
        let span = Span { from_ns: span.from_ns, to_ns: span.to_ns, state, label };
        self.push(Subject::Task(guest.recording, task), span);
    }

    fn cpu(&mut self, cpu: GuestCpu, span: &OccupantSpan) {
        let Some(thread) = span.thread.filter(|&thread| thread != 0) else { return };
        let label = self.thread(cpu.recording, thread);
        let is_vcpu = self.is_vcpu(cpu.recording, thread);
        let state = if is_vcpu { State::CpuVcpu } else { State::CpuOther };
        let span = Span { from_ns: span.from_ns, to_ns: span.to_ns, state, label };
        self.push(Subject::Cpu(cpu), span);
        if !is_vcpu && !self.is_guest(cpu.recording) {
            let span = Span { state: State::Running, label: 0, ..span };
            self.push(Subject::Thread(cpu.recording, thread), span);
        }
    }
}
