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
    /// Check in a lab whether the suggestions of advice save what they predict
    Advice(BenchAdviceArgs),
    /// Measure in a lab what recording a guest costs over each channel
    Channels(BenchChannelsArgs),
    /// Measure what each kind of exit costs: in this guest, in a tiny VM, or at every level of a
    /// lab
    Exits(BenchExitsArgs),
    /// Measure what each tracer costs the programs of a guest, step by step
    Tracers(BenchTracersArgs),
}

/// Arguments of `bench channels`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope bench channels\n  \
    hyperscope bench channels --channel shm --channel virtio-serial --rounds 10\n  \
    hyperscope bench channels --format json -o channels.json\n\n\
Each run of a channel is paired with a run without recording, right before or after it. Besides\n\
the channels of hyperscope-agent, it measures an unread kernel buffer (kernel-buffer), cat to\n\
virtio-serial ports, and trace-cmd agent over vsock.")]
pub(crate) struct BenchChannelsArgs {
    /// Measure these channels [default: all]
    #[arg(long = "channel", value_name = "NAME", value_parser = variant_names())]
    pub(crate) channels: Vec<String>,
    /// Pairs of runs per channel
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Duration of a run
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seconds: u64,
    /// Scheduler events per second in the guest
    #[arg(long, value_name = "EVENTS", default_value_t = 10_000)]
    pub(crate) rate: u64,
    /// Buffer size per CPU in the guest's kernel
    #[arg(long, value_name = "KIB", default_value_t = 1024)]
    pub(crate) buffer: u32,
    /// Seed of the random order of runs [default: the time]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Skip the search for the highest rate without loss
    #[arg(long)]
    pub(crate) no_search: bool,
    /// Count executed instructions as the lab's time, so that other load on this system does not
    /// change the overhead. Uses emulation, with one CPU each for host and guest
    #[arg(long)]
    pub(crate) count_instructions: bool,
    /// Download nothing; fail if something is missing
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
    hyperscope bench exits                       # in this guest: exits that user space can cause\n  \
    hyperscope bench exits --vm                  # in a VM of its own, through /dev/kvm\n  \
    hyperscope bench exits --lab --levels 3      # both, at every level of a lab\n  \
    hyperscope bench exits --lab --count-instructions --format json -o exits.json\n  \
    hyperscope bench exits --lab --levels 1 --ablate tracers --kind hypercall\n  \
    hyperscope bench exits --lab --levels 1 --ablate boot --kind hypercall\n  \
    hyperscope bench exits --lab --ablate processor:vgif --count-exits --kind hypercall\n  \
    hyperscope bench exits --vm --ablate kvm/halt_poll_ns=0 --kind hlt-wake --runs 20\n\n\
A row shows the mean and sample standard deviation of several runs, in cycles of the local time\n\
stamp counter, without the cost of the loop. If a kind can't be measured, its row says why.")]
pub(crate) struct BenchExitsArgs {
    /// Measure in a tiny VM, through /dev/kvm
    #[arg(long, conflicts_with = "lab")]
    pub(crate) vm: bool,
    /// Measure at every level of a lab, in tiny VMs and in guests
    #[arg(long)]
    pub(crate) lab: bool,
    /// Number of nested machines in the lab
    #[arg(long, value_name = "N", default_value_t = 2, requires = "lab", value_parser = clap::value_parser!(u8).range(1..=3))]
    pub(crate) levels: u8,
    /// Count executed instructions as the lab's time, so that other load on this system does not
    /// change the cycles. Uses emulation, with one CPU
    #[arg(long, requires = "lab")]
    pub(crate) count_instructions: bool,
    /// Switch one setting at a time, in the tiny VM or below it, and show the difference. Groups:
    /// tracers, settings, all (both), boot (in a lab). Single settings: no-ioeventfd, vhost,
    /// no-irqchip, kvm-events, kvm-sched-events, kprobe, function, function-graph,
    /// MODULE/PARAMETER=VALUE. In a lab, which reboots its machines for them: boot:WORD on the
    /// kernel command line of level 1 (boot:mitigations=off, boot:kvm_amd.npt=0), guest-boot:WORD
    /// on that of its guests, processor:NAME (processor:vgif, processor:-npt)
    #[arg(long, value_name = "WHAT", num_args = 0..=1, default_missing_value = "all", value_delimiter = ',', value_parser = toggles)]
    pub(crate) ablate: Option<Vec<Vec<experiment::bench::Toggle>>>,
    /// Keep the settings of earlier steps switched, and compare each step with the one before
    #[arg(long, requires = "ablate")]
    pub(crate) cumulative: bool,
    /// Also count the exits of level 1 per operation, by reason, in every step
    #[arg(long, requires = "ablate", requires = "lab")]
    pub(crate) count_exits: bool,
    /// Operations per run of a step
    #[arg(long, value_name = "N", default_value_t = 300, requires = "ablate", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) operations: u64,
    /// Seed of the random order of steps [default: the time]
    #[arg(long, value_name = "NUMBER", requires = "ablate")]
    pub(crate) seed: Option<u64>,
    /// Measure these kinds of exits [default: all; with --ablate hypercall, port-kernel, kick-port,
    /// send and hlt-wake]
    #[arg(long = "kind", value_name = "KIND", value_parser = kind_names())]
    pub(crate) kinds: Vec<String>,
    /// Runs per kind
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// Approximate duration of a run
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) run_ms: u64,
    /// Download nothing; fail if something is missing
    #[arg(long, requires = "lab")]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn toggles(word: &str) -> Result<Vec<experiment::bench::Toggle>, String> {
    experiment::bench::Toggle::of_word(word).ok_or_else(|| "unknown setting".into())
}

fn kind_names() -> Vec<&'static str> {
    experiment::bench::ExitKind::ALL.map(experiment::bench::ExitKind::name).into()
}
