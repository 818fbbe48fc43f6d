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
Needs the guest's module: make kmod. Each tracer is measured in steps, each of which adds one part, so\n\
that the report splits the cost into parts. The host also records the same guest, with all events of its\n\
exits and with fewer, packed and unpacked.")]
pub(crate) struct BenchTracersArgs {
    /// Measure these tracers [default: all]
    #[arg(long = "tracer", value_name = "NAME", value_parser = Tracer::ALL.map(Tracer::name))]
    pub(crate) tracers: Vec<String>,
    /// Trace these subjects [default: all]
    #[arg(long = "subject", value_name = "NAME", value_parser = Subject::ALL.map(Subject::name))]
    pub(crate) subjects: Vec<String>,
    /// Make only one of the two tables
    #[arg(long, value_name = "TABLE")]
    pub(crate) only: Option<TracersTable>,
    /// Runs per step
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// System calls per run, and as many switches
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    pub(crate) iterations: u64,
    /// Seed of the random order of runs [default: the time]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// With 3, also trace a nested guest, by hypercalls to its own host
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=3))]
    pub(crate) levels: u8,
    /// Count executed instructions as the lab's time, so that other load on this system does not
    /// change the costs. Uses emulation, with one CPU for the host
    #[arg(long)]
    pub(crate) count_instructions: bool,
    /// Download nothing; fail if something is missing
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// A table of `bench tracers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TracersTable {
    /// Cost of each tracer per event
    Costs,
    /// Size of the host's recordings
    Volumes,
}
