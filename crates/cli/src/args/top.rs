//! Arguments of `top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::record::some_time;

/// Arguments of `top`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope top                                    on a KVM host: all VMs, redrawn each second\n  \
    hyperscope top --once                             one second, as tables\n  \
    hyperscope top --for 1m --format jsonl | jq '.rows[] | select(.p99_ns > 500000)'\n  \
    hyperscope top --guest web                        also the view inside the VM web\n  \
    hyperscope top --steal                            in a guest: what its host does with its vCPUs\n  \
    hyperscope top --steal --record steal.dat --for 10s\n\n\
On a host, exits are summed inside its kernel, and nothing is recorded. The key r records the VM\n\
under the cursor for 10 s and makes its report; the key ? shows all keys. In a guest, --steal needs\n\
hyperscope publish --guest NAME on its host. Read its recording together with the guest's own:\n\
hyperscope events guest.dat steal.dat. The agent can do the same: hyperscope-agent steal.")]
pub(crate) struct TopArgs {
    /// Show one interval and exit
    #[arg(long, conflicts_with = "time")]
    pub(crate) once: bool,
    /// Rows for each VM or for each vCPU
    #[arg(long, value_name = "WHAT", default_value = "vm", conflicts_with = "steal")]
    pub(crate) by: TopByArg,
    /// Rows that the kernel keeps per interval, 1.2 KiB each; the rest are summed in one row
    #[arg(long, value_name = "NUMBER", default_value_t = 8192, conflicts_with = "steal",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rows: u32,
    /// Also show this guest's own view (steal, its tasks), by hyperscope-agent in it: a VM's name,
    /// or [NAME=]CHANNEL (vsock:CID, tls-vsock:CID, tls:HOST:PORT, tcp-plain:HOST:PORT, unix:PATH)
    #[arg(long = "guest", value_name = "GUEST", conflicts_with = "steal")]
    pub(crate) guests: Vec<String>,
    /// In a guest: show what its host does with its vCPUs
    #[arg(long)]
    pub(crate) steal: bool,
    /// The memory shared with the host: the device's PCI address, or a file [default: the first
    /// ivshmem device]
    #[arg(long, value_name = "DEVICE", requires = "steal")]
    pub(crate) memory: Option<String>,
    /// Refresh interval
    #[arg(long, value_name = "TIME", value_parser = some_time, default_value = "1s")]
    pub(crate) interval: Duration,
    /// Stop after this time: 500ms, 10s, 2m
    #[arg(long = "for", value_name = "TIME", value_parser = some_time)]
    pub(crate) time: Option<Duration>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub(crate) format: TopFormatArg,
    /// Also write a recording to this file
    #[arg(long, value_name = "FILE", requires = "steal")]
    pub(crate) record: Option<PathBuf>,
}

/// How exits are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopByArg {
    /// All vCPUs of a VM together
    Vm,
    /// Each vCPU
    Vcpu,
}

/// How an interval is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopFormatArg {
    /// Tables for people
    Table,
    /// One JSON object per line
    Jsonl,
}
