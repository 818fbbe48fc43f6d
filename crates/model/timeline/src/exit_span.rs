//! An exit with its parts: from `kvm_exit` to the next `kvm_entry` of the same vCPU.

/// The smallest page size of guests.
const PAGE: u64 = 1 << 12;

/// A detail that distinguishes exits with the same reason, from an event between exit and entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Detail {
    /// Number of a model-specific register (`kvm_msr`).
    Msr,
    /// I/O port (`kvm_pio`).
    Port,
    /// Guest physical address (`kvm_page_fault`, `kvm_mmio`, `kvm_guest_fault`).
    Gpa,
    /// Hypercall number (`kvm_hypercall`, `kvm_hvc_arm64`, …).
    Hypercall,
    /// Leaf of a `cpuid` instruction (`kvm_cpuid`).
    CpuidLeaf,
    /// Clean bits of the VMCB at `vmrun`: the groups of fields that level 1 has not changed since
    /// the last `vmrun` (a probe on `enter_svm_guest_mode`).
    VmcbClean,
}

impl Detail {
    /// All details, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Msr, Self::Port, Self::Gpa, Self::Hypercall, Self::CpuidLeaf, Self::VmcbClean];

    /// The detail with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Records the detail from an event of an exit: the first event counts. On Arm, a second event
    /// replaces the faulting page by the exact address in it.
    pub fn note(self, of_exit: &mut Option<(Self, u64)>, value: u64) {
        let first = of_exit.get_or_insert((self, value));
        let is_page = first.1 & (PAGE - 1) == 0 && value & !(PAGE - 1) == first.1;
        if self == Self::Gpa && first.0 == self && is_page {
            first.1 = value;
        }
    }
}

/// The parts of an exit's time. They add up exactly to the exit's duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The thread ran in the kernel; includes all time that no other part has.
    pub kernel_ns: u64,
    /// The thread ran in the VMM, from `kvm_userspace_exit` to its return.
    pub user_ns: u64,
    /// Off CPU, but runnable: preempted, or woken and not yet scheduled.
    pub runnable_ns: u64,
    /// Off CPU and blocked.
    pub blocked_ns: u64,
    /// Halt polling before the thread gives up the CPU.
    pub halt_poll_ns: u64,
}

impl Parts {
    /// The duration of the exit.
    #[must_use]
    pub const fn total_ns(&self) -> u64 {
        self.kernel_ns + self.user_ns + self.runnable_ns + self.blocked_ns + self.halt_poll_ns
    }

    /// Adds another exit's parts, with saturation.
    pub fn add(&mut self, other: &Self) {
        self.kernel_ns = self.kernel_ns.saturating_add(other.kernel_ns);
        self.user_ns = self.user_ns.saturating_add(other.user_ns);
        self.runnable_ns = self.runnable_ns.saturating_add(other.runnable_ns);
        self.blocked_ns = self.blocked_ns.saturating_add(other.blocked_ns);
        self.halt_poll_ns = self.halt_poll_ns.saturating_add(other.halt_poll_ns);
    }
}

/// The part of the system that handled an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Handler {
    /// Only the recorded host's kernel.
    Kernel,
    /// The VMM: the thread went to user space.
    User,
    /// The level-1 guest: the exit of its nested guest was injected into it.
    L1,
}

/// How an exit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The exit has an entry, and so a duration.
    Paired,
    /// No entry followed: the recording or the thread ended, or another exit followed.
    Unpaired,
    /// Events were lost during the exit: the next entry may belong to another exit.
    LostIn,
}

/// An exit of a vCPU, with all recorded facts.
#[derive(Clone, Copy, Debug)]
pub struct ExitSpan {
    /// Time of `kvm_exit`.
    pub start_ns: u64,
    /// Time of the next `kvm_entry`; [`ExitSpan::start_ns`] if there was none.
    pub end_ns: u64,
    /// The raw code: `exit_reason`, `icptcode`, `scause`, or arm64's `ret << 32 | esr_ec`.
    pub code: u64,
    /// The `isa` field of x86 exits (1 VMX, 2 SVM), else 0.
    pub isa: u8,
    /// Guest program counter at the exit; 0 unless details were requested.
    pub guest_pc: u64,
    /// 1: a guest of the recorded machine; 2: a nested guest of any depth.
    pub level: u8,
    /// Whether an entry was seen, and whether it is reliable.
    pub outcome: Outcome,
    /// The part of the system that handled it.
    pub handler: Handler,
    /// The code injected into level 1, when `handler` is [`Handler::L1`].
    pub injected_as: u64,
    /// `kvm_nested_vmenter` was part of the handling: level 2 runs next, unless the nested entry
    /// was cancelled before the hardware entered level 2.
    pub entered_l2: bool,
    /// The thread went to the VMM, and no event marked its return: the user part includes the way
    /// back through the kernel.
    pub user_return_unseen: bool,
    /// The vCPU halted, and the end of its halt polling was not recorded: the kernel part includes
    /// the polling.
    pub poll_unknown: bool,
    /// The parts of the exit's time.
    pub parts: Parts,
    /// Time in the guest before this exit, since the last `kvm_entry`; 0 if that was not seen.
    pub guest_ns: u64,
    /// Host work between the hardware exit and `kvm_exit`, from its first event on.
    pub before_exit_ns: u64,
    /// The detail, if requested and seen.
    pub detail: Option<(Detail, u64)>,
}

impl ExitSpan {
    pub(crate) const fn new(start_ns: u64, code: u64, isa: u8) -> Self {
        Self {
            start_ns,
            end_ns: start_ns,
            code,
            isa,
            guest_pc: 0,
            level: 1,
            outcome: Outcome::Unpaired,
            handler: Handler::Kernel,
            injected_as: 0,
            entered_l2: false,
            user_return_unseen: false,
            poll_unknown: false,
            parts: Parts {
                kernel_ns: 0,
                user_ns: 0,
                runnable_ns: 0,
                blocked_ns: 0,
                halt_poll_ns: 0,
            },
            guest_ns: 0,
            before_exit_ns: 0,
            detail: None,
        }
    }

    /// Time from exit to entry.
    #[must_use]
    pub const fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}
