//! The CPU mode of a sample, in the kernel's terms, and the markers in call chains.

/// The CPU mode in a record's `misc` (`PERF_RECORD_MISC_CPUMODE_MASK`), as reported by the kernel.
///
/// It is not always correct: arm64 reports guest for everything while a vCPU is loaded, including
/// host tracepoints, and x86 can report a guest's kernel as its user space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CpuMode {
    /// Not reported (0), or an undefined number (6, 7).
    #[default]
    Unknown,
    /// The host's kernel (1).
    HostKernel,
    /// User space of the host (2).
    HostUser,
    /// A hypervisor below the recording kernel (3).
    Hypervisor,
    /// A guest's kernel (4).
    GuestKernel,
    /// User space of a guest (5).
    GuestUser,
}

impl CpuMode {
    /// All modes in the order of reports.
    pub const ALL: [Self; 6] = [
        Self::HostKernel,
        Self::HostUser,
        Self::GuestKernel,
        Self::GuestUser,
        Self::Hypervisor,
        Self::Unknown,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HostKernel => "host_kernel",
            Self::HostUser => "host_user",
            Self::GuestKernel => "guest_kernel",
            Self::GuestUser => "guest_user",
            Self::Hypervisor => "hypervisor",
            Self::Unknown => "unknown",
        }
    }

    /// The mode in a record's `misc`.
    #[must_use]
    pub const fn from_misc(misc: u16) -> Self {
        match misc & 7 {
            1 => Self::HostKernel,
            2 => Self::HostUser,
            3 => Self::Hypervisor,
            4 => Self::GuestKernel,
            5 => Self::GuestUser,
            _ => Self::Unknown,
        }
    }

    /// Whether it is a guest's mode.
    #[must_use]
    pub const fn is_guest(self) -> bool {
        matches!(self, Self::GuestKernel | Self::GuestUser)
    }
}

/// Markers in a call chain, which give the context of the addresses that follow (`enum
/// perf_callchain_context`).
pub mod marker {
    /// A hypervisor.
    pub const HV: u64 = (-32_i64) as u64;
    /// The kernel.
    pub const KERNEL: u64 = (-128_i64) as u64;
    /// User space.
    pub const USER: u64 = (-512_i64) as u64;
    /// User space; a record of deferred call chains has the addresses.
    pub const USER_DEFERRED: u64 = (-640_i64) as u64;
    /// A guest.
    pub const GUEST: u64 = (-2048_i64) as u64;
    /// A guest's kernel.
    pub const GUEST_KERNEL: u64 = (-2176_i64) as u64;
    /// A guest's user space.
    pub const GUEST_USER: u64 = (-2560_i64) as u64;
    /// The lowest number that is a marker (`PERF_CONTEXT_MAX`).
    pub const LOWEST: u64 = (-4095_i64) as u64;
}

/// Whether an entry of a call chain is a marker, known or unknown, instead of an address.
#[must_use]
pub const fn ip_is_marker(entry: u64) -> bool {
    entry >= marker::LOWEST
}
