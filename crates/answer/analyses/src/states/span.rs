//! Spans of time and the state of a thread or vCPU in them.

use timeline::VmVcpu;
use timeline::trace_events::{Gap, TraceEvent};

use super::wanted::StateNeeds;
use crate::recorded::RecordedParts;

/// What a vCPU does, as far as host and guest show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VcpuState {
    /// A thread of the guest runs in user space.
    GuestUser,
    /// A thread of the guest runs in the guest's kernel.
    GuestKernel,
    /// The guest deals with an interrupt, a soft one too.
    GuestIrq,
    /// The guest's idle thread runs: it looks for work, or is on its way to halting.
    GuestIdle,
    /// The guest runs; what it does is not recorded.
    Guest,
    /// The host works after the hardware has left the guest and before `kvm_exit`.
    BeforeExit,
    /// The host's kernel handles an exit.
    ExitKernel,
    /// The VMM handles an exit.
    ExitUser,
    /// Woken up, and waiting for a CPU.
    Waiting,
    /// Taken off its CPU though it could have run on.
    Preempted,
    /// The host polls for work on behalf of a guest that halted.
    HaltPoll,
    /// The guest has nothing to do, and its vCPU sleeps.
    Halted,
    /// The vCPU's thread sleeps for another reason.
    Blocked,
    /// Not known: events were lost or are missing.
    Unknown,
    /// An exit is handled: in the kernel, in user space or waiting, the recording doesn't say.
    NotSplit,
}

impl VcpuState {
    /// All states, in the order of reports.
    pub const ALL: [Self; 15] = [
        Self::GuestUser,
        Self::GuestKernel,
        Self::GuestIrq,
        Self::GuestIdle,
        Self::Guest,
        Self::BeforeExit,
        Self::ExitKernel,
        Self::ExitUser,
        Self::Waiting,
        Self::Preempted,
        Self::HaltPoll,
        Self::Halted,
        Self::Blocked,
        Self::Unknown,
        Self::NotSplit,
    ];

    /// Its name in reports and scripts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GuestUser => "guest_user",
            Self::GuestKernel => "guest_kernel",
            Self::GuestIrq => "guest_irq",
            Self::GuestIdle => "guest_idle",
            Self::Guest => "guest",
            Self::BeforeExit => "before_exit",
            Self::ExitKernel => "exit_kernel",
            Self::ExitUser => "exit_user",
            Self::NotSplit => "not_split",
            Self::Waiting => "waiting",
            Self::Preempted => "preempted",
            Self::HaltPoll => "halt_poll",
            Self::Halted => "halted",
            Self::Blocked => "blocked",
            Self::Unknown => "unknown",
        }
    }

    /// The state once it is known what was recorded: what no event splits is not the kernel's.
    #[must_use]
    pub fn settled(self, recorded: &RecordedParts) -> Self {
        let is_kernel = self == Self::ExitKernel;
        if is_kernel && !recorded.is_split() { Self::NotSplit } else { self }
    }

    /// The guest has nothing to do, whether its vCPU runs meanwhile or not.
    #[must_use]
    pub const fn is_idle(self) -> bool {
        matches!(self, Self::Halted | Self::HaltPoll | Self::GuestIdle)
    }

    /// The guest runs.
    #[must_use]
    pub const fn is_guest(self) -> bool {
        matches!(
            self,
            Self::GuestUser | Self::GuestKernel | Self::GuestIrq | Self::GuestIdle | Self::Guest
        )
    }
}

/// A vCPU of one of the recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VcpuRef {
    /// Index of the host's recording.
    pub recording: u16,
    /// Index in [`super::States::vcpus`] of that recording.
    pub index: u32,
}

impl VcpuRef {
    /// A vCPU of the recording of that index.
    #[must_use]
    pub(crate) fn new(recording: usize, vcpu: &VmVcpu) -> Self {
        Self {
            recording: u16::try_from(recording).unwrap_or(u16::MAX),
            index: u32::try_from(vcpu.index).unwrap_or(u32::MAX),
        }
    }
}

/// A CPU of one of the recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GuestCpu {
    /// Index of the recording.
    pub recording: u16,
    pub cpu: u16,
}

/// The exit that a span is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitOf {
    /// Time of `kvm_exit`: tells exits of one vCPU apart.
    pub start_ns: u64,
    /// The raw code and the `isa` field, as [`timeline::ExitSpan`] has them.
    pub code: u64,
    /// See `code`.
    pub isa: u8,
    /// Its entry was seen: the exits report counts its time.
    pub paired: bool,
    /// Where the guest was; 0: not asked for, or not recorded.
    pub guest_pc: u64,
}

/// A stretch of time in which a vCPU was in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSpan {
    /// Its beginning, on the host's clock.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
    pub state: VcpuState,
    /// 1: the guest itself; 2: a guest inside it ran, or left by this exit.
    pub level: u8,
    /// The host's CPU on which the vCPU's thread ran, or ran last; of a guest without its host's
    /// recording, the guest's CPU.
    pub cpu: u16,
    /// The exit that is being handled.
    pub exit: Option<ExitOf>,
    /// The guest's thread that ran, or will when the vCPU runs again; 0: its idle thread.
    pub task: Option<u32>,
}

impl StateSpan {
    /// How long it lasted.
    #[must_use]
    pub const fn duration_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// A stretch of time in which one thread had a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OccupantSpan {
    /// Its beginning.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
    /// The thread; 0 is idle, `None` not known.
    pub thread: Option<u32>,
}

/// Takes the states of all that recordings show.
pub trait StateSink: Send {
    /// What it needs in addition to states. Asked before anything is read.
    fn needs(&self) -> StateNeeds<'_> {
        StateNeeds::default()
    }

    /// A vCPU was in one state for a while. Spans of a vCPU come in order, each beginning where the
    /// one before it ended.
    fn vcpu(&mut self, vcpu: VcpuRef, span: &StateSpan);

    /// The host's thread that a vCPU runs in, before its first spans and again at any time.
    fn runs_in(&mut self, _vcpu: VcpuRef, _thread: u32) {}

    /// The same as seen by the guest's thread that had its CPU then: what did it get of that time?
    /// Where the host's recording is missing, all states are the guest's.
    fn task(&mut self, guest: GuestCpu, task: u32, span: &StateSpan);

    /// A thread had a CPU, in order and without gaps per CPU.
    fn cpu(&mut self, cpu: GuestCpu, span: &OccupantSpan);

    /// Every event that states are made of, before those that it begins, where all CPUs are read in one order. Only of a sink
    /// that needs events.
    fn event(&mut self, _event: &TraceEvent) {}

    /// Events of a CPU are missing; before the states that this ends. Only of a sink that needs events.
    fn gap(&mut self, _gap: &Gap) {}
}

/// All of them get all states.
impl StateSink for Vec<&mut dyn StateSink> {
    fn needs(&self) -> StateNeeds<'_> {
        self.iter().map(|sink| sink.needs()).fold(StateNeeds::default(), StateNeeds::or)
    }

    fn vcpu(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        self.iter_mut().for_each(|sink| sink.vcpu(vcpu, span));
    }

    fn runs_in(&mut self, vcpu: VcpuRef, thread: u32) {
        self.iter_mut().for_each(|sink| sink.runs_in(vcpu, thread));
    }

    fn task(&mut self, guest: GuestCpu, task: u32, span: &StateSpan) {
        self.iter_mut().for_each(|sink| sink.task(guest, task, span));
    }

    fn cpu(&mut self, cpu: GuestCpu, span: &OccupantSpan) {
        self.iter_mut().for_each(|sink| sink.cpu(cpu, span));
    }

    fn event(&mut self, event: &TraceEvent) {
        self.iter_mut().for_each(|sink| sink.event(event));
    }

    fn gap(&mut self, gap: &Gap) {
        self.iter_mut().for_each(|sink| sink.gap(gap));
    }
}
