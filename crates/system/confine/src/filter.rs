//! Filters of system calls, as the kernel runs them.
//!
//! Of several filters the strictest answer counts. What no thread ever has a reason to call ends the
//! process at once: whoever tries has taken the thread over. The recorder's guard then ends tracing
//! and saves what the kernel holds. All else that is not allowed fails with `EPERM`, so that a C
//! library that makes a call nobody thought of costs an error, not the recording.

use std::collections::BTreeMap;
use std::io;
use std::sync::OnceLock;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

use crate::calls;

/// A filter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Filter {
    /// Ends the process at calls that no thread has a reason for.
    Never,
    /// The same, but for mounts.
    NeverButMounts,
    /// Has mounts fail.
    NoMounts,
    /// Has `clone3` not be there: its arguments can't be seen, and C libraries use `clone` then.
    NoClone3,
    /// What threads need that read what strangers send.
    Reader,
    /// That, taking connections, and starting threads.
    Listener,
}

/// Applies filters to the calling thread, in this order: after the last one no more can be added.
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

/// Why some thread is not confined, if so: a kernel without filters of system calls.
#[must_use]
pub fn failure() -> Option<&'static str> {
    FAILURE.get().map(String::as_str)
}

impl Filter {
    /// The filter as the kernel takes it; made once.
    fn program(self) -> io::Result<&'static BpfProgram> {
        static PROGRAMS: [OnceLock<Result<BpfProgram, String>>; 6] = [const { OnceLock::new() }; 6];
        let made = PROGRAMS.get(self as usize).map(|one| one.get_or_init(|| self.compile()));
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
                whole(calls::NEVER).into_iter().chain(whole(calls::MOUNTS)).collect(),
                SeccompAction::Allow,
                SeccompAction::KillProcess,
            ),
            Self::NeverButMounts => {
                (whole(calls::NEVER), SeccompAction::Allow, SeccompAction::KillProcess)
            }
            Self::NoMounts => (whole(calls::MOUNTS), SeccompAction::Allow, eperm),
            Self::NoClone3 => {
                let enosys = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
                (whole(&[libc::SYS_clone3]), SeccompAction::Allow, enosys)
            }
            Self::Reader => (reader()?, eperm, SeccompAction::Allow),
            Self::Listener => (listener()?, eperm, SeccompAction::Allow),
        };
        let here = std::env::consts::ARCH.try_into().map_err(|error| format!("{error}"))?;
        let filter = SeccompFilter::new(rules, of_others, of_these, here);
        let program = filter.and_then(TryInto::try_into);
        program.map_err(|error: seccompiler::BackendError| error.to_string())
    }
}

/// As `asm-generic/ioctls.h` has it; its type differs between C libraries.
const FIONBIO: u64 = 0x5421;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Rules that match calls whatever their arguments are.
fn whole(calls: &[i64]) -> Rules {
    calls.iter().map(|&call| (call, Vec::new())).collect()
}

/// A condition on the argument at this place.
fn argument(at: u8, operator: SeccompCmpOp, value: u64) -> Result<Vec<SeccompRule>, String> {
    let condition = SeccompCondition::new(at, SeccompCmpArgLen::Qword, operator, value);
    let rule = condition.and_then(|condition| SeccompRule::new(vec![condition]));
    Ok(vec![rule.map_err(|error| error.to_string())?])
}

/// Bits of an argument that are these.
fn bits(at: u8, mask: libc::c_int, value: libc::c_int) -> Result<Vec<SeccompRule>, String> {
    let [mask, value] = [mask, value].map(|bits| u64::from(bits.cast_unsigned()));
    argument(at, SeccompCmpOp::MaskedEq(mask), value)
}

fn reader() -> Result<Rules, String> {
    let mut rules = whole(calls::READER);
    // Memory that can be run is not made.
    rules.insert(libc::SYS_mmap, bits(2, libc::PROT_EXEC, 0)?);
    rules.insert(libc::SYS_mprotect, bits(2, libc::PROT_EXEC, 0)?);
    // C libraries look at an open file this way, too.
    rules.insert(libc::SYS_newfstatat, bits(3, libc::AT_EMPTY_PATH, libc::AT_EMPTY_PATH)?);
    // Sockets that are not to wait.
    rules.insert(libc::SYS_ioctl, argument(1, SeccompCmpOp::Eq, FIONBIO)?);
    // What a panic that aborts ends with.
    let own = u64::from(std::process::id());
    rules.insert(libc::SYS_tgkill, argument(0, SeccompCmpOp::Eq, own)?);
    Ok(rules)
}

fn listener() -> Result<Rules, String> {
    let mut rules = reader()?;
    rules.extend(whole(calls::LISTENER));
    rules.insert(libc::SYS_clone, bits(0, libc::CLONE_THREAD, libc::CLONE_THREAD)?);
    Ok(rules)
}
