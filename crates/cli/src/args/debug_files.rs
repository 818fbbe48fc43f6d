//! Where the names of code in user space come from.

use clap::Args;

/// Whether servers are asked for debug files.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DebugFilesArgs {
    /// Don't ask the servers that DEBUGINFOD_URLS names for debug files
    #[arg(long)]
    pub(crate) no_debuginfod: bool,
}
