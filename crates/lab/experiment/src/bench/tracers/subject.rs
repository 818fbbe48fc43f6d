//! What is traced: programs that do little but make events.

use serde::{Serialize, Serializer};

/// What is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// `getpriority` again and again: two events each, as it begins and as it ends.
    Syscalls,
    /// Two threads on one processor that pass a byte to each other: an event for each switch.
    Switches,
}

/// The number of `getpriority` on x86-64, which nobody else calls meanwhile (shells ask for their parents).
pub(crate) const GETPRIORITY: i32 = 140;

impl Subject {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Syscalls, Self::Switches];

    /// Its name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Syscalls => "syscalls",
            Self::Switches => "switches",
        }
    }

    /// Rounds that take about as long as this many system calls.
    pub(crate) const fn rounds(self, syscalls: u64) -> u64 {
        match self {
            Self::Syscalls => syscalls,
            Self::Switches => syscalls / 2,
        }
    }

    /// Events of a round, nearly.
    pub(crate) const fn events_of_round(self) -> u64 {
        2
    }

    /// What the guest's module has to trace.
    pub(crate) const fn probes(self) -> &'static str {
        match self {
            Self::Syscalls => "syscalls",
            Self::Switches => "sched_switch",
        }
    }

    /// The same as events of the kernel.
    pub(crate) const fn events(self) -> &'static [&'static str] {
        match self {
            Self::Syscalls => &["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"],
            Self::Switches => &["sched:sched_switch"],
        }
    }

    /// What lines of the subject's own events have in them, as the kernel prints events.
    pub(crate) fn pattern(self) -> String {
        match self {
            Self::Syscalls => format!("NR {GETPRIORITY} "),
            Self::Switches => format!("prev_comm={}", labguest::wire::LOAD_THREAD),
        }
    }
}

impl Subject {
    /// The same of lines of JSON.
    pub(crate) fn json_pattern(self) -> String {
        match self {
            Self::Syscalls => format!("\"id\":{GETPRIORITY}[,}}]"),
            Self::Switches => format!("\"prev_comm\":\"{}", labguest::wire::LOAD_THREAD),
        }
    }
}

impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
