//! Arguments of `bench advice`.

use std::path::PathBuf;

use clap::Args;

use crate::args::OutputArgs;

/// Arguments of `bench advice`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope bench advice --switch ioeventfd\n  \
    hyperscope bench advice --predict --format json -o predicted.json\n  \
    hyperscope bench advice --against predicted.json --format json -o measured.json\n\n\
Side A of a switch is as advice finds it, side B as it asks for. Predictions come from recordings of\n\
side A alone; then both sides run in pairs, in an order drawn by chance, and what B takes less is\n\
held against them. The lab's time is a count of instructions, in emulation.")]
pub(crate) struct BenchAdviceArgs {
    /// Try these [default: all]
    #[arg(long = "switch", value_name = "NAME", value_parser = switch_names())]
    pub(crate) switches: Vec<String>,
    /// Runs of side A to predict by, and pairs of runs
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) runs: u32,
    /// Only predict: run nothing but side A
    #[arg(long, conflicts_with = "against")]
    pub(crate) predict: bool,
    /// Hold runs against what --predict --format json wrote
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<PathBuf>,
    /// What the order of sides is drawn from [default: the time]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Fetch nothing: fail when something is missing
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn switch_names() -> Vec<&'static str> {
    experiment::bench::advice::SWITCHES.iter().map(|switch| switch.name).collect()
}
