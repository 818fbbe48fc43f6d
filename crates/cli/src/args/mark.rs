//! Arguments of `mark`.

use clap::Args;

/// Arguments of `mark`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope mark 'the test begins'\n\n\
The text goes into every recording that runs on this machine, and in a guest of KVM to its host\n\
by hypercalls, too: a recording there of kvm:kvm_hypercall has it, and hyperscope hypertrace\n\
prints it. The command says where the text went. Recordings of this machine take root, the host\n\
takes no right. Where nothing is recorded, the text is in the kernel's own trace buffer alone.")]
pub(crate) struct MarkArgs {
    /// The text, up to 448 bytes
    #[arg(required = true, value_name = "TEXT")]
    pub(crate) text: Vec<String>,
    /// Mark this machine alone, also in a guest, and its kernel's own trace_marker, too
    #[arg(long)]
    pub(crate) here: bool,
}
