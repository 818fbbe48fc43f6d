//! Why nothing can be sampled here, and what would mend that.

use std::io;
use std::path::{Path, PathBuf};

use tracefs::TracefsError;

/// The sampler's errors.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// A file failed.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was tried: "write".
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The kernel has no such event.
    #[error(
        "this kernel has no event {event} that samples on CPU {cpu}{}",
        if *event == "cycles" { ": use cpu-clock, which needs no hardware counter" } else { "" }
    )]
    NoEvent {
        /// Its name.
        event: &'static str,
        /// The CPU.
        cpu: u32,
        /// What the system said.
        source: io::Error,
    },
    /// This user may not.
    #[error("sampling all CPUs needs root or CAP_PERFMON (see kernel.perf_event_paranoid)")]
    NotAllowed,
    /// More than the kernel allows.
    #[error("{hz} samples per second exceed kernel.perf_event_max_sample_rate, which is {most}")]
    TooOften {
        /// As it was asked for.
        hz: u32,
        /// The kernel's limit.
        most: u32,
    },
    /// No CPU is there.
    #[error("no CPU could be sampled: all went offline")]
    NoCpu,
    /// The trace clock can't be read.
    #[error("cannot read the trace clock {name}")]
    Clock {
        /// Its name.
        name: String,
        /// Why.
        source: Box<TracefsError>,
    },
    /// The kernel refused to wait, or to begin.
    #[error("cannot {what} performance events")]
    Events {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Whoever was to take samples is gone.
    #[error("the receiver of the samples has ended")]
    NotTaken,
    /// A fault of this program.
    #[error("the sampler's thread panicked")]
    Panicked,
}

/// The sampler's results.
pub type Result<T> = std::result::Result<T, SampleError>;

impl SampleError {
    /// For `map_err`: a failed operation on a file.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }

    /// For `map_err`: a failed operation on events.
    pub(crate) fn events(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Events { what, source }
    }

    /// For `map_err`: the trace clock was not read.
    pub(crate) fn clock(name: &str) -> impl FnOnce(TracefsError) -> Self {
        let name = name.to_owned();
        move |source| Self::Clock { name, source: Box::new(source) }
    }
}
