//! Numbers of system calls and of KVM's `ioctl` requests, with their names and kinds.

use timeline::arch::Isa;

use CallKind::{Futex, HandlerEnds, Io, Other, Poll, Signals};

/// Purpose of a system call in a VMM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum CallKind {
    /// Waits for files, including timers and signals that are files.
    Poll,
    /// Moves data.
    Io,
    /// Waits for another thread, or wakes it.
    Futex,
    /// Changes or reads signal masks.
    Signals,
    /// Returns from a signal handler.
    HandlerEnds,
    /// `ioctl` of [`KVM_RUN`].
    Run,
    /// Anything else.
    Other,
}

/// System call numbers of an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallNumbers {
    /// `arch/x86/entry/syscalls/syscall_64.tbl`.
    X86,
    /// `include/uapi/asm-generic/unistd.h`, which newer architectures use.
    Generic,
    /// Other architectures: calls have numbers, but no names.
    Unknown,
}

impl CallNumbers {
    /// Numbers for a machine whose exits have this instruction set.
    pub(super) fn for_isa(isa: Isa) -> Self {
        match isa {
            Isa::Vmx | Isa::Svm => Self::X86,
            Isa::Arm64 | Isa::Riscv | Isa::Loongarch => Self::Generic,
            Isa::S390 | Isa::Powerpc | Isa::Text | Isa::Unknown => Self::Unknown,
        }
    }

    fn find(self, number: u32) -> Option<&'static Call> {
        let number = Some(number).filter(|number| *number != NONE)?;
        CALLS.iter().find(|(_, x86, generic, _)| match self {
            Self::X86 => *x86 == number,
            Self::Generic => *generic == number,
            Self::Unknown => false,
        })
    }

    /// Kind of a call with these first arguments.
    pub(super) fn kind(self, number: u32, arguments: [u64; 3]) -> CallKind {
        match self.find(number) {
            Some(("ioctl", ..)) if arguments[1] & u64::from(u32::MAX) == KVM_RUN => CallKind::Run,
            // On architectures with unknown numbers, this argument value is unique to KVM_RUN.
            None if self == Self::Unknown && arguments[1] == KVM_RUN => CallKind::Run,
            Some((.., kind)) => *kind,
            None => Other,
        }
    }

    /// Distinguishes calls with the same number: the request of an `ioctl`, the length of a write of 8 bytes.
    pub(super) fn asks(self, number: u32, arguments: [u64; 3]) -> u32 {
        match self.find(number) {
            Some(("ioctl", ..)) => arguments[1] as u32,
            Some(("write", ..)) if arguments[2] == 8 => 8,
            _ => 0,
        }
    }

    /// Display name of a call.
    pub(super) fn name(self, number: u32, asks: u32) -> String {
        let Some((name, ..)) = self.find(number) else { return format!("system call {number}") };
        match (*name, asks) {
            ("ioctl", request) => {
                match KVM_REQUESTS.iter().find(|(kvm_request, _)| *kvm_request == request & 0xffff)
                {
                    Some((_, kvm)) => format!("ioctl {kvm}"),
                    None => format!("ioctl {request:#x}"),
                }
            }
            // Writes to an eventfd have 8 bytes; no event shows whether the file is an eventfd.
            ("write", 8) => "write 8 bytes".to_owned(),
            (name, _) => name.to_owned(),
        }
    }
}

/// The `ioctl` that enters a guest (`include/uapi/linux/kvm.h`).
const KVM_RUN: u64 = 0xae80;

/// KVM requests that VMMs make while they handle exits, by `_IOC_TYPE` and `_IOC_NR`; only numbers that no other
/// request shares.
const KVM_REQUESTS: [(u32, &str); 17] = [
    (0xae80, "KVM_RUN"),
    (0xae46, "KVM_SET_USER_MEMORY_REGION"),
    (0xae42, "KVM_GET_DIRTY_LOG"),
    (0xae61, "KVM_IRQ_LINE"),
    (0xae67, "KVM_IRQ_LINE_STATUS"),
    (0xae6a, "KVM_SET_GSI_ROUTING"),
    (0xae76, "KVM_IRQFD"),
    (0xae79, "KVM_IOEVENTFD"),
    (0xae81, "KVM_GET_REGS"),
    (0xae82, "KVM_SET_REGS"),
    (0xae83, "KVM_GET_SREGS"),
    (0xae84, "KVM_SET_SREGS"),
    (0xae86, "KVM_INTERRUPT"),
    (0xae88, "KVM_GET_MSRS"),
    (0xae89, "KVM_SET_MSRS"),
    (0xaea5, "KVM_SIGNAL_MSI"),
    (0xae9a, "KVM_NMI"),
];

/// The architecture has no call with that name.
const NONE: u32 = u32::MAX;

/// Name, number on x86-64, generic number, kind.
type Call = (&'static str, u32, u32, CallKind);

/// System calls of VMMs.
const CALLS: &[Call] = &[
    ("read", 0, 63, Io),
    ("write", 1, 64, Io),
    ("readv", 19, 65, Io),
    ("writev", 20, 66, Io),
    ("pread64", 17, 67, Io),
    ("pwrite64", 18, 68, Io),
    ("preadv", 295, 69, Io),
    ("pwritev", 296, 70, Io),
    ("preadv2", 327, 286, Io),
    ("pwritev2", 328, 287, Io),
    ("sendto", 44, 206, Io),
    ("recvfrom", 45, 207, Io),
    ("sendmsg", 46, 211, Io),
    ("recvmsg", 47, 212, Io),
    ("sendmmsg", 307, 269, Io),
    ("recvmmsg", 299, 243, Io),
    ("io_submit", 209, 2, Io),
    ("io_getevents", 208, 4, Poll),
    ("io_pgetevents", 333, 292, Poll),
    ("io_uring_enter", 426, 426, Io),
    ("fsync", 74, 82, Io),
    ("fdatasync", 75, 83, Io),
    ("fallocate", 285, 47, Io),
    ("sync_file_range", 277, 84, Io),
    ("splice", 275, 76, Io),
    ("vmsplice", 278, 75, Io),
    ("sendfile", 40, 71, Io),
    ("poll", 7, NONE, Poll),
    ("ppoll", 271, 73, Poll),
    ("select", 23, NONE, Poll),
    ("pselect6", 270, 72, Poll),
    ("epoll_wait", 232, NONE, Poll),
    ("epoll_pwait", 281, 22, Poll),
    ("epoll_pwait2", 441, 441, Poll),
    ("epoll_ctl", 233, 21, Other),
    ("futex", 202, 98, Futex),
    ("futex_waitv", 449, 449, Futex),
    ("rt_sigaction", 13, 134, Signals),
    ("rt_sigprocmask", 14, 135, Signals),
    ("rt_sigpending", 127, 136, Signals),
    ("rt_sigtimedwait", 128, 137, Signals),
    ("rt_sigqueueinfo", 129, 138, Signals),
    ("rt_sigsuspend", 130, 133, Signals),
    ("rt_sigreturn", 15, 139, HandlerEnds),
    ("sigaltstack", 131, 132, Signals),
    ("signalfd4", 289, 74, Other),
    ("ioctl", 16, 29, Other),
    ("lseek", 8, 62, Other),
    ("close", 3, 57, Other),
    ("openat", 257, 56, Other),
    ("fstat", 5, 80, Other),
    ("mmap", 9, 222, Other),
    ("munmap", 11, 215, Other),
    ("mprotect", 10, 226, Other),
    ("mremap", 25, 216, Other),
    ("madvise", 28, 233, Other),
    ("brk", 12, 214, Other),
    ("membarrier", 324, 283, Other),
    ("nanosleep", 35, 101, Other),
    ("clock_nanosleep", 230, 115, Other),
    ("clock_gettime", 228, 113, Other),
    ("timerfd_settime", 286, 86, Other),
    ("timer_create", 222, 107, Other),
    ("timer_settime", 223, 110, Other),
    ("timer_delete", 226, 111, Other),
    ("sched_yield", 24, 124, Other),
    ("getpid", 39, 172, Other),
    ("gettid", 186, 178, Other),
    ("kill", 62, 129, Other),
    ("tkill", 200, 130, Other),
    ("tgkill", 234, 131, Other),
    ("clone", 56, 220, Other),
    ("clone3", 435, 435, Other),
    ("exit", 60, 93, Other),
    ("socket", 41, 198, Other),
    ("connect", 42, 203, Other),
    ("accept", 43, 202, Other),
    ("accept4", 288, 242, Other),
    ("shutdown", 48, 210, Other),
    ("eventfd2", 290, 19, Other),
    ("pipe2", 293, 59, Other),
    ("process_vm_readv", 310, 270, Other),
    ("getrandom", 318, 278, Other),
    ("prctl", 157, 167, Other),
    ("sched_setaffinity", 203, 122, Other),
    ("set_robust_list", 273, 99, Other),
    ("rseq", 334, 293, Other),
    ("fcntl", 72, 25, Other),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_kinds_by_architecture() {
        let run = [12, KVM_RUN, 0];
        assert_eq!(CallNumbers::X86.kind(16, run), CallKind::Run);
        assert_eq!(CallNumbers::Generic.kind(29, run), CallKind::Run);
        assert_eq!(CallNumbers::Unknown.kind(54, run), CallKind::Run);
        assert_eq!(CallNumbers::X86.kind(202, [0; 3]), Futex);
        assert_eq!(CallNumbers::Generic.kind(98, [0; 3]), Futex);
        assert_eq!(CallNumbers::X86.kind(NONE, [0; 3]), Other);
        let irq = [12, 0x4008_ae61, 0];
        assert_eq!(CallNumbers::X86.name(16, CallNumbers::X86.asks(16, irq)), "ioctl KVM_IRQ_LINE");
        assert_eq!(CallNumbers::X86.name(16, 0x5401), "ioctl 0x5401");
        assert_eq!(CallNumbers::X86.asks(1, [3, 0, 8]), 8);
        assert_eq!(CallNumbers::X86.name(1, 8), "write 8 bytes");
        assert_eq!(CallNumbers::Generic.name(66, 0), "writev");
        assert_eq!(CallNumbers::Unknown.name(66, 0), "system call 66");
    }

    #[test]
    fn no_number_has_two_names() {
        for number_of in [|call: &Call| call.1, |call: &Call| call.2] {
            let mut numbers: Vec<u32> =
                CALLS.iter().map(number_of).filter(|number| *number != NONE).collect();
            let all = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), all);
        }
    }
}
