//! Arguments of `virtio`.

use std::path::PathBuf;

use clap::Args;

use super::{MethodArgs, OutputArgs};
use crate::args::memory::MemoryArgs;
use crate::args::part::PartArgs;

/// Arguments of `virtio`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope record --guest web --guest-kprobe @virtio --for 10s -o NAME.hscope\n  \
    hyperscope virtio NAME.hscope                  queues of all guests of the session\n  \
    hyperscope virtio guest.dat                    a guest's recording alone\n  \
    hyperscope virtio --format json NAME.hscope    all of it, for scripts\n\n\
    Needs probes in the guest's kernel, which its agent sets. The set @virtio works without permission from \
    the guest's owner.")]
pub(crate) struct VirtioArgs {
    /// Recordings of guests, with or without their hosts', or sessions
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    #[command(flatten)]
    pub(crate) method: MethodArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
