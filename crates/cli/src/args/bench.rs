//! Arguments of `bench`.

mod tracers;

use clap::{Args, Subcommand};

use super::OutputArgs;

pub(crate) use self::tracers::{BenchTracersArgs, TracersTable};

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) verb: BenchVerb,
}

/// What to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchVerb {
    /// Measure what recording a guest costs over each channel, in a lab of its own
    Channels(BenchChannelsArgs),
    /// Measure what each tracer costs a guest's programs, part by part
    Tracers(BenchTracersArgs),
}

/// Arguments of `bench channels`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope bench channels\n  \
    hyperscope bench channels --channel shm --channel virtio-serial --rounds 10\n  \
    hyperscope bench channels --format json -o channels.json\n\n\
Each run of a channel is paired with one that records nothing, right before or after it. Beside\n\
hyperscope-agent's channels, the kernel's buffer that nobody reads (kernel-buffer), cat to\n\
virtio-serial ports and trace-cmd agent over vsock take their turns.")]
pub(crate) struct BenchChannelsArgs {
    /// Measure these channels [default: all]
    #[arg(long = "channel", value_name = "NAME", value_parser = variant_names())]
    pub(crate) channels: Vec<String>,
    /// Pairs of runs of each
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// How long a run lasts
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seconds: u64,
    /// Scheduler events a second that the guest makes
    #[arg(long, value_name = "EVENTS", default_value_t = 10_000)]
    pub(crate) rate: u64,
    /// Size of each CPU's buffer in the guest's kernel
    #[arg(long, value_name = "KIB", default_value_t = 1024)]
    pub(crate) buffer: u32,
    /// What the order of runs is drawn from [default: the time]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Don't look for the highest rate without a loss
    #[arg(long)]
    pub(crate) no_search: bool,
    /// Let the lab's time be the number of instructions that it executes, and so overhead a count that
    /// nothing else on this system changes; one CPU each for host and guest, in emulation
    #[arg(long)]
    pub(crate) count_instructions: bool,
    /// Fetch nothing: fail when something is missing
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn variant_names() -> Vec<&'static str> {
    bench::channels::Variant::ALL.map(bench::channels::Variant::name).into()
}
