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
Side A has a setting that advice complains about, side B the suggested one. Predictions use recordings\n\
of side A alone. Then both sides run in pairs, in random order, and the savings of B are compared with\n\
the predictions. The lab is emulated, and its time counts instructions.")]
pub(crate) struct BenchAdviceArgs {
    /// Test these switches [default: all]
    #[arg(long = "switch", value_name = "NAME", value_parser = switch_names())]
    pub(crate) switches: Vec<String>,
    /// Runs of side A for the prediction, and number of pairs
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) runs: u32,
    /// Only predict, which runs side A alone
    #[arg(long, conflicts_with = "against")]
    pub(crate) predict: bool,
    /// Compare runs with predictions that --predict --format json wrote
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<PathBuf>,
    /// Seed of the random order of sides [default: the time]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Download nothing; fail if something is missing
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn switch_names() -> Vec<&'static str> {
    experiment::bench::advice::SWITCHES.iter().map(|switch| switch.name).collect()
}
