//! Arguments of `vmm`.

use std::path::PathBuf;

use clap::Args;

use super::OutputArgs;
use crate::args::memory::MemoryArgs;
use crate::args::part::PartArgs;

/// Arguments of `vmm`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope record --profile vmm --for 10s -o NAME.hscope   records what vmm needs\n  \
    hyperscope vmm NAME.hscope                                 exits, calls, locks and threads of VMMs\n  \
    hyperscope vmm --top 0 NAME.hscope                         all rows\n  \
    hyperscope vmm NAME.hscope -o vmm.html                     a page with figures, for a browser\n  \
    hyperscope vmm --vm web --format json NAME.hscope          one VM, for scripts\n\n\
    Running parts of exits add up to user_ns of hyperscope exits. CSV has the table of exits.")]
pub(crate) struct VmmArgs {
    /// Recordings of hosts, or sessions
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Show the first N rows of each table; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
