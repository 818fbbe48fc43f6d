//! Arguments of `bench`.

mod advice;
mod tracers;

use clap::{Args, Subcommand};

use super::OutputArgs;

pub(crate) use self::advice::BenchAdviceArgs;
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
    /// Try whether what advice suggests saves what it says, in a lab of its own
    Advice(BenchAdviceArgs),
    /// Measure what recording a guest costs over each channel, in a lab of its own
    Channels(BenchChannelsArgs),
    /// Measure what each kind of exit costs: in this guest, in a tiny machine, at every level of a lab
    Exits(BenchExitsArgs),
    /// Measure what each tracer costs a guest's programs, part by part
    Tracers(BenchTracersArgs),
}

/// Arguments of `bench channels`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope bench channels\n  \
    hyperscope bench channels --channel shm --channel virtio-serial --rounds 10\n  \
    hyperscope bench channels --format json -o channels.json\n\n\
Each run of a channel is paired with one that records nothing, right before or after it. Besides\n\
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
    experiment::bench::channels::Variant::ALL.map(experiment::bench::channels::Variant::name).into()
}

/// Arguments of `bench exits`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope bench exits                       # in this guest: what its user space can cause\n  \
    hyperscope bench exits --vm                  # in a machine of its own, over /dev/kvm\n  \
    hyperscope bench exits --lab --levels 3      # both, at every level of a lab\n  \
    hyperscope bench exits --lab --count-instructions --format json -o exits.json\n  \
    hyperscope bench exits --lab --levels 1 --ablate tracers --kind hypercall\n  \
    hyperscope bench exits --lab --levels 1 --ablate boot --kind hypercall\n  \
    hyperscope bench exits --lab --ablate processor:vgif --count-exits --kind hypercall\n  \
    hyperscope bench exits --vm --ablate kvm/halt_poll_ns=0 --kind hlt-wake --runs 20\n\n\
A row is the mean and sample standard deviation of several runs, in cycles of the place's own time\n\
stamp counter, less what the loop itself takes. What can't be measured says why.")]
pub(crate) struct BenchExitsArgs {
    /// Make them in a tiny machine of its own, over /dev/kvm
    #[arg(long, conflicts_with = "lab")]
    pub(crate) vm: bool,
    /// Make them at every level of a lab of its own, in tiny machines and in guests
    #[arg(long)]
    pub(crate) lab: bool,
    /// Machines in the lab, one inside the other
    #[arg(long, value_name = "N", default_value_t = 2, requires = "lab", value_parser = clap::value_parser!(u8).range(1..=3))]
    pub(crate) levels: u8,
    /// Let the lab's time be the number of instructions that it executes, so that cycles are counts
    /// that nothing else on this system changes; one CPU, in emulation
    #[arg(long, requires = "lab")]
    pub(crate) count_instructions: bool,
    /// Switch one thing at a time, in the tiny machine or below it, and show what that changes: tracers,
    /// settings, all (both), boot (in a lab), or single ones (no-ioeventfd, vhost, no-irqchip,
    /// kvm-events, kvm-sched-events, kprobe, function, function-graph, MODULE/PARAMETER=VALUE), and in a lab, where
    /// machines are booted again for it, boot:WORD on level 1's kernel's command line (boot:mitigations=off,
    /// boot:kvm_amd.npt=0), guest-boot:WORD on its guests', processor:NAME (processor:vgif, processor:-npt)
    #[arg(long, value_name = "WHAT", num_args = 0..=1, default_missing_value = "all", value_delimiter = ',', value_parser = toggles)]
    pub(crate) ablate: Option<Vec<Vec<experiment::bench::Toggle>>>,
    /// Let each step keep what those before it have switched, and compare it with the one before
    #[arg(long, requires = "ablate")]
    pub(crate) cumulative: bool,
    /// Count level 1's exits for each operation by reason, too, in every step
    #[arg(long, requires = "ablate", requires = "lab")]
    pub(crate) count_exits: bool,
    /// Operations in a run of a step
    #[arg(long, value_name = "N", default_value_t = 300, requires = "ablate", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) operations: u64,
    /// What the order of steps is drawn from [default: the time]
    #[arg(long, value_name = "NUMBER", requires = "ablate")]
    pub(crate) seed: Option<u64>,
    /// Make these kinds [default: all; hypercall, port-kernel, kick-port, send and hlt-wake with --ablate]
    #[arg(long = "kind", value_name = "KIND", value_parser = kind_names())]
    pub(crate) kinds: Vec<String>,
    /// Runs of each kind
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// How long a run takes, about
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) run_ms: u64,
    /// Fetch nothing: fail when something is missing
    #[arg(long, requires = "lab")]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn toggles(word: &str) -> Result<Vec<experiment::bench::Toggle>, String> {
    experiment::bench::Toggle::of_word(word)
        .ok_or_else(|| "there is no such thing to switch".into())
}

fn kind_names() -> Vec<&'static str> {
    experiment::bench::ExitKind::ALL.map(experiment::bench::ExitKind::name).into()
}
