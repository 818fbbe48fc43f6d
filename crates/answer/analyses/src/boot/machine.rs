//! The result for a machine: phases and initcalls with their costs.

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
    /// Initcalls of one level.
    Level,
    /// User space, until the mark.
    User,
    /// After the mark.
    Running,
    /// Shutdown.
    Shutdown,
    /// After the guest's last event, until its vCPUs stop.
    After,
}

impl PhaseKind {
    /// Name in reports.
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

/// A phase, which ends when the next one starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    pub kind: PhaseKind,
    /// Name of the level, path of the program, text of the mark, or step of the shutdown.
    pub name: String,
    pub from_ns: u64,
    pub to_ns: u64,
    /// The guest's numbers; `None` if the guest recorded nothing.
    pub guest: Option<InPhase>,
    /// The host's cost; `None` if it was not recorded.
    pub host: Option<HostCost>,
}

impl Phase {
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// The guest's numbers of a phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InPhase {
    /// Initcalls that start in it, including modules'.
    pub initcalls: u64,
    /// Initcalls without an end.
    pub unfinished: u64,
    /// Time in initcalls, without nested ones.
    pub initcalls_ns: u64,
    /// Time and number of initcalls by section of the kernel's table, in order; empty if symbols lack the table.
    pub sections: Vec<(String, u64, u64)>,
    /// Threads that were created.
    pub forks: u64,
    /// Programs that were started.
    pub execs: u64,
    /// Modules that were loaded.
    pub modules: u64,
    /// Size of the guest's events.
    pub weight: Weight,
}

/// Host's cost of a range of a guest's time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostCost {
    /// Exits of the guest's vCPUs that start in it.
    pub exits: u64,
    /// Exits with a time.
    pub paired: u64,
    /// Sum of their times, from exit to entry.
    pub time_ns: u64,
    /// Part of `time_ns` in waiting exits.
    pub waiting_ns: u64,
    /// `time_ns` by part, as far as parts are recorded.
    pub parts: KnownParts,
    /// Costs by reason, the longest time first.
    pub reasons: Vec<ReasonCost>,
}

impl HostCost {
    /// Time from exit to entry, without waiting exits.
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
    pub exits: u64,
    /// Time of paired exits, from exit to entry.
    pub time_ns: u64,
    /// Whether these exits mean waiting for work.
    pub waiting: bool,
}

/// A call of an initialization function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initcall {
    /// Name of the function; `None` if symbols lack it.
    pub function: Option<String>,
    /// Address of the function.
    pub address: u64,
    /// The module, or the built-in module's name; `None` if unknown.
    pub module: Option<String>,
    /// Whether it belongs to a module that was loaded at run time.
    pub is_loaded: bool,
    /// Its section in the kernel's initcall table.
    pub section: Option<String>,
    /// The level; `None` for a loaded module.
    pub level: Option<String>,
    pub from_ns: u64,
    /// End; `None` if it was not seen.
    pub to_ns: Option<u64>,
    /// Return value.
    pub result: Option<i64>,
    /// Number of enclosing initcalls of the same thread.
    pub depth: usize,
    /// Size of the guest's events during it; `None` for nested initcalls and those without an end.
    pub weight: Option<Weight>,
    /// Host's cost during it; `None` if unknown.
    pub host: Option<HostCost>,
}

impl Initcall {
    #[must_use]
    pub fn duration_ns(&self) -> Option<u64> {
        Some(self.to_ns?.saturating_sub(self.from_ns))
    }
}

/// A machine that boots or shuts down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootedMachine {
    /// The VM's name; `None` for a guest's recording without its host's.
    pub vm: Option<String>,
    /// Index of the host's recording.
    pub host: Option<usize>,
    /// Index of its own recording.
    pub guest: Option<usize>,
    /// In the order of time, without gaps.
    pub phases: Vec<Phase>,
    /// By start.
    pub initcalls: Vec<Initcall>,
    /// Ends of initcalls without a start.
    pub strays: u64,
    /// The first program of process 1, and its start.
    pub init: Option<(String, u64)>,
    /// The mark that ended the boot, and its time.
    pub mark: Option<(String, u64)>,
    /// Number of vCPUs; 0 if the host was not recorded.
    pub vcpus: usize,
    /// Exits of its vCPUs in the whole recording.
    pub exits: Option<u64>,
    /// Unreadable pages of its own recording.
    pub damaged: u64,
    /// Cost of one event in the guest; `None` if it was not measured. Recordings lack it, so the caller sets it.
    pub event_cost: Option<EventCost>,
    /// Whether times are nanoseconds.
    pub nanoseconds: bool,
}

impl BootedMachine {
    /// Whether its own recording has initcalls or phases.
    pub(super) fn is_known(&self) -> bool {
        let is_step = |phase: &Phase| matches!(phase.kind, PhaseKind::Level | PhaseKind::Shutdown);
        !self.initcalls.is_empty() || self.phases.iter().any(is_step)
    }
}
