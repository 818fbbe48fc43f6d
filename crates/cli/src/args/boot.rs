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
    hyperscope boot NAME.hscope                      phases, slowest initcalls, and their exits\n  \
    hyperscope boot --until 'login' host.dat guest.dat\n  \
    hyperscope boot guest.dat                        the guest's side alone\n  \
    hyperscope boot host.dat                         from a guest's hypercalls alone\n  \
    hyperscope boot --svg boot.svg NAME.hscope       draws it\n\n\
    The guest's kernel starts to record if its command line has \
    trace_event=initcall:*,module:module_load,sched:sched_process_exec trace_clock=x86-tsc \
    trace_buf_size=4M. To collect that on the host, start hyperscope record --guest NAME --guest-boot before the guest.")]
pub(crate) struct BootArgs {
    /// Recordings of a host and its guests, or sessions
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    /// Read only events from this time on: in seconds as printed by events, or with a unit (500ms,
    /// 2m); +TIME counts from the beginning
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, help_heading = PART)]
    pub(crate) from: Option<When>,
    /// Read only events before this time
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, help_heading = PART)]
    pub(crate) to: Option<When>,
    #[command(flatten)]
    pub(crate) vms: VmArgs,
    /// The boot ends at the first mark that contains this text [default: the first mark]
    #[arg(long, value_name = "TEXT")]
    pub(crate) until: Option<String>,
    /// The shutdown begins at the first mark that contains this text [default: at a program that
    /// shuts down, or at the kernel's own steps if they are recorded]
    #[arg(long, value_name = "TEXT")]
    pub(crate) down: Option<String>,
    /// Show the N slowest initcalls
    #[arg(long, value_name = "N", default_value_t = session::DEFAULT_BOOT_STEPS)]
    pub(crate) top: usize,
    /// Also draw the boot into this SVG file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) method: MethodArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
