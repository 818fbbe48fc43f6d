//! Arguments of `hypertrace`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::EventsFormatArg;
use crate::args::memory::MemoryArgs;
use crate::args::part::PartArgs;

/// Arguments of `hypertrace`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope record --hypercalls --for 10s -o host.hscope\n  \
    hyperscope hypertrace host.hscope | less\n  \
    hyperscope hypertrace --format jsonl host.hscope\n  \
    hyperscope record --hypertrace web --for 10s -o web.hscope\n  \
    hyperscope hypertrace /dev/shm/web           the last events of a guest that crashed\n\n\
    In the guest: insmod hyperscope_guest.ko probes=sched_switch,irq, and channel=shm for memory")]
pub(crate) struct HypertraceArgs {
    /// Recordings of hosts with --hypercalls or with kvm:kvm_hypercall, sessions with
    /// guest-NAME.hypertrace, such a file alone, or the memory of a guest whose module runs with
    /// channel=shm
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Hypercall number, as passed to the guest's module; marks use the next number
    #[arg(long, value_name = "N", default_value = NUMBER, value_parser = number)]
    pub(crate) number: u64,
    /// Source of the hypercalls [default: collector if the recording has one, otherwise events]
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<SourceArg>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: EventsFormatArg,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// The source of hypercalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SourceArg {
    /// The file of record --hypercalls, which has all words
    Collector,
    /// Events kvm:kvm_hypercall, which have four words
    Events,
}

/// The module's default hypercall number.
pub(crate) const NUMBER: &str = "0x48530000";

pub(crate) fn number(text: &str) -> Result<u64, String> {
    let read = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    read.map_err(|error| error.to_string())
}
