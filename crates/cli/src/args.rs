//! Options of verbs, and their help.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub(crate) use command::args::{MethodArgs, OutputArgs, memory, part, size};
pub(crate) use memory::MemoryArgs;
pub(crate) use page::PageArgs;
pub(crate) use part::{NameArgs, PartArgs, RangeArgs};
pub(crate) use session_tables::args as tables;

pub(crate) mod boot;
pub(crate) mod calls;
pub(crate) mod cpu;
pub(crate) mod critical;
pub(crate) mod debug_files;
pub(crate) mod diff;
pub(crate) mod export;
pub(crate) mod flight;
pub(crate) mod hypertrace;
pub(crate) mod irqs;
pub(crate) mod keys;
pub(crate) mod listen;
pub(crate) mod mark;
pub(crate) mod page;
pub(crate) mod path;
pub(crate) mod profile;
pub(crate) mod publish;
pub(crate) mod record;
pub(crate) mod serve;
pub(crate) mod top;
pub(crate) mod tracer;
pub(crate) mod virtio;
pub(crate) mod vmm;

/// Arguments of reports without options of their own.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Recordings: trace.dat files, sessions, or folders with ring-buffer pages
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Maximum number of rows; 0 means all.
pub(crate) const fn unless_zero(top: usize) -> usize {
    if top == 0 { usize::MAX } else { top }
}

/// Output format of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventsFormatArg {
    /// Lines in the format of trace-cmd report
    Text,
    /// One JSON object per line
    Jsonl,
}
