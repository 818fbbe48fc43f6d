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
    hyperscope calls trace.dat                        functions by the time in themselves\n  \
    hyperscope calls --sort count --top 50 trace.dat  those called most\n  \
    hyperscope calls --tree trace.dat                 who called whom\n  \
    hyperscope calls --pattern '*kvm_apic*' trace.dat what not tracing these would spare\n  \
    hyperscope calls --flame out.svg host.dat guest.dat  a flame graph of both\n  \
    hyperscope calls --format json trace.dat          for scripts\n\n\
    Record with trace-cmd record -p function_graph -g FUNCTION, or with -p function; with\n\
    -e sched_switch time off the CPU is shown apart. In guests without an agent: insmod\n\
    hyperscope_guest.ko probes=functions functions=PATTERN, and record --hypercalls on the host.")]
pub(crate) struct CallsArgs {
    /// Recordings or sessions, also of hosts whose guests' modules sent function calls
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Sort functions by this; those of the function tracer, which has no times, by count
    #[arg(long, value_name = "KEY", default_value = "self")]
    pub(crate) sort: SortArg,
    /// Show the first N functions and threads; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,
    /// Show what leaving functions of this name untraced would save, with * and ?; may be repeated
    #[arg(long = "pattern", value_name = "PATTERN")]
    pub(crate) patterns: Vec<String>,
    /// Show who called whom
    #[arg(long)]
    pub(crate) tree: bool,
    /// Functions on a stack of the call tree, at most
    #[arg(long, value_name = "N", default_value_t = 12, requires = "tree")]
    pub(crate) depth: usize,
    /// Leave out stacks of the call tree with less than this share of the whole, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, requires = "tree",
        value_parser = percent)]
    pub(crate) min_percent: f64,
    /// Write a flame graph to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) flame: Option<PathBuf>,
    /// Write stacks to this file, as other tools read them: a;b;c N
    #[arg(long, value_name = "FILE")]
    pub(crate) folded: Option<PathBuf>,
    /// The number of the hypercalls that carry guests' calls, as given to their module
    #[arg(long, value_name = "N", default_value = NUMBER, value_parser = number)]
    pub(crate) number: u64,
    /// Subtract the tracer's cost from self times: for each call INSIDE nanoseconds within it, and
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
    percent.ok_or_else(|| "not a percentage from 0 to 100".to_owned())
}

fn per_call(text: &str) -> Result<PerCall, String> {
    let numbers = text.split_once(',').and_then(|(inside, outside)| {
        Some(PerCall { inside_ns: inside.parse().ok()?, outside_ns: outside.parse().ok()? })
    });
    numbers.ok_or_else(|| "not two numbers of nanoseconds, such as 120,90".to_owned())
}
