//! Arguments of `top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::record::duration;

/// Arguments of `top`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope top --steal                            in a guest: a table, redrawn each second\n  \
    hyperscope top --steal --format jsonl --for 1m | jq .vcpus\n  \
    hyperscope top --steal --record steal.dat --for 10s\n\n\
The host must run hyperscope publish --guest NAME. Read a recording together with the guest's own:\n\
hyperscope events guest.dat steal.dat. The agent does the same: hyperscope-agent steal.")]
pub(crate) struct TopArgs {
    /// Show what this guest's host does with its vCPUs
    #[arg(long, required = true)]
    pub(crate) steal: bool,
    /// The memory shared with the host: the device's PCI address, or a file [default: the first
    /// ivshmem device]
    #[arg(long, value_name = "DEVICE")]
    pub(crate) memory: Option<String>,
    /// Show what happened since so often
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    pub(crate) interval: Duration,
    /// End after so long: 500ms, 10s, 2m
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(crate) time: Option<Duration>,
    /// How it is written
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub(crate) format: TopFormatArg,
    /// Write a recording of it, too
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

/// How an interval is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopFormatArg {
    /// Tables for people
    Table,
    /// One JSON object a line
    Jsonl,
}
