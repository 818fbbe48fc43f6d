//! Why sampling fails, and how to fix it.

use std::io;
use std::path::{Path, PathBuf};

use tracefs::TracefsError;

#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// An operation on a file failed.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// The operation: "write".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel lacks the event.
    #[error(
        "this kernel has no event {event} that samples on CPU {cpu}{}",
        if *event == "cycles" { ": use cpu-clock, which needs no hardware counter" } else { "" }
    )]
    NoEvent {
        event: &'static str,
        cpu: u32,
        /// The system's error.
        source: io::Error,
    },
    /// The user has no permission.
    #[error("sampling all CPUs needs root or CAP_PERFMON (see kernel.perf_event_paranoid)")]
    NotAllowed,
    /// The rate exceeds the kernel's limit.
    #[error("{hz} samples per second exceed kernel.perf_event_max_sample_rate, which is {most}")]
    TooOften {
        /// The requested rate.
        hz: u32,
        /// The kernel's limit.
        most: u32,
    },
    /// No CPU is online.
    #[error("no CPU could be sampled: all went offline")]
    NoCpu,
    /// The trace clock can't be read.
    #[error("cannot read the trace clock {name}")]
    Clock { name: String, source: Box<TracefsError> },
    /// The kernel refused to wait, or to start the events.
    #[error("cannot {what} performance events")]
    Events {
        /// The operation.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The receiver of samples is gone.
    #[error("the receiver of the samples has ended")]
    NotTaken,
    /// A bug in this program.
    #[error("the sampler's thread panicked")]
    Panicked,
}

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
