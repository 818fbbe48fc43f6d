//! Arguments of `lab corpus`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use experiment::corpus::RecordingKind;

/// Arguments of `lab corpus`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope lab corpus -o corpus --seed 1\n  \
    hyperscope lab corpus -o corpus --seed 1 --only exit_storm,none --kinds host\n  \
    hyperscope lab corpus -o corpus --seed 1 --only ./mine.toml --variants 1\n  \
    hyperscope lab corpus --list\n\n\
DIR/recordings has one folder for each recording, with a name that tells nothing; DIR/labels.json\n\
says what was planted in which, when, and which counters show that it took effect. Recordings whose\n\
cause took no effect are removed and listed as failed; then the exit code is 1.")]
pub(crate) struct LabCorpusArgs {
    /// Folder for the corpus
    #[arg(short, long, value_name = "DIR", required_unless_present = "list")]
    pub(crate) output: Option<PathBuf>,
    /// Number that variants, parameters and names are drawn from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Plant these causes only: ids, names of --list, or files [default: all]
    #[arg(long, value_name = "CAUSE", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Variants of each cause; those that have fewer are repeated with other parameters
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) variants: u32,
    /// What to record of each
    #[arg(long, value_name = "KIND", value_delimiter = ',', default_values_t = KindArg::ALL)]
    pub(crate) kinds: Vec<KindArg>,
    /// Also record the host without the cause, for workloads whose cause can be removed
    #[arg(long)]
    pub(crate) counterfactuals: bool,
    /// List the causes, and record nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// Download nothing; fail if something is missing
    #[arg(long)]
    pub(crate) offline: bool,
}

/// What to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindArg {
    /// A session with the host alone
    Host,
    /// A session with host and guest
    #[value(name = "host+guest")]
    HostGuest,
    /// What perf record writes on the host
    #[value(name = "perf.data")]
    Perf,
}

impl KindArg {
    const ALL: [Self; 3] = [Self::Host, Self::HostGuest, Self::Perf];
}

impl std::fmt::Display for KindArg {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(RecordingKind::from(*self).name())
    }
}

impl From<KindArg> for RecordingKind {
    fn from(kind: KindArg) -> Self {
        match kind {
            KindArg::Host => Self::Host,
            KindArg::HostGuest => Self::HostGuest,
            KindArg::Perf => Self::Perf,
        }
    }
}
