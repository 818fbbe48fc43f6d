//! Arguments of `report`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::MethodArgs;
use crate::args::debug_files::DebugFilesArgs;
use crate::args::memory::MemoryArgs;
use crate::args::part::PartArgs;

/// Arguments of `report`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope report trace.dat -o report.html\n  \
    hyperscope report host.dat guest.dat -o report.html    guests on their host's clock\n  \
    hyperscope report after.dat --baseline before.dat -o report.html\n  \
    hyperscope report NAME.hscope --title 'Slow disk' -o report.html\n  \
    hyperscope report --critical dd NAME.hscope -o report.html    also what dd waited for\n  \
    hyperscope report --serve NAME.hscope                 all events and spans, on this machine\n\n\
    The page is one file that needs no network and no other file: open it in a browser, or send it by\n\
    mail. docs/report.md explains how to read it.")]
pub(crate) struct PageArgs {
    /// Recordings of a host and its guests, or sessions
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Write the page to this file [default: standard output, unless that is a terminal]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Serve the page on 127.0.0.1 instead of writing it, with all events and spans of the
    /// recordings, until interrupted
    #[arg(long, conflicts_with_all = ["output", "vm", "vcpu"])]
    pub(crate) serve: bool,
    /// Port to serve on [default: any free port]
    #[arg(long, value_name = "PORT", requires = "serve")]
    pub(crate) port: Option<u16>,
    /// The page's heading [default: the names of the recordings]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Show full paths of recordings [default: file names]
    #[arg(long)]
    pub(crate) full_paths: bool,
    /// Compare with this run: a recording or a session, as hyperscope diff does
    #[arg(long, value_name = "RUN")]
    pub(crate) baseline: Option<PathBuf>,
    /// Also show what the threads with this name or number waited for, as hyperscope critical does,
    /// with their longest waits in the timeline
    #[arg(long, value_name = "NAME|PID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) critical: Option<String>,
    /// Keep at most N spans in the timeline; beyond that, short neighbours are merged
    #[arg(long, value_name = "N", default_value_t = 3_000_000)]
    pub(crate) spans: usize,
    #[command(flatten)]
    pub(crate) debug_files: DebugFilesArgs,
    #[command(flatten)]
    pub(crate) method: MethodArgs,
}
