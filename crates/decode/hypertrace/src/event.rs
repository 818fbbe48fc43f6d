//! What a guest reports.

use std::sync::Arc;

/// A task as `sched_switch` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// Thread id in the guest.
    pub pid: u32,
    /// The kernel's priority: less is more urgent; -1 for deadline tasks.
    pub prio: i16,
    comm: [u8; 16],
}

impl Task {
    /// A task with a name, of which 15 bytes are kept.
    #[must_use]
    pub fn new(pid: u32, prio: i16, name: &[u8]) -> Self {
        let mut comm = [0; 16];
        for (to, from) in comm.iter_mut().take(15).zip(name) {
            *to = *from;
        }
        Self { pid, prio, comm }
    }

    /// Its name, up to 15 bytes.
    #[must_use]
    pub fn comm(&self) -> &[u8] {
        self.comm.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

/// Why a task is left, as `prev_state` of `sched_switch` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskState {
    /// 0: it could go on; else the place of the state's bit, from 1.
    pub(crate) index: u8,
    /// The place of the bit for preemption, in the guest's kernel.
    pub(crate) preempted_bit: u8,
}

/// The bit position that means "preempted".
pub(crate) const PREEMPTED: u8 = 15;

impl TaskState {
    /// Whether it was made to go.
    #[must_use]
    pub fn is_preempted(self) -> bool {
        self.index == PREEMPTED
    }

    /// The number that the guest's own `sched_switch` has in `prev_state`.
    #[must_use]
    pub fn raw(self) -> u32 {
        let bit = match self.index {
            0 => return 0,
            PREEMPTED => u32::from(self.preempted_bit),
            index => u32::from(index).saturating_sub(1),
        };
        1_u32.checked_shl(bit).unwrap_or(0)
    }

    /// The state's letter, as the kernel prints it: `R`, `R+`, `S`, …
    #[must_use]
    pub fn letter(self) -> &'static str {
        const LETTERS: [&str; 9] = ["R", "S", "D", "T", "t", "X", "Z", "P", "I"];
        if self.is_preempted() {
            return "R+";
        }
        LETTERS.get(usize::from(self.index)).copied().unwrap_or("?")
    }
}

/// Which of the three events of a wake-up it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// `sched_waking`: on the waker's CPU.
    Waking,
    /// `sched_wakeup`: on the CPU that it is to run on.
    Wakeup,
    /// `sched_wakeup_new`: of a new task.
    New,
}

/// An interrupt's handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// It begins; with the name of the handler that requested the interrupt, up to 15 bytes.
    Entry([u8; 16]),
    /// It ends.
    Exit {
        /// Whether the interrupt was for it.
        handled: bool,
    },
}

/// A system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syscall {
    /// It begins.
    Enter,
    /// It ends, with this result.
    Exit(i64),
}

/// A function of the guest's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// It is called.
    Entry,
    /// It returns.
    Exit,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The CPU goes from one task to another: from [`Event::running`] to `next`.
    Switch {
        /// Why.
        state: TaskState,
        /// The thread that runs from here on; `None` if that was lost.
        next: Option<Task>,
    },
    /// A task is woken.
    Wake {
        /// Which event.
        wake: Wake,
        /// The thread; `None` if that was lost.
        task: Option<Task>,
        /// The CPU that it is to run on.
        target_cpu: u16,
    },
    /// An interrupt's handler.
    Interrupt {
        /// The interrupt's number.
        irq: u32,
        /// Beginning or end.
        what: Interrupt,
    },
    /// A system call.
    Syscall {
        /// Its number, as the kernel shows it: a return from a signal's handler has -1.
        number: i32,
        /// Beginning or end.
        what: Syscall,
    },
    /// A function of the kernel.
    Call {
        /// Its address in the guest; `None` where that was lost.
        address: Option<u64>,
        /// Its name, as far as the guest has sent it.
        name: Option<Arc<str>>,
        /// Beginning or end.
        what: Call,
    },
}

/// An event of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, on the clock of the host's recording.
    pub stamp_ns: u64,
    /// The stamp is the hypercall's own, or that less its age: how long before that it was isn't known.
    pub at_latest: bool,
    /// How much later the host stamped the hypercall than those around it, by the guest's counter: `stamp_ns` has
    /// this taken off. `None`: not known.
    pub late_ns: Option<u64>,
    /// The guest's CPU.
    pub cpu: u16,
    /// Events of this CPU are missing before it, or may be: its stream begins with it.
    pub after_loss: bool,
    /// The task that ran; `None` where that was lost.
    pub running: Option<Task>,
    /// What happened.
    pub kind: Kind,
}

/// What of a vCPU's stream is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Frames that the host didn't record, counted by their numbers.
    pub frames_lost: u64,
    /// Frames before the first that says how to read them: the recording began in between.
    pub frames_early: u64,
    /// Frames that make no sense.
    pub frames_damaged: u64,
    /// Frames of streams in a version that this program doesn't know.
    pub frames_unknown: u64,
    /// Frames with more words than the host recorded.
    pub frames_cut: u64,
    /// Events that came while another one was packed, or in an NMI, as the guest counted them.
    pub events_dropped: u64,
    /// Events that the guest sent and that are in no frame, counted where streams begin and end in
    /// the recording.
    pub events_missing: u64,
    /// Events whose stamp is only the latest possible.
    pub stamps_at_latest: u64,
}

impl Losses {
    /// Adds another stream's.
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
