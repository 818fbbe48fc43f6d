//! Arguments of `bench tracers`.

use clap::{Args, ValueEnum};
use experiment::bench::tracers::{Subject, Tracer};

use crate::args::OutputArgs;

/// Arguments of `bench tracers`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope bench tracers --count-instructions\n  \
    hyperscope bench tracers --tracer ftrace --tracer hypercall --subject syscalls --only costs\n  \
    hyperscope bench tracers --levels 3 --tracer hypercall-1 --format json -o tracers.json\n\n\
Needs the guest's module: make kmod. Each tracer is measured in steps that do one thing more each, so\n\
that the report shows what its cost is made of. The same guest is also recorded on its host with all\n\
events of its exits and with fewer, packed and not.")]
pub(crate) struct BenchTracersArgs {
    /// Measure these tracers [default: all]
    #[arg(long = "tracer", value_name = "NAME", value_parser = Tracer::ALL.map(Tracer::name))]
    pub(crate) tracers: Vec<String>,
    /// Trace these subjects [default: all]
    #[arg(long = "subject", value_name = "NAME", value_parser = Subject::ALL.map(Subject::name))]
    pub(crate) subjects: Vec<String>,
    /// Make one of the two tables alone
    #[arg(long, value_name = "TABLE")]
    pub(crate) only: Option<TracersTable>,
    /// Runs of each step
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// System calls of a run; switches are as many
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    pub(crate) iterations: u64,
    /// What the order of runs is drawn from [default: the time]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// 3: trace a guest's guest, too, by hypercalls to its own host
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=3))]
    pub(crate) levels: u8,
    /// Let the lab's time be the number of instructions that it executes, and so costs a count that
    /// nothing else on this system changes; one CPU for the host, in emulation
    #[arg(long)]
    pub(crate) count_instructions: bool,
    /// Fetch nothing: fail when something is missing
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// A table of `bench tracers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TracersTable {
    /// What each tracer costs an event
    Costs,
    /// What the host's recordings hold
    Volumes,
}
