//! The CPU mode of a sample, in the kernel's terms, and the markers in call chains.

/// `PERF_RECORD_MISC_CPUMODE_MASK` of a record's `misc`: what ran, as the kernel says.
///
/// It is not always right: arm64 says guest of everything that happens while a vCPU is loaded, tracepoints
/// of the host among them, and x86 may take a guest's kernel for its user space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CpuMode {
    /// The kernel says nothing (0), or a number that means nothing (6, 7).
    #[default]
    Unknown,
    /// The host's kernel (1).
    HostKernel,
    /// A program of the host (2).
    HostUser,
    /// A hypervisor below the kernel that records (3).
    Hypervisor,
    /// A guest's kernel (4).
    GuestKernel,
    /// A program of a guest (5).
    GuestUser,
}

impl CpuMode {
    /// All of them, in the order of reports.
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

    /// That of a record's `misc`.
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

    /// Whether it is of a guest.
    #[must_use]
    pub const fn is_guest(self) -> bool {
        matches!(self, Self::GuestKernel | Self::GuestUser)
    }
}

/// Markers between the addresses of a call chain: whose the addresses that follow are
/// (`enum perf_callchain_context`).
pub mod marker {
    /// Of a hypervisor.
    pub const HV: u64 = (-32_i64) as u64;
    /// Of the kernel.
    pub const KERNEL: u64 = (-128_i64) as u64;
    /// Of a program.
    pub const USER: u64 = (-512_i64) as u64;
    /// Of a program, to be given later by a record of deferred call chains.
    pub const USER_DEFERRED: u64 = (-640_i64) as u64;
    /// Of a guest.
    pub const GUEST: u64 = (-2048_i64) as u64;
    /// Of a guest's kernel.
    pub const GUEST_KERNEL: u64 = (-2176_i64) as u64;
    /// Of a program of a guest.
    pub const GUEST_USER: u64 = (-2560_i64) as u64;
    /// The lowest number that is a marker (`PERF_CONTEXT_MAX`).
    pub const LOWEST: u64 = (-4095_i64) as u64;
}

/// Whether an entry of a call chain is a marker, known or not, and no address.
#[must_use]
pub const fn ip_is_marker(entry: u64) -> bool {
    entry >= marker::LOWEST
}
