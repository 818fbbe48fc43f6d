//! Why live accounting fails.

use std::io;

use bpf::load::LoadError;
use tracefs::TracefsError;

#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The object supports no such processor.
    #[error("exits can be summed in the kernel only on 64-bit x86 and Arm")]
    Architecture,
    /// The programs can't run.
    #[error(transparent)]
    Programs(#[from] LoadError),
    /// The user has no permission.
    #[error(
        "live figures need root, or CAP_BPF, CAP_PERFMON and, to read tracefs, CAP_DAC_READ_SEARCH; also CAP_SYS_ADMIN if tracefs is not mounted"
    )]
    NotAllowed,
    /// The events' formats can't be read.
    #[error("cannot read the formats of KVM's events")]
    Tracefs(#[source] TracefsError),
    /// The number of CPUs is unknown, or has changed.
    #[error("cannot find out how many CPUs there are")]
    Cpus(#[source] io::Error),
    /// A bug in this program.
    #[error("cannot read the state of vCPU thread {0}: it keeps changing")]
    StateUnstable(u32),
}

pub type Result<T> = std::result::Result<T, LiveError>;

impl From<TracefsError> for LiveError {
    fn from(error: TracefsError) -> Self {
        match error {
            // tracefs's own message would ask for more privileges than this needs.
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
