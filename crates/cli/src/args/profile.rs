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
    hyperscope profile host.dat                     what vCPUs did, and which code their guests ran\n  \
    hyperscope profile host.dat guest.dat           with the guest's functions and threads\n  \
    hyperscope profile --by comm NAME.hscope        by thread of the guest\n  \
    hyperscope profile --by instruction --symbol vmx_vcpu_run --context 3 NAME.hscope\n  \
    hyperscope profile --flame out.svg NAME.hscope  a flame graph that adds up to the vCPUs' time\n  \
    hyperscope profile --format json NAME.hscope    all of it, for scripts\n\n\
    The guest's code is known at exits that host interrupts cause; every recording with kvm_entry and\n\
    kvm_exit has them. Sampled sessions (record --sample) also show the host's code and stacks.")]
pub(crate) struct ProfileArgs {
    /// Recordings of a host and its guests, or sessions
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Key of the rows in tables and CSV; JSON has all keys
    #[arg(long, value_name = "KEY", default_value = "symbol")]
    pub(crate) by: ProfileByArg,
    /// Show only functions with this name, with shares of their time; by instruction: in code order
    ///
    /// A pattern with * and ? matches several. JSON has all functions.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) symbol: Option<String>,
    /// By instruction: also show the N instructions before each sampled one
    ///
    /// A sample points at the instruction to run next, so the preceding instructions used most of
    /// its time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) context: Option<u8>,
    /// Show the first N rows; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub(crate) top: usize,
    /// Also show the time in which guests were idle
    #[arg(long)]
    pub(crate) idle: bool,
    /// On sampled hosts, also show the VMM's other threads and kernel threads that work for VMs
    #[arg(long)]
    pub(crate) threads: bool,
    /// Do not correct stacks that guests sampled themselves (record --guest-sample)
    ///
    /// By default, functions at the end of stacks get the shares that the host saw, because a
    /// guest's timer can't interrupt code that runs with interrupts off.
    #[arg(long)]
    pub(crate) raw: bool,
    /// Symbols for the kernel of a guest without its own recording: a symbol list, or a recording
    /// of that guest
    ///
    /// The list is the guest's /proc/kallsyms, read as root. With several VMs, write VM=FILE. A
    /// guest's recording that is read together with its host's takes precedence.
    #[arg(long, value_name = "[VM=]FILE", alias = "guestkallsyms")]
    pub(crate) guest_kallsyms: Vec<String>,
    /// Symbols for the kernel of a nested guest: a symbol list, or a recording of that guest
    ///
    /// The list is its /proc/kallsyms, read as root. With several VMs, write VM=FILE with the VM
    /// that runs the nested guest.
    #[arg(long, value_name = "[VM=]FILE")]
    pub(crate) nested: Vec<String>,
    /// Write a flame graph to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) flame: Option<PathBuf>,
    /// Write folded stacks to this file, for other tools: a;b;c N
    #[arg(long, value_name = "FILE")]
    pub(crate) folded: Option<PathBuf>,
    /// Write a profile for pprof to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) pprof: Option<PathBuf>,
    /// Write a profile for speedscope to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) speedscope: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) debug_files: DebugFilesArgs,
    #[command(flatten)]
    pub(crate) method: MethodArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// A key of rows under its command-line name.
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
            ProfileBy::State => "vCPU state: guest, exits by reason, waiting",
            ProfileBy::Comm => "Thread of the guest if it was recorded, otherwise of the vCPU",
            ProfileBy::Symbol => "Function that ran",
            ProfileBy::Instruction => "Instruction that ran, if its code is known",
        };
        Some(PossibleValue::new(self.0.name()).help(help))
    }
}
