//! Arguments of `cpu`.

use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use report::CpuBy;

use super::{MethodArgs, OutputArgs};
use crate::args::memory::MemoryArgs;
use crate::args::part::PartArgs;

/// Arguments of `cpu`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope cpu host.dat guest.dat              vCPUs by state, and threads that serve VMs\n  \
    hyperscope cpu --by task NAME.hscope           true use of guests' threads\n  \
    hyperscope cpu --by vm,cpu NAME.hscope         VMs, and which threads used the host's CPUs\n  \
    hyperscope cpu --format json NAME.hscope       all of it, for scripts")]
pub(crate) struct CpuArgs {
    /// Recordings of a host and its guests, or sessions
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Show CPU use by these keys, separated by commas; CSV has only the first [default:
    /// vcpu,taken,thread]
    #[arg(long, value_name = "KEY,…", value_delimiter = ',', hide_default_value = true)]
    pub(crate) by: Vec<CpuByArg>,
    /// Also show idle threads and threads that serve no VM
    #[arg(long)]
    pub(crate) idle: bool,
    /// Show only the N threads with the highest use
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    #[command(flatten)]
    pub(crate) method: MethodArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Whose use is shown, under its command-line name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuByArg(pub(crate) CpuBy);

impl ValueEnum for CpuByArg {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [CpuByArg; CpuBy::ALL.len()] = [
            CpuByArg(CpuBy::Vm),
            CpuByArg(CpuBy::Vcpu),
            CpuByArg(CpuBy::Taken),
            CpuByArg(CpuBy::Thread),
            CpuByArg(CpuBy::Task),
            CpuByArg(CpuBy::Cpu),
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self.0 {
            CpuBy::Vm => "Virtual machine",
            CpuBy::Vcpu => "vCPU, by state",
            CpuBy::Taken => "Thread that ran on a CPU while a vCPU waited for it in the run queue",
            CpuBy::Thread => "Thread of the host, without idling",
            CpuBy::Task => "Thread of a guest: its true use, and the time stolen from it",
            CpuBy::Cpu => "CPU of the host",
        };
        Some(PossibleValue::new(self.0.name()).help(help))
    }
}
