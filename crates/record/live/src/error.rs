//! Why nothing can be added up here.

use std::io;

use bpf::load::LoadError;
use tracefs::TracefsError;

/// The errors of live accounting.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The processor is another one than the programs are made for.
    #[error("exits can be summed in the kernel only on 64-bit x86 and Arm")]
    Architecture,
    /// The programs can't run.
    #[error(transparent)]
    Programs(#[from] LoadError),
    /// This user may not.
    #[error(
        "live figures need root, or CAP_BPF, CAP_PERFMON and, to read tracefs, CAP_DAC_READ_SEARCH; also CAP_SYS_ADMIN if tracefs is not mounted"
    )]
    NotAllowed,
    /// The events are not there.
    #[error("cannot read the formats of KVM's events")]
    Tracefs(#[source] TracefsError),
    /// The number of CPUs can't be had, or has changed.
    #[error("cannot find out how many CPUs there are")]
    Cpus(#[source] io::Error),
    /// A fault of this program.
    #[error("cannot read the state of vCPU thread {0}: it keeps changing")]
    StateUnstable(u32),
}

/// The crate's results.
pub type Result<T> = std::result::Result<T, LiveError>;

impl From<TracefsError> for LiveError {
    fn from(error: TracefsError) -> Self {
        match error {
            // Recording takes more than this does.
            TracefsError::NotAllowed => Self::NotAllowed,
            error => Self::Tracefs(error),
        }
    }
}

impl From<aya::maps::MapError> for LiveError {
    fn from(error: aya::maps::MapError) -> Self {
        Self::Programs(error.into())
    }
}
