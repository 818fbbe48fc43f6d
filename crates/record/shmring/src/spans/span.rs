//! A span: an interval in which a vCPU was not in its guest, in three words.

/// The activity of a vCPU's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Activity {
    /// It handled an exit in the host's kernel.
    Kernel = 1,
    /// It handled an exit in the VMM.
    User = 2,
    /// It was preempted.
    Preempted = 3,
    /// Run-queue wait after a wake-up.
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

    /// The name in the output.
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

    /// Whether it counts as steal in the guest's kernel.
    #[must_use]
    pub const fn is_stolen(self) -> bool {
        matches!(self, Self::Preempted | Self::Waiting)
    }

    fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|activity| *activity as u8 == number)
    }
}

/// What ran instead of a preempted vCPU. A guest never learns more about others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum By {
    /// Unknown, or nothing ran.
    #[default]
    Unknown = 0,
    /// Another vCPU of the same VM.
    OwnVcpu = 1,
    /// Another thread of its VMM.
    OwnVmm = 2,
    /// Anything else.
    Others = 3,
}

impl By {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Unknown, Self::OwnVcpu, Self::OwnVmm, Self::Others];

    /// The name in the output.
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
    /// Its begin, on the guest's TSC.
    pub start_tsc: u64,
    /// Its length, in ticks of the guest's TSC.
    pub ticks: u64,
    /// The activity of the vCPU's thread.
    pub activity: Activity,
    /// What ran instead, if it was preempted.
    pub by: By,
    /// Whether an exit begins with it. Spans that follow without a gap belong to the same exit.
    pub begins_exit: bool,
    /// The raw code of its exit, if it belongs to one.
    pub code: Option<u32>,
    /// The `isa` field of x86 exits (1 VMX, 2 SVM), else 0.
    pub isa: u8,
    /// 1: an exit of the guest; 2: an exit of a nested guest.
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

    /// The word with everything but the times.
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

    /// The span in three words, if they are valid.
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
