//! Why a BPF program can't run here, and how to fix it.

use std::fs;
use std::io;

use aya::maps::MapError;
use aya::programs::ProgramError;
use aya::{BtfError, EbpfError};

/// Last lines of the verifier's log: the rejected instruction, and the reason.
const LAST_LINES: usize = 2;

/// Errors of loading or attaching programs.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The kernel has no BTF.
    #[error(
        "this kernel has no type information: /sys/kernel/btf/vmlinux is missing (CONFIG_DEBUG_INFO_BTF)"
    )]
    NoBtf,
    /// BTF has no vCPU type.
    #[error(
        "this kernel has no type information for vCPUs: load KVM (kvm_amd or kvm_intel) first; if KVM is a module, use Linux 5.11 or later with CONFIG_DEBUG_INFO_BTF_MODULES"
    )]
    NoVcpu,
    /// The tracepoint does not exist.
    #[error("the tracepoint {0} is missing: load KVM")]
    NoTracepoint(&'static str),
    /// The user has no permission.
    #[error("BPF programs need root, or CAP_BPF and CAP_PERFMON")]
    NotAllowed,
    /// Kernel lockdown forbids it.
    #[error("this kernel is locked down ({0}): BPF programs may not read its memory")]
    LockedDown(String),
    /// The kernel is too old for ring buffers, or was built without them.
    #[error("this kernel has no BPF ring buffer: use Linux 5.8 or later with CONFIG_BPF_SYSCALL")]
    NoRing,
    /// The kernel refused to load or attach a program.
    #[error("the kernel refuses the BPF program {name}")]
    Refused {
        /// The program.
        name: &'static str,
        /// The reason.
        source: Box<ProgramError>,
    },
    /// The kernel's verifier rejected the program.
    #[error("this kernel's verifier refuses the BPF program {name}: {last_words}")]
    Verifier {
        /// The program.
        name: &'static str,
        /// The end of its log, which has the reason; the log may have a megabyte.
        last_words: String,
    },
    /// The object can't be loaded.
    #[error("cannot load the BPF programs")]
    Load(#[from] Box<EbpfError>),
    /// The object has no program or map of that name.
    #[error("the BPF programs have no {0}")]
    Missing(&'static str),
    /// A map of the programs can't be used.
    #[error("cannot read the data of the BPF programs")]
    Map(#[from] Box<MapError>),
    /// BTF is malformed.
    #[error("cannot read the type information of this kernel")]
    Types(#[source] Box<BtfError>),
}

pub type Result<T> = std::result::Result<T, LoadError>;

impl From<MapError> for LoadError {
    fn from(error: MapError) -> Self {
        Self::Map(Box::new(error))
    }
}

impl LoadError {
    /// Converts an error of loading the object.
    pub(crate) fn of_load(error: EbpfError) -> Self {
        match &error {
            EbpfError::BtfRelocationError(_) => Self::NoVcpu,
            EbpfError::MapError(MapError::CreateError { io_error, name }) => {
                let is_ring = name == "records";
                match io_error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
                    Some(rustix::io::Errno::PERM) => not_allowed(),
                    Some(rustix::io::Errno::INVAL) if is_ring => Self::NoRing,
                    Some(rustix::io::Errno::NOSYS) => Self::NoRing,
                    _ => Self::Load(Box::new(error)),
                }
            }
            _ => Self::Load(Box::new(error)),
        }
    }

    /// Converts an error of loading a program.
    pub(crate) fn of_program(name: &'static str, error: ProgramError) -> Self {
        match &error {
            ProgramError::LoadError { io_error, .. } if is_not_permitted(io_error) => not_allowed(),
            ProgramError::LoadError { verifier_log, .. } => {
                Self::Verifier { name, last_words: last_words(&verifier_log.to_string()) }
            }
            _ => Self::Refused { name, source: Box::new(error) },
        }
    }

    /// Converts an error of attaching a program.
    pub(crate) fn of_attaching(name: &'static str, error: ProgramError) -> Self {
        match &error {
            ProgramError::SyscallError(call) if call.io_error.kind() == io::ErrorKind::NotFound => {
                Self::NoTracepoint(name)
            }
            ProgramError::SyscallError(call) if is_not_permitted(&call.io_error) => not_allowed(),
            _ => Self::Refused { name, source: Box::new(error) },
        }
    }
}

/// The last lines of a verifier's log before its statistics.
fn last_words(log: &str) -> String {
    const COUNTS: [&str; 3] = ["verification time ", "stack depth ", "processed "];
    let is_word = |line: &&str| {
        !line.trim().is_empty() && !COUNTS.iter().any(|begin| line.starts_with(begin))
    };
    let mut lines: Vec<&str> = log.lines().rev().filter(is_word).take(LAST_LINES).collect();
    lines.reverse();
    lines.join("; ")
}

/// EPERM: no permission. The verifier returns EACCES instead.
fn is_not_permitted(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::PERM.raw_os_error())
}

fn not_allowed() -> LoadError {
    let modes = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    match lockdown(&modes) {
        Some(mode) => LoadError::LockedDown(mode.to_owned()),
        None => LoadError::NotAllowed,
    }
}

/// The selected lockdown mode, if it forbids BPF programs.
fn lockdown(modes: &str) -> Option<&str> {
    let mode = modes.split_whitespace().find_map(|mode| mode.strip_prefix('['))?;
    Some(mode.trim_end_matches(']')).filter(|&mode| mode == "confidentiality")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_locked_down_kernel_is_reported_as_one() {
        assert_eq!(lockdown("none integrity [confidentiality]\n"), Some("confidentiality"));
        assert_eq!(lockdown("none [integrity] confidentiality\n"), None);
        assert_eq!(lockdown("[none] integrity confidentiality\n"), None);
        assert_eq!(lockdown(""), None);
    }

    #[test]
    fn a_program_that_is_not_believed_is_not_one_that_is_not_allowed() {
        let error = |errno: rustix::io::Errno| io::Error::from(errno);
        assert!(is_not_permitted(&error(rustix::io::Errno::PERM)));
        assert!(!is_not_permitted(&error(rustix::io::Errno::ACCESS)));
    }
}
