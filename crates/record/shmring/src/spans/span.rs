//! One span: an interval in which a vCPU was not in its guest, in two words.

/// What a vCPU's thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Activity {
    /// It handled an exit in the host's kernel.
    Kernel = 1,
    /// It handled an exit in the VMM.
    User = 2,
    /// It was taken off its CPU, though it could have run on.
    Preempted = 3,
    /// It had been woken, and was in run-queue wait.
    Waiting = 4,
    /// It slept: the guest had halted, or the VMM waited for something.
    Asleep = 5,
    /// Unknown, because the host lost events.
    Unknown = 6,
}

impl Activity {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Kernel, Self::User, Self::Preempted, Self::Waiting, Self::Asleep, Self::Unknown];

    /// The name that scripts see.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::User => "user",
            Self::Preempted => "preempted",
            Self::Waiting => "waiting",
            Self::Asleep => "asleep",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the vCPU wanted to run and did not: what a guest's kernel calls stolen.
    #[must_use]
    pub const fn is_stolen(self) -> bool {
        matches!(self, Self::Preempted | Self::Waiting)
    }

    fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|activity| *activity as u8 == number)
    }
}

/// Who ran in place of a vCPU that was taken off its CPU. A guest never learns more about others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum By {
    /// It is not known, or nobody did.
    #[default]
    Unknown = 0,
    /// Another vCPU of the same VM.
    OwnVcpu = 1,
    /// Another thread of its VMM.
    OwnVmm = 2,
    /// Somebody else.
    Others = 3,
}

impl By {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Unknown, Self::OwnVcpu, Self::OwnVmm, Self::Others];

    /// The name that scripts see.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::OwnVcpu => "own_vcpu",
            Self::OwnVmm => "own_vmm",
            Self::Others => "others",
        }
    }
}

/// An interval in which a vCPU did not run its guest. Between two spans it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its beginning, on the guest's TSC.
    pub start_tsc: u64,
    /// Its length, in ticks of the guest's TSC.
    pub ticks: u64,
    /// What the vCPU's thread did.
    pub activity: Activity,
    /// Who ran in its place, while it was preempted.
    pub by: By,
    /// An exit begins with it. Those after it, without a gap, belong to that exit.
    pub begins_exit: bool,
    /// The raw code of the exit that it belongs to, if it belongs to one.
    pub code: Option<u32>,
    /// The `isa` field of x86 exits (1 VMX, 2 SVM), else 0.
    pub isa: u8,
    /// 1: the guest has exited; 2: a guest in it has.
    pub level: u8,
}

const BEGINS_EXIT: u64 = 1;
const IN_EXIT: u64 = 2;

impl Span {
    /// Its end, on the guest's TSC.
    #[must_use]
    pub fn end_tsc(&self) -> u64 {
        self.start_tsc.saturating_add(self.ticks)
    }

    /// The word that says all but the times.
    pub(super) fn word(&self) -> u64 {
        let flags = if self.begins_exit { BEGINS_EXIT } else { 0 }
            | if self.code.is_some() { IN_EXIT } else { 0 };
        u64::from(self.code.unwrap_or(0))
            | u64::from(self.activity as u8) << 32
            | flags << 40
            | u64::from(self.level & 0xf) << 48
            | u64::from(self.isa & 0xf) << 52
            | u64::from(self.by as u8) << 56
    }

    /// The span that three words say, if they say one.
    pub(super) fn of_words(start_tsc: u64, ticks: u64, word: u64) -> Option<Self> {
        start_tsc.checked_add(ticks)?;
        let byte = |shift: u32| (word >> shift) as u8;
        let flags = u64::from(byte(40));
        let by = By::ALL.into_iter().find(|by| *by as u8 == byte(56))?;
        Some(Self {
            start_tsc,
            ticks,
            activity: Activity::of_number(byte(32))?,
            by,
            begins_exit: flags & BEGINS_EXIT != 0,
            code: (flags & IN_EXIT != 0).then_some(word as u32),
            isa: byte(52) & 0xf,
            level: byte(48) & 0xf,
        })
    }
}
