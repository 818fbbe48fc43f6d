//! Arguments of `mark`.

use clap::Args;

/// Arguments of `mark`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope mark 'the test begins'\n\n\
In a guest of KVM the text goes to the host by hypercalls, and its recording of kvm:kvm_hypercall\n\
has it: hyperscope hypertrace prints it. No right is needed. Elsewhere it is written to this\n\
kernel's own trace_marker.")]
pub(crate) struct MarkArgs {
    /// The text, up to 448 bytes
    #[arg(required = true, value_name = "TEXT")]
    pub(crate) text: Vec<String>,
    /// Write to this kernel's trace_marker, also in a guest
    #[arg(long)]
    pub(crate) here: bool,
}
