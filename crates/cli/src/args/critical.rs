//! Arguments of `critical`.

use clap::builder::NonEmptyStringValueParser;
use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::{MethodArgs, OutputArgs};
use crate::args::memory::MemoryArgs;
use crate::args::part::PartArgs;

/// Arguments of `critical`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("whose"), after_help = "Examples:\n  \
    hyperscope critical NAME.hscope                           lists the threads\n  \
    hyperscope critical --task dd NAME.hscope                 what the guest's dd waited for\n  \
    hyperscope critical --task web/nginx NAME.hscope          in the VM web only\n  \
    hyperscope critical --task 'vm-119 vCPU 0' host.dat       what a vCPU's thread waited for\n  \
    hyperscope critical --request 1:worst host.dat guest.dat  the slowest request of the first path\n  \
    hyperscope critical --task dd --format json NAME.hscope   for scripts\n\n\
    Needs sched_switch and sched_waking of every machine, and the host's KVM events. With a guest's irq\n\
    events it also recognises waits for timers.")]
pub(crate) struct CriticalArgs {
    /// Recordings of a host and its guests, or sessions
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Threads with this name or number, on any machine; MACHINE/NAME selects one machine
    #[arg(long, value_name = "NAME|PID", group = "whose", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) task: Option<String>,
    /// One request instead, by its id from path --format json, such as 1:p50, 1:p99 or 1:worst
    #[arg(long, value_name = "ID", group = "whose")]
    pub(crate) request: Option<String>,
    /// Show the first N parts; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,
    #[command(flatten)]
    pub(crate) method: MethodArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
