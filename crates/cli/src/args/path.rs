//! Arguments of `path`.

use std::path::PathBuf;

use clap::Args;

use super::{MethodArgs, OutputArgs};
use crate::args::memory::MemoryArgs;
use crate::args::part::PartArgs;

/// Arguments of `path`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope path host.dat                                  all paths that requests take\n  \
    hyperscope path host.dat guest.dat                        from guest task to guest task\n  \
    hyperscope path --start kvm_mmio --end 'kp_tun_*' host.dat  between events that you choose\n  \
    hyperscope path --format json host.dat                    for scripts\n\n\
    Causes are derived from sched_waking, sched_switch and KVM's events. Record those, and add functions\n\
    on the path as kprobes (hyperscope record --kprobe tun_get_user).")]
pub(crate) struct PathArgs {
    /// Recordings of a host and its guests, or sessions
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// First event of paths [default: accesses by guests, and incoming packets and interrupts]
    #[arg(long, value_name = "EVENT")]
    pub(crate) start: Option<String>,
    /// Last event of paths [default: the point where the guest continues]
    #[arg(long, value_name = "EVENT")]
    pub(crate) end: Option<String>,
    /// Show the first N paths, by the total time of their requests; 0 shows all except rare ones
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) top: usize,
    #[command(flatten)]
    pub(crate) method: MethodArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
