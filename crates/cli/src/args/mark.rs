//! Arguments of `mark`.

use clap::Args;

/// Arguments of `mark`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope mark 'the test begins'\n\n\
The text goes into every recording that runs on this machine. A KVM guest also sends it to its host\n\
by hypercall: a recording of kvm:kvm_hypercall there has it, and hyperscope hypertrace prints it.\n\
The command reports where the text went. Marking recordings of this machine needs root; marking the\n\
host needs no privilege. If nothing records, the text is only in the kernel's own trace buffer.")]
pub(crate) struct MarkArgs {
    /// The text, up to 448 bytes
    #[arg(required = true, value_name = "TEXT")]
    pub(crate) text: Vec<String>,
    /// Mark only this machine, even in a guest, and also write to the kernel's own trace_marker
    #[arg(long)]
    pub(crate) here: bool,
}
