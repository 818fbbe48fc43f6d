//! Arguments of `boot`.

use std::path::PathBuf;

use clap::Args;

use super::{MethodArgs, OutputArgs};
use crate::args::memory::MemoryArgs;
use crate::args::part::{PART, VmArgs};
use session::When;

/// Arguments of `boot`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope boot NAME.hscope                      phases, slowest initcalls, exits of each\n  \
    hyperscope boot --until 'login' host.dat guest.dat\n  \
    hyperscope boot guest.dat                        the guest's side alone\n  \
    hyperscope boot host.dat                         from a guest's hypercalls alone\n  \
    hyperscope boot --svg boot.svg NAME.hscope       a picture of it\n\n\
    The guest's kernel records from its command line on: trace_event=initcall:*,module:module_load,\n\
    sched:sched_process_exec trace_clock=x86-tsc trace_buf_size=4M. The host takes that with\n\
    hyperscope record --guest NAME --guest-boot, begun before the guest is started.")]
pub(crate) struct BootArgs {
    /// Recordings of a host and its guests, or sessions
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    /// Read only what happened from this time on, in seconds as events prints them or with a unit (500ms,
    /// 2m); +TIME counts from the beginning
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, help_heading = PART)]
    pub(crate) from: Option<When>,
    /// Read only what happened before this time
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, help_heading = PART)]
    pub(crate) to: Option<When>,
    #[command(flatten)]
    pub(crate) vms: VmArgs,
    /// The boot is over at the first mark that has this text in it [default: at the first mark]
    #[arg(long, value_name = "TEXT")]
    pub(crate) until: Option<String>,
    /// The shutdown begins at the first mark that has this text in it [default: at a program that
    /// shuts down, or at the kernel's own steps, where they are recorded]
    #[arg(long, value_name = "TEXT")]
    pub(crate) down: Option<String>,
    /// Show the N slowest initcalls
    #[arg(long, value_name = "N", default_value_t = session::DEFAULT_BOOT_STEPS)]
    pub(crate) top: usize,
    /// Write a picture to this file, too
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) method: MethodArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
