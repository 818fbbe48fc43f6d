//! Arguments of `irqs`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{MethodArgs, OutputArgs};
use crate::args::memory::MemoryArgs;
use crate::args::part::PartArgs;

/// Arguments of `irqs`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope record --guest web --for 10s -o NAME.hscope   records what irqs needs\n  \
    hyperscope irqs NAME.hscope                    handlers of the host and of its guests\n  \
    hyperscope irqs --by cpu guest.dat             by CPU, from a guest's recording alone\n  \
    hyperscope irqs --by thread --top 0 host.dat   by interrupted thread, all rows\n  \
    hyperscope irqs --histogram host.dat           durations as bars\n\n\
    Own times add up to the time in handlers: the own time of a handler excludes handlers that interrupted it.")]
pub(crate) struct IrqsArgs {
    /// Recordings of hosts and guests, or sessions
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Group the rows of a machine by this key
    #[arg(long, value_name = "KEY", value_enum, default_value_t = IrqsBy::Handler)]
    pub(crate) by: IrqsBy,
    /// Show the first N rows of each machine; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,
    /// Show a histogram of durations per row, by power of two
    #[arg(long)]
    pub(crate) histogram: bool,
    #[command(flatten)]
    pub(crate) method: MethodArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// The meaning of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IrqsBy {
    /// Handler, on all CPUs
    Handler,
    /// Handler on one CPU
    Cpu,
    /// Handler while one thread had the CPU
    Thread,
}
