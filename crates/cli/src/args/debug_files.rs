//! Options for the source of names of code in user space.

use clap::Args;

/// Whether to query servers for debug files.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DebugFilesArgs {
    /// Do not query the servers in DEBUGINFOD_URLS for debug files
    #[arg(long)]
    pub(crate) no_debuginfod: bool,
}
