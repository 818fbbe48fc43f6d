//! Events of a guest.

use std::sync::Arc;

/// A task as in `sched_switch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// Thread id in the guest.
    pub pid: u32,
    /// The kernel's priority: lower is more urgent; -1 for deadline tasks.
    pub prio: i16,
    comm: [u8; 16],
}

impl Task {
    /// A task with a name, which is truncated to 15 bytes.
    #[must_use]
    pub fn new(pid: u32, prio: i16, name: &[u8]) -> Self {
        let mut comm = [0; 16];
        for (to, from) in comm.iter_mut().take(15).zip(name) {
            *to = *from;
        }
        Self { pid, prio, comm }
    }

    /// Its name, at most 15 bytes.
    #[must_use]
    pub fn comm(&self) -> &[u8] {
        self.comm.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

/// The state of a task that is switched out, as in `prev_state` of `sched_switch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskState {
    /// 0: runnable; otherwise the number of the state's bit, counted from 1.
    pub(crate) index: u8,
    /// Bit for preemption in the guest's kernel.
    pub(crate) preempted_bit: u8,
}

/// The bit position that means "preempted".
pub(crate) const PREEMPTED: u8 = 15;

impl TaskState {
    /// Whether it was preempted.
    #[must_use]
    pub fn is_preempted(self) -> bool {
        self.index == PREEMPTED
    }

    /// The value of `prev_state` in the guest's own `sched_switch`.
    #[must_use]
    pub fn raw(self) -> u32 {
        let bit = match self.index {
            0 => return 0,
            PREEMPTED => u32::from(self.preempted_bit),
            index => u32::from(index).saturating_sub(1),
        };
        1_u32.checked_shl(bit).unwrap_or(0)
    }

    /// The state's letter in the kernel's output: `R`, `R+`, `S`, …
    #[must_use]
    pub fn letter(self) -> &'static str {
        const LETTERS: [&str; 9] = ["R", "S", "D", "T", "t", "X", "Z", "P", "I"];
        if self.is_preempted() {
            return "R+";
        }
        LETTERS.get(usize::from(self.index)).copied().unwrap_or("?")
    }
}

/// The three events of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// `sched_waking`: on the waker's CPU.
    Waking,
    /// `sched_wakeup`: on the target CPU.
    Wakeup,
    /// `sched_wakeup_new`: for a new task.
    New,
}

/// An interrupt handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// Start, with the name of the requesting handler, at most 15 bytes.
    Entry([u8; 16]),
    /// End.
    Exit {
        /// Whether the handler handled the interrupt.
        handled: bool,
    },
}

/// A system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syscall {
    /// Entry.
    Enter,
    /// Return with this result.
    Exit(i64),
}

/// A call of a function in the guest's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Entry.
    Entry,
    /// Return.
    Exit,
}

/// The type of event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A switch from [`Event::running`] to `next`.
    Switch {
        /// The state of the previous task.
        state: TaskState,
        /// The next task; `None` if it was lost.
        next: Option<Task>,
    },
    /// A wake-up of a task.
    Wake {
        /// Which event.
        wake: Wake,
        /// The woken task; `None` if it was lost.
        task: Option<Task>,
        /// The target CPU.
        target_cpu: u16,
    },
    /// An interrupt handler.
    Interrupt {
        /// The interrupt's number.
        irq: u32,
        /// Start or end.
        what: Interrupt,
    },
    /// A system call.
    Syscall {
        /// Its number in the kernel: a return from a signal handler has -1.
        number: i32,
        /// Entry or return.
        what: Syscall,
    },
    /// A function of the kernel.
    Call {
        /// Its address in the guest; `None` if it was lost.
        address: Option<u64>,
        /// Its name, if the guest has sent it.
        name: Option<Arc<str>>,
        /// Entry or return.
        what: Call,
    },
}

/// An event of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time on the clock of the host's recording.
    pub stamp_ns: u64,
    /// The time stamp is that of the hypercall, minus its age if known: the event happened at an
    /// unknown earlier time.
    pub at_latest: bool,
    /// How much later the host's time stamp of the hypercall was than for neighbouring hypercalls,
    /// according to the guest's counter. It has been subtracted from `stamp_ns`. `None` if unknown.
    pub late_ns: Option<u64>,
    /// The guest's CPU.
    pub cpu: u16,
    /// Events of this CPU before it are or may be missing, as at the start of its stream.
    pub after_loss: bool,
    /// The running task; `None` if it was lost.
    pub running: Option<Task>,
    /// The type of event.
    pub kind: Kind,
}

/// Losses of a vCPU's stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Frames that the host did not record, according to their sequence numbers.
    pub frames_lost: u64,
    /// Frames before the first `Hello`: the recording began later than the stream.
    pub frames_early: u64,
    /// Invalid frames.
    pub frames_damaged: u64,
    /// Frames of streams with an unknown version.
    pub frames_unknown: u64,
    /// Frames with more words than the host recorded.
    pub frames_cut: u64,
    /// Events that occurred in an NMI or while another event was being packed, as counted by the
    /// guest.
    pub events_dropped: u64,
    /// Events that the guest sent but no frame has, counted if the stream's start and end are in
    /// the recording.
    pub events_missing: u64,
    /// Events whose time stamp is an upper bound.
    pub stamps_at_latest: u64,
}

impl Losses {
    /// Adds the losses of another stream.
    pub fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.frames_lost, other.frames_lost),
            (&mut self.frames_early, other.frames_early),
            (&mut self.frames_damaged, other.frames_damaged),
            (&mut self.frames_unknown, other.frames_unknown),
            (&mut self.frames_cut, other.frames_cut),
            (&mut self.events_dropped, other.events_dropped),
            (&mut self.events_missing, other.events_missing),
            (&mut self.stamps_at_latest, other.stamps_at_latest),
        ];
        for (sum, more) in pairs {
            *sum = sum.saturating_add(more);
        }
    }
}
