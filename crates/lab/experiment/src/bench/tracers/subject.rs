//! Subjects of tracers: programs that do little but cause events.

use serde::{Serialize, Serializer};

/// A subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// Repeated `getpriority`: two events each, at entry and exit.
    Syscalls,
    /// Two threads on one CPU that pass a byte to each other: an event for each switch.
    Switches,
}

/// The number of `getpriority` on x86-64, which no other program here calls (shells call getppid).
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

    /// Number of rounds that take about as long as this many system calls.
    pub(crate) const fn rounds(self, syscalls: u64) -> u64 {
        match self {
            Self::Syscalls => syscalls,
            Self::Switches => syscalls / 2,
        }
    }

    /// Approximate number of events per round.
    pub(crate) const fn events_of_round(self) -> u64 {
        2
    }

    /// The probes of the guest's module.
    pub(crate) const fn probes(self) -> &'static str {
        match self {
            Self::Syscalls => "syscalls",
            Self::Switches => "sched_switch",
        }
    }

    /// The kernel's events.
    pub(crate) const fn events(self) -> &'static [&'static str] {
        match self {
            Self::Syscalls => &["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"],
            Self::Switches => &["sched:sched_switch"],
        }
    }

    /// A pattern that matches lines of the subject's own events, as the kernel prints them.
    pub(crate) fn pattern(self) -> String {
        match self {
            Self::Syscalls => format!("NR {GETPRIORITY} "),
            Self::Switches => format!("prev_comm={}", labguest::wire::LOAD_THREAD),
        }
    }
}

impl Subject {
    /// A pattern that matches the subject's own events in lines of JSON.
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
