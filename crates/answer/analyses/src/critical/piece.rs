//! An interval of a wait, with the thread and state that it is attributed to.

use timeline::trace_events::ThreadNames;

use super::cause::InterruptKind;
use crate::path::Thread;

/// What a thread did, or waited for, in a part of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CriticalState {
    /// A thread ran on a CPU of its machine.
    Running,
    /// A guest ran; its activity is not recorded.
    Guest,
    /// A guest's idle loop ran.
    GuestIdle,
    /// The host's kernel handled an exit.
    ExitKernel,
    /// The VMM handled an exit.
    ExitUser,
    /// An interrupt was handled.
    Interrupt,
    /// A thread waited for a CPU after its wake-up.
    Waiting,
    /// A thread was switched out while it could have continued.
    Preempted,
    /// A thread slept, and no event shows the reason.
    Blocked,
    /// The activity of a thread is unknown.
    Unknown,
}

impl CriticalState {
    /// Name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Guest => "guest",
            Self::GuestIdle => "guest_idle",
            Self::ExitKernel => "exit_kernel",
            Self::ExitUser => "exit_user",
            Self::Interrupt => "interrupt",
            Self::Waiting => "waiting",
            Self::Preempted => "preempted",
            Self::Blocked => "blocked",
            Self::Unknown => "unknown",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Who {
    Thread(Thread),
    /// A vCPU in its guest.
    Vcpu(usize),
    /// An interrupt of the machine with this recording.
    Interrupt(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Why {
    Nothing,
    /// An exit of a vCPU in this recording.
    Exit {
        recording: u16,
        isa: u8,
        code: u64,
    },
    /// The machine's thread on the CPU; 0 if the CPU was idle.
    Behind(u32),
    Interrupt(InterruptKind),
    End(End),
}

/// Why a walk ends, so that the rest of a part is unexplained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum End {
    /// The thread runs again without a wake-up event.
    NoWake,
    /// It slept, and was woken only after the time of the walk.
    AsleepMeanwhile,
    /// It slept until the end of the recording.
    StillAsleep,
    /// Events were lost.
    Lost,
    /// The thread has no earlier event.
    NotSeen,
    /// The history before this time was discarded.
    Forgotten,
    /// The chain of waiting threads is too long.
    Depth,
}

impl End {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::NoWake => "no wake-up event",
            Self::AsleepMeanwhile => "asleep meanwhile",
            Self::StillAsleep => "not woken before the recording ended",
            Self::Lost => "events lost",
            Self::NotSeen => "no earlier event",
            Self::Forgotten => "history discarded",
            Self::Depth => "too deep",
        }
    }
}

/// What an interval was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Spent {
    pub(super) who: Who,
    pub(super) state: CriticalState,
    pub(super) why: Why,
}

impl Spent {
    /// Time since which the threads of this part have had their names at `now_ns`.
    pub(super) fn named_since_ns(&self, names: &[ThreadNames], now_ns: u64) -> u64 {
        let since_ns = |(recording, thread): Thread| {
            names.get(usize::from(recording)).map_or(0, |names| names.since_ns(thread, now_ns))
        };
        let Who::Thread(thread) = self.who else { return 0 };
        match self.why {
            Why::Behind(other) => since_ns(thread).max(since_ns((thread.0, other))),
            _ => since_ns(thread),
        }
    }
}

/// How an interval counts for the analysed thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Counts {
    Ran,
    Waited,
    /// Its activity is unknown.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    pub(super) counts: Counts,
    pub(super) spent: Spent,
}

/// Receives the pieces of an interval, the last one first, without gaps.
pub(super) trait PieceSink {
    fn piece(&mut self, piece: &Piece);
}
