//! Spans of time and the state of a thread or vCPU in them.

use timeline::VmVcpu;
use timeline::trace_events::{Gap, TraceEvent};

use super::wanted::StateNeeds;
use crate::recorded::RecordedParts;

/// State of a vCPU, as far as host and guest show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VcpuState {
    /// A thread of the guest runs in user space.
    GuestUser,
    /// A thread of the guest runs in the guest's kernel.
    GuestKernel,
    /// The guest handles an interrupt or a soft interrupt.
    GuestIrq,
    /// The guest's idle thread runs: it looks for work, or is about to halt.
    GuestIdle,
    /// The guest runs; its activity is not recorded.
    Guest,
    /// The host works after the hardware exit and before `kvm_exit`.
    BeforeExit,
    /// The host's kernel handles an exit.
    ExitKernel,
    /// The VMM handles an exit.
    ExitUser,
    /// Woken up, and waiting for a CPU.
    Waiting,
    /// Switched out while it could have continued.
    Preempted,
    /// The host polls for work after the guest halted.
    HaltPoll,
    /// The guest has nothing to do, and its vCPU sleeps.
    Halted,
    /// The vCPU's thread sleeps for another reason.
    Blocked,
    /// Unknown: events were lost or are missing.
    Unknown,
    /// An exit is handled; the recording cannot distinguish kernel, user space and waiting.
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

    /// Name in reports and scripts.
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

    /// The final state, once the recorded events are known: exit time that no event splits is [`Self::NotSplit`].
    #[must_use]
    pub fn settled(self, recorded: &RecordedParts) -> Self {
        let is_kernel = self == Self::ExitKernel;
        if is_kernel && !recorded.is_split() { Self::NotSplit } else { self }
    }

    /// Whether the guest has nothing to do, with or without CPU time.
    #[must_use]
    pub const fn is_idle(self) -> bool {
        matches!(self, Self::Halted | Self::HaltPoll | Self::GuestIdle)
    }

    /// Whether the guest runs.
    #[must_use]
    pub const fn is_guest(self) -> bool {
        matches!(
            self,
            Self::GuestUser | Self::GuestKernel | Self::GuestIrq | Self::GuestIdle | Self::Guest
        )
    }
}

/// A vCPU of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VcpuRef {
    /// Index of the host's recording.
    pub recording: u16,
    /// Index in [`super::States::vcpus`] of that recording.
    pub index: u32,
}

impl VcpuRef {
    /// A vCPU of the recording with this index.
    #[must_use]
    pub(crate) fn new(recording: usize, vcpu: &VmVcpu) -> Self {
        Self {
            recording: u16::try_from(recording).unwrap_or(u16::MAX),
            index: u32::try_from(vcpu.index).unwrap_or(u32::MAX),
        }
    }
}

/// A CPU of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GuestCpu {
    /// Index of the recording.
    pub recording: u16,
    pub cpu: u16,
}

/// The exit that a span belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitOf {
    /// Time of `kvm_exit`; identifies the exit among those of the vCPU.
    pub start_ns: u64,
    /// The raw code, as in [`timeline::ExitSpan`].
    pub code: u64,
    /// The `isa` field, as in [`timeline::ExitSpan`].
    pub isa: u8,
    /// Whether its entry was seen, so that the exits report counts its time.
    pub paired: bool,
    /// The guest's instruction pointer; 0 if it was not requested or not recorded.
    pub guest_pc: u64,
}

/// A time range with a constant state of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSpan {
    /// Start, on the host's clock.
    pub from_ns: u64,
    pub to_ns: u64,
    pub state: VcpuState,
    /// 1: the guest itself; 2: a nested guest ran, or caused this exit.
    pub level: u8,
    /// The host CPU where the vCPU's thread runs, or ran last. For a guest without its host's recording, the guest
    /// CPU.
    pub cpu: u16,
    /// The exit that is being handled.
    pub exit: Option<ExitOf>,
    /// The guest's thread that runs, or will run when the vCPU runs again; 0 for the idle thread.
    pub task: Option<u32>,
}

impl StateSpan {
    #[must_use]
    pub const fn duration_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// A time range in which a thread had a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OccupantSpan {
    pub from_ns: u64,
    pub to_ns: u64,
    /// The thread; 0 for idle, `None` if unknown.
    pub thread: Option<u32>,
}

/// Receives states in the order of time.
pub trait StateSink: Send {
    /// Needs in addition to states. Called before the pass.
    fn needs(&self) -> StateNeeds<'_> {
        StateNeeds::default()
    }

    /// A state of a vCPU. Spans of a vCPU are in the order of time, without gaps.
    fn vcpu(&mut self, vcpu: VcpuRef, span: &StateSpan);

    /// The host thread of a vCPU: called before its first spans, and possibly again at any time.
    fn runs_in(&mut self, _vcpu: VcpuRef, _thread: u32) {}

    /// The same span for the guest's thread that was current on the vCPU: shows what it got of its time. Without
    /// the host's recording, all states are the guest's.
    fn task(&mut self, guest: GuestCpu, task: u32, span: &StateSpan);

    /// A thread had a CPU; spans of a CPU are in the order of time, without gaps.
    fn cpu(&mut self, cpu: GuestCpu, span: &OccupantSpan);

    /// Every event that states are derived from, before the states that it begins. Only called for sinks that need
    /// events, and only if all CPUs are read in one order.
    fn event(&mut self, _event: &TraceEvent) {}

    /// A loss on a CPU, before the states that it ends. Only called for sinks that need events.
    fn gap(&mut self, _gap: &Gap) {}
}

/// Forwards all states to all sinks.
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
