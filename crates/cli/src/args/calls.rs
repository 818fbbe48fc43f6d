//! Arguments of `calls`.

use std::path::PathBuf;

use analyses::calls::PerCall;
use clap::{Args, ValueEnum};
use report::CallSort;

use super::OutputArgs;
use super::hypertrace::{NUMBER, number};
use crate::args::memory::MemoryArgs;
use crate::args::part::PartArgs;

/// Arguments of `calls`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope calls trace.dat                        functions by self time\n  \
    hyperscope calls --sort count --top 50 trace.dat  functions that were called most\n  \
    hyperscope calls --tree trace.dat                 who called whom\n  \
    hyperscope calls --pattern '*kvm_apic*' trace.dat what it would save not to trace these\n  \
    hyperscope calls --flame out.svg host.dat guest.dat  a flame graph of both\n  \
    hyperscope calls --format json trace.dat          for scripts\n\n\
    Record with trace-cmd record -p function_graph -g FUNCTION, or with -p function; add -e sched_switch\n\
    to separate the time off CPU. In guests without an agent, run insmod hyperscope_guest.ko\n\
    probes=functions functions=PATTERN, and record --hypercalls on the host.")]
pub(crate) struct CallsArgs {
    /// Recordings or sessions, including those of hosts to which guests sent function calls by
    /// their module
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Sort functions by this; calls of the function tracer have no times and are sorted by count
    #[arg(long, value_name = "KEY", default_value = "self")]
    pub(crate) sort: SortArg,
    /// Show the first N functions and threads; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,
    /// Show what it would save not to trace functions of this name, with * and ?; may be repeated
    #[arg(long = "pattern", value_name = "PATTERN")]
    pub(crate) patterns: Vec<String>,
    /// Show who called whom
    #[arg(long)]
    pub(crate) tree: bool,
    /// Maximum depth of the call tree
    #[arg(long, value_name = "N", default_value_t = 12, requires = "tree")]
    pub(crate) depth: usize,
    /// Omit stacks of the call tree below this percentage of the total
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, requires = "tree",
        value_parser = percent)]
    pub(crate) min_percent: f64,
    /// Write a flame graph to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) flame: Option<PathBuf>,
    /// Write folded stacks to this file, for other tools: a;b;c N
    #[arg(long, value_name = "FILE")]
    pub(crate) folded: Option<PathBuf>,
    /// Number of the hypercalls that carry guests' calls, as passed to their module
    #[arg(long, value_name = "N", default_value = NUMBER, value_parser = number)]
    pub(crate) number: u64,
    /// Subtract the tracer's cost from self times: INSIDE nanoseconds per call in the function, and
    /// OUTSIDE in its caller
    #[arg(long, value_name = "INSIDE,OUTSIDE", value_parser = per_call)]
    pub(crate) correct: Option<PerCall>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What functions are sorted by, under its command-line name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortArg {
    /// Number of calls
    Count,
    /// Time in the function itself
    #[value(name = "self")]
    Own,
    /// Time from call to return
    Total,
}

impl From<SortArg> for CallSort {
    fn from(sort: SortArg) -> Self {
        match sort {
            SortArg::Count => Self::Count,
            SortArg::Own => Self::Own,
            SortArg::Total => Self::Total,
        }
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.ok_or_else(|| "expected a percentage from 0 to 100".to_owned())
}

fn per_call(text: &str) -> Result<PerCall, String> {
    let numbers = text.split_once(',').and_then(|(inside, outside)| {
        Some(PerCall { inside_ns: inside.parse().ok()?, outside_ns: outside.parse().ok()? })
    });
    numbers.ok_or_else(|| "expected two numbers of nanoseconds, such as 120,90".to_owned())
}
