//! Arguments of `profile`.

use clap::builder::NonEmptyStringValueParser;
use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use report::ProfileBy;

use super::{MethodArgs, OutputArgs};
use crate::args::debug_files::DebugFilesArgs;
use crate::args::memory::MemoryArgs;
use crate::args::part::PartArgs;

/// Arguments of `profile`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope profile host.dat                     what vCPUs did, and where their guests were\n  \
    hyperscope profile host.dat guest.dat           with the guest's functions and threads\n  \
    hyperscope profile --by comm NAME.hscope        by thread of the guest\n  \
    hyperscope profile --by instruction --symbol vmx_vcpu_run --context 3 NAME.hscope\n  \
    hyperscope profile --flame out.svg NAME.hscope  a flame graph that adds up to the vCPUs' time\n  \
    hyperscope profile --format json NAME.hscope    all of it, for scripts\n\n\
    Where a guest was is known from the exits that interrupts of the host cause: any recording with\n\
    kvm_entry and kvm_exit has them. Of sessions that were sampled (record --sample) the host's code and\n\
    its stacks are known, too.")]
pub(crate) struct ProfileArgs {
    /// Recordings of a host and its guests, or sessions
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Rows of tables and CSV are of these; JSON has all
    #[arg(long, value_name = "KEY", default_value = "symbol")]
    pub(crate) by: ProfileByArg,
    /// Show functions of this name alone, with shares of their time; by instruction: in the order of the code
    ///
    /// A pattern with * and ? names several. JSON has all functions.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) symbol: Option<String>,
    /// By instruction: show the N before each that samples saw, too
    ///
    /// A sample is at the instruction that was to run next: most of its time is that of those before it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) context: Option<u8>,
    /// Show the first N rows; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub(crate) top: usize,
    /// Show the time in which guests had nothing to do, too
    #[arg(long)]
    pub(crate) idle: bool,
    /// Show the VMM's other threads and the kernel's own that work for VMs, too: of hosts that were sampled
    #[arg(long)]
    pub(crate) threads: bool,
    /// Leave stacks that guests sampled of themselves (record --guest-sample) as they are
    ///
    /// Else functions at their ends get the shares that the host saw: a guest's own timer can't interrupt code
    /// that runs with interrupts off.
    #[arg(long)]
    pub(crate) raw: bool,
    /// Name the kernel's code of a guest that was not recorded itself by this list of its symbols, or recording of it
    ///
    /// The list is the guest's /proc/kallsyms, read by its root. VM=FILE says whose it is, where there are several VMs. A
    /// guest's own recording, given next to its host's, comes first.
    #[arg(long, value_name = "[VM=]FILE", alias = "guestkallsyms")]
    pub(crate) guest_kallsyms: Vec<String>,
    /// Name the kernel's code of a guest inside a guest by this list of its symbols, or recording of it
    ///
    /// The list is its /proc/kallsyms, read by its root. VM=FILE says whose guest's guest it is, where there are
    /// several VMs.
    #[arg(long, value_name = "[VM=]FILE")]
    pub(crate) nested: Vec<String>,
    /// Write a flame graph to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) flame: Option<PathBuf>,
    /// Write stacks to this file, as other tools read them: a;b;c N
    #[arg(long, value_name = "FILE")]
    pub(crate) folded: Option<PathBuf>,
    /// Write a profile that pprof opens to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) pprof: Option<PathBuf>,
    /// Write a profile that speedscope opens to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) speedscope: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) debug_files: DebugFilesArgs,
    #[command(flatten)]
    pub(crate) method: MethodArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What rows are of, under its command-line name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProfileByArg(pub(crate) ProfileBy);

impl ValueEnum for ProfileByArg {
    fn value_variants<'a>() -> &'a [Self] {
        &const {
            [
                Self(ProfileBy::Symbol),
                Self(ProfileBy::Instruction),
                Self(ProfileBy::Comm),
                Self(ProfileBy::State),
                Self(ProfileBy::Vm),
            ]
        }
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self.0 {
            ProfileBy::Vm => "Virtual machine",
            ProfileBy::State => "What vCPUs did: guest, exits by reason, waiting",
            ProfileBy::Comm => "Thread: of guests where they were recorded, else the vCPU's",
            ProfileBy::Symbol => "Function that ran",
            ProfileBy::Instruction => "Instruction that ran, where its code is known",
        };
        Some(PossibleValue::new(self.0.name()).help(help))
    }
}
