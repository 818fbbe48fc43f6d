//! A machine that boots or goes down, as reports are given it: phases, initcalls, what each cost.

use timeline::reasons::Code;

use super::events::Weight;
use super::tracing::EventCost;
use crate::known_parts::KnownParts;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PhaseKind {
    /// Before the guest's first event: firmware, and the kernel until it can trace.
    Before,
    /// The kernel, outside initcalls.
    Kernel,
    /// Initcalls of a level.
    Level,
    /// User space, until the mark.
    User,
    /// After the mark.
    Running,
    /// On the way down.
    Shutdown,
    /// After the guest's last event, until its vCPUs run no more.
    After,
}

impl PhaseKind {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Kernel => "kernel",
            Self::Level => "level",
            Self::User => "user",
            Self::Running => "running",
            Self::Shutdown => "shutdown",
            Self::After => "after",
        }
    }
}

/// A phase: from its own beginning to that of the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    pub kind: PhaseKind,
    /// Which: a level's name, a program's path, a mark's text, a step of a shutdown.
    pub name: String,
    /// When it begins.
    pub from_ns: u64,
    /// When it ends.
    pub to_ns: u64,
    /// What the guest says of it; `None` where it says nothing.
    pub guest: Option<InPhase>,
    /// What it cost the host; `None` where that was not recorded.
    pub host: Option<HostCost>,
}

impl Phase {
    /// How long it lasts.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// What a guest says of a phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InPhase {
    /// Initcalls that begin in it, modules' among them.
    pub initcalls: u64,
    /// Those that did not end.
    pub unfinished: u64,
    /// Time in initcalls, those within others left out.
    pub initcalls_ns: u64,
    /// The same by section of the kernel's table, with its number of initcalls, in order; empty where
    /// symbols don't show it.
    pub sections: Vec<(String, u64, u64)>,
    /// Threads that were made.
    pub forks: u64,
    /// Programs that were started.
    pub execs: u64,
    /// Modules that were loaded.
    pub modules: u64,
    /// Events that the guest's kernel recorded.
    pub weight: Weight,
}

/// What a stretch of a guest's time cost its host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostCost {
    /// Exits of the guest's vCPUs that begin in it.
    pub exits: u64,
    /// Those with a time.
    pub paired: u64,
    /// The sum of their times, from exit to entry.
    pub time_ns: u64,
    /// Of that, the time of exits that wait for work.
    pub waiting_ns: u64,
    /// Where all of it went, as far as that is recorded.
    pub parts: KnownParts,
    /// By reason, those first that took longest.
    pub reasons: Vec<ReasonCost>,
}

impl HostCost {
    /// Exit to entry, without exits that wait for work.
    #[must_use]
    pub fn working_ns(&self) -> u64 {
        self.time_ns.saturating_sub(self.waiting_ns)
    }
}

/// Exits of one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasonCost {
    /// The kernel's symbol.
    pub reason: String,
    /// The raw code.
    pub code: Code,
    /// How many.
    pub exits: u64,
    /// Exit to entry, of those with a time.
    pub time_ns: u64,
    /// They wait for work.
    pub waiting: bool,
}

/// A call of a function that initializes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initcall {
    /// Its name; `None` where symbols don't have it.
    pub function: Option<String>,
    /// The function.
    pub address: u64,
    /// The module, or the part of the kernel; `None` where it is not known.
    pub module: Option<String>,
    /// Whether it came with a module that was loaded.
    pub is_loaded: bool,
    /// The section of the kernel's table it is in.
    pub section: Option<String>,
    /// The level; `None`: a module's.
    pub level: Option<String>,
    /// When it began.
    pub from_ns: u64,
    /// When it ended; `None`: that was not seen.
    pub to_ns: Option<u64>,
    /// What it returned.
    pub result: Option<i64>,
    /// How many others of the same thread it is within.
    pub depth: usize,
    /// What the guest recorded meanwhile; `None` for those within others and those without an end.
    pub weight: Option<Weight>,
    /// What that time cost the host; `None` where that is not known.
    pub host: Option<HostCost>,
}

impl Initcall {
    /// How long it took.
    #[must_use]
    pub fn duration_ns(&self) -> Option<u64> {
        Some(self.to_ns?.saturating_sub(self.from_ns))
    }
}

/// A machine that boots, or goes down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootedMachine {
    /// The VM's name; `None` for a guest's recording without its host's.
    pub vm: Option<String>,
    /// Index of the host's recording.
    pub host: Option<usize>,
    /// Index of its own recording.
    pub guest: Option<usize>,
    /// In order, without gaps.
    pub phases: Vec<Phase>,
    /// In the order in which they began.
    pub initcalls: Vec<Initcall>,
    /// Ends of initcalls whose beginnings were not seen.
    pub strays: u64,
    /// The first program of its first process, and when it was started.
    pub init: Option<(String, u64)>,
    /// The mark that ended the boot, and when.
    pub mark: Option<(String, u64)>,
    /// Its vCPUs; 0 where its host was not recorded.
    pub vcpus: usize,
    /// Exits of its vCPUs in the whole recording.
    pub exits: Option<u64>,
    /// Pages of its own recording that can't be read.
    pub damaged: u64,
    /// What an event costs it; `None`: nobody has measured that. Recordings don't have it: whoever knows sets it.
    pub event_cost: Option<EventCost>,
    /// Whether times are nanoseconds.
    pub nanoseconds: bool,
}

impl BootedMachine {
    /// Whether its own recording has anything of it.
    pub(super) fn is_known(&self) -> bool {
        let is_step = |phase: &Phase| matches!(phase.kind, PhaseKind::Level | PhaseKind::Shutdown);
        !self.initcalls.is_empty() || self.phases.iter().any(is_step)
    }
}
