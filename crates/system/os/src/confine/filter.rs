//! Seccomp filters.
//!
//! If several filters apply, the strictest result counts. A call that no thread ever needs ends the
//! process at once, because only an attacker would make it. The recorder's guard then ends tracing
//! and saves the kernel's buffers. All other forbidden calls fail with `EPERM`, so that an
//! unexpected call of a C library causes an error, but does not end the recording.

use std::collections::BTreeMap;
use std::io;
use std::sync::OnceLock;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter, sock_filter,
};

use crate::confine::calls;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Filter {
    /// Ends the process at calls that no thread needs.
    Never,
    /// The same, except for mount calls.
    NeverButMounts,
    /// Mount calls fail.
    NoMounts,
    /// `clone3` fails with `ENOSYS`: a filter cannot check its arguments, and C libraries fall back
    /// to `clone`.
    NoClone3,
    /// Allows the calls of threads that read untrusted data.
    Reader,
    /// Also allows accepting connections and starting threads.
    Listener,
}

/// Applies filters to the calling thread in this order: after the last one, no more can be added.
pub(crate) fn apply(filters: &[Filter]) -> io::Result<()> {
    for filter in filters {
        apply_filter(filter.program()?).map_err(|error| match error {
            seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => error,
            other => io::Error::other(other),
        })?;
    }
    Ok(())
}

static FAILURE: OnceLock<String> = OnceLock::new();

pub(crate) fn note_failure(error: &io::Error) {
    let _ = FAILURE.set(error.to_string());
}

/// Why some thread is not confined, if any: the kernel has no seccomp filters.
#[must_use]
pub fn failure() -> Option<&'static str> {
    FAILURE.get().map(String::as_str)
}

impl Filter {
    /// The BPF program, which is compiled once.
    fn program(self) -> io::Result<&'static BpfProgram> {
        static PROGRAMS: [OnceLock<Result<BpfProgram, String>>; 6] = [const { OnceLock::new() }; 6];
        let made = PROGRAMS.get(self as usize).map(|slot| slot.get_or_init(|| self.compile()));
        match made {
            Some(Ok(program)) => Ok(program),
            Some(Err(text)) => Err(io::Error::other(text.clone())),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn compile(self) -> Result<BpfProgram, String> {
        let eperm = SeccompAction::Errno(libc::EPERM.cast_unsigned());
        let (rules, of_others, of_these) = match self {
            Self::Never => (
                unconditional(calls::NEVER)
                    .into_iter()
                    .chain(unconditional(calls::MOUNTS))
                    .collect(),
                SeccompAction::Allow,
                SeccompAction::KillProcess,
            ),
            Self::NeverButMounts => {
                (unconditional(calls::NEVER), SeccompAction::Allow, SeccompAction::KillProcess)
            }
            Self::NoMounts => (unconditional(calls::MOUNTS), SeccompAction::Allow, eperm),
            Self::NoClone3 => {
                let enosys = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
                (unconditional(&[libc::SYS_clone3]), SeccompAction::Allow, enosys)
            }
            Self::Reader => (reader()?, eperm, SeccompAction::Allow),
            Self::Listener => (listener()?, eperm, SeccompAction::Allow),
        };
        let here = std::env::consts::ARCH.try_into().map_err(|error| format!("{error}"))?;
        let filter = SeccompFilter::new(rules, of_others, of_these, here);
        let program = filter.and_then(TryInto::try_into);
        let program = program.map_err(|error: seccompiler::BackendError| error.to_string())?;
        Ok(without_other_numbers(program))
    }
}

/// Call numbers from here on belong to another table, such as the x32 ABI of the same processor:
/// there `execve` has a number that no rule covers.
const OTHER_TABLE: u32 = 0x4000_0000;

/// Adds a check after that of the architecture: no thread here needs system calls of another table,
/// so such a call ends the process.
fn without_other_numbers(program: BpfProgram) -> BpfProgram {
    let load = sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
    let is_other = sock_filter { code: 0x35, jt: 0, jf: 1, k: OTHER_TABLE };
    let kill = sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_KILL_PROCESS };
    [load, is_other, kill].into_iter().chain(program).collect()
}

/// Value from `asm-generic/ioctls.h`; its type differs between C libraries.
const FIONBIO: u64 = 0x5421;

/// The fcntl commands that readers may use on their descriptors.
const FCNTL: [libc::c_int; 8] = [
    libc::F_DUPFD,
    libc::F_DUPFD_CLOEXEC,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_SETFL,
    libc::F_GETPIPE_SZ,
    libc::F_SETPIPE_SZ,
];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Rules that match calls with any arguments.
fn unconditional(calls: &[i64]) -> Rules {
    calls.iter().map(|&call| (call, Vec::new())).collect()
}

/// A condition on the argument with this index.
fn argument(at: u8, operator: SeccompCmpOp, value: u64) -> Result<Vec<SeccompRule>, String> {
    let condition = SeccompCondition::new(at, SeccompCmpArgLen::Qword, operator, value);
    let rule = condition.and_then(|condition| SeccompRule::new(vec![condition]));
    Ok(vec![rule.map_err(|error| error.to_string())?])
}

/// A condition on some bits of an argument.
fn bits(at: u8, mask: libc::c_int, value: libc::c_int) -> Result<Vec<SeccompRule>, String> {
    let [mask, value] = [mask, value].map(|bits| u64::from(bits.cast_unsigned()));
    argument(at, SeccompCmpOp::MaskedEq(mask), value)
}

fn reader() -> Result<Rules, String> {
    let mut rules = unconditional(calls::READER);
    // Forbids executable memory.
    rules.insert(libc::SYS_mmap, bits(2, libc::PROT_EXEC, 0)?);
    rules.insert(libc::SYS_mprotect, bits(2, libc::PROT_EXEC, 0)?);
    // Excludes F_SETOWN and F_SETSIG, which make the kernel send any signal to any process.
    let commands = FCNTL
        .iter()
        .map(|&command| argument(1, SeccompCmpOp::Eq, u64::from(command.cast_unsigned())));
    let commands: Result<Vec<_>, _> = commands.collect();
    rules.insert(libc::SYS_fcntl, commands?.into_iter().flatten().collect());
    // Non-blocking mode of sockets.
    rules.insert(libc::SYS_ioctl, argument(1, SeccompCmpOp::Eq, FIONBIO)?);
    // The last call of a panic that aborts.
    let own_pid = u64::from(std::process::id());
    rules.insert(libc::SYS_tgkill, argument(0, SeccompCmpOp::Eq, own_pid)?);
    Ok(rules)
}

fn listener() -> Result<Rules, String> {
    let mut rules = reader()?;
    rules.extend(unconditional(calls::LISTENER));
    rules.insert(libc::SYS_clone, bits(0, libc::CLONE_THREAD, libc::CLONE_THREAD)?);
    Ok(rules)
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;

    const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
    const KILLED: u32 = libc::SECCOMP_RET_KILL_PROCESS;
    const REFUSED: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();

    /// Evaluates a filter for a call: interprets the few BPF instructions as the kernel does.
    fn answer(filter: Filter, call: i64, arguments: &[u64]) -> u32 {
        let mut data = Vec::from((call as u32).to_ne_bytes());
        data.extend(0xc000_003e_u32.to_ne_bytes());
        data.extend(0_u64.to_ne_bytes());
        (0..6).for_each(|at| data.extend(arguments.get(at).unwrap_or(&0).to_ne_bytes()));
        let program = filter.program().unwrap();
        let (mut at, mut value) = (0, 0_u32);
        loop {
            let sock_filter { code, jt, jf, k } = program[at].clone();
            at += 1;
            let jump = |holds: bool| usize::from(if holds { jt } else { jf });
            match code {
                0x20 => {
                    let word = &data[k as usize..k as usize + 4];
                    value = u32::from_ne_bytes(word.try_into().unwrap());
                }
                0x05 => at += k as usize,
                0x15 => at += jump(value == k),
                0x25 => at += jump(value > k),
                0x35 => at += jump(value >= k),
                0x45 => at += jump(value & k != 0),
                0x54 => value &= k,
                0x06 => return k,
                other => panic!("instruction {other:#x}"),
            }
        }
    }

    const ALL: [Filter; 6] = [
        Filter::Never,
        Filter::NeverButMounts,
        Filter::NoMounts,
        Filter::NoClone3,
        Filter::Reader,
        Filter::Listener,
    ];

    #[test]
    fn calls_of_another_table_end_the_process() {
        for filter in ALL {
            for call in [libc::SYS_execve, libc::SYS_read, 520, 1000] {
                let of_x32 = call | i64::from(OTHER_TABLE);
                assert_eq!(answer(filter, of_x32, &[]), KILLED, "{filter:?} {call}");
            }
            assert_eq!(answer(filter, -1, &[]), KILLED, "{filter:?}");
        }
        assert_eq!(answer(Filter::Never, libc::SYS_execve, &[]), KILLED);
        assert_eq!(answer(Filter::Never, libc::SYS_read, &[]), ALLOWED);
    }

    #[test]
    fn readers_have_nobody_sent_signals() {
        let fcntl = |command: libc::c_int| u64::from(command.cast_unsigned());
        for filter in [Filter::Reader, Filter::Listener] {
            // F_SETOWN, F_GETOWN, F_SETSIG, F_GETSIG, F_SETOWN_EX, and values with the same lower
            // half.
            for command in [8, 9, 10, 11, 15, 8 | 1 << 32, 4 | 1 << 32] {
                assert_eq!(answer(filter, libc::SYS_fcntl, &[3, command]), REFUSED, "{command}");
            }
            for command in FCNTL {
                let arguments = [3, fcntl(command)];
                assert_eq!(answer(filter, libc::SYS_fcntl, &arguments), ALLOWED, "{command}");
            }
        }
    }

    #[test]
    fn readers_look_at_open_files_alone() {
        for filter in [Filter::Reader, Filter::Listener] {
            for flags in [0, libc::AT_EMPTY_PATH, libc::AT_SYMLINK_NOFOLLOW] {
                let arguments = [0, 0, 0, u64::from(flags.cast_unsigned())];
                assert_eq!(answer(filter, libc::SYS_newfstatat, &arguments), REFUSED);
                assert_eq!(answer(filter, libc::SYS_statx, &[0, 0, arguments[3]]), REFUSED);
            }
            assert_eq!(answer(filter, libc::SYS_fstat, &[3]), ALLOWED);
        }
    }
}
