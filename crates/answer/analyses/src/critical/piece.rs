//! An interval of a wait, and what it was spent on.

use timeline::trace_events::ThreadNames;

use super::context::InterruptKind;
use crate::path::Thread;

/// What a thread did, or what it waited for, in a part of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CriticalState {
    /// A thread ran on a CPU of its machine.
    Running,
    /// A guest ran; what it did is not recorded.
    Guest,
    /// A guest's idle loop ran.
    GuestIdle,
    /// The host's kernel handled an exit.
    ExitKernel,
    /// The VMM did.
    ExitUser,
    /// An interrupt was handled.
    Interrupt,
    /// A thread was woken, and waited for a CPU.
    Waiting,
    /// A thread was taken off its CPU though it could have run on.
    Preempted,
    /// A thread slept; why, no event of another thread says.
    Blocked,
    /// What a thread did is not known.
    Unknown,
}

impl CriticalState {
    /// Its name in documents.
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
    /// An interrupt of that machine.
    Interrupt(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Why {
    Nothing,
    /// An exit of a vCPU of this recording.
    Exit {
        recording: u16,
        isa: u8,
        code: u64,
    },
    /// This thread of the machine had the CPU; 0: it was idle.
    Behind(u32),
    Interrupt(InterruptKind),
    End(End),
}

/// Why nothing more is known of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum End {
    /// The thread runs again, and no event shows its waker.
    NoWake,
    /// It slept, and was woken only later than it was waited for.
    AsleepMeanwhile,
    /// It still slept when the recording ended.
    StillAsleep,
    /// Events were lost.
    Lost,
    /// Nothing was seen of the thread yet.
    NotSeen,
    /// Too long ago: the memory for what happened was full.
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

/// What an interval of time was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Spent {
    pub(super) who: Who,
    pub(super) state: CriticalState,
    pub(super) why: Why,
}

impl Spent {
    /// Since when the threads of it had the names that they had at a moment.
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

/// How an interval of time counts for the thread whose time it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Counts {
    Ran,
    Waited,
    /// What it did is not known.
    Unknown,
}

/// An interval of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    pub(super) counts: Counts,
    pub(super) spent: Spent,
}

/// Takes the pieces of an interval of time, the last one first, without gaps between them.
pub(super) trait PieceSink {
    fn piece(&mut self, piece: &Piece);
}
