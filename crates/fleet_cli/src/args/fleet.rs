//! Arguments of `fleet`.

use std::path::PathBuf;

use analyses::diff::Condition;
use clap::{Args, Subcommand};
use fleet::{Effect, Metric, Selection};

use super::OutputArgs;
use super::lake::Date;
use super::memory::MemoryArgs;

/// Arguments of `fleet`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope fleet diff --a \"kernel_release = '6.1.0-55'\" --b \"kernel_release = '6.1.0-56'\" /srv/lake\n  \
    hyperscope fleet since /srv/lake\n  \
    hyperscope fleet simulate /tmp/lake --hosts 20 --days 6 fixtures/x86-svm/nested.dat\n\n\
    A lake holds the tables of recordings of many hosts; hyperscope lake add fills it.")]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    pub(crate) verb: FleetVerb,
}

/// What to do with a fleet.
#[derive(Debug, Subcommand)]
pub(crate) enum FleetVerb {
    /// Compare hosts with other hosts, or with themselves at another time
    Diff(Box<FleetDiffArgs>),
    /// Find the day on which the numbers of hosts changed
    Since(Box<FleetSinceArgs>),
    /// Make a lake of simulated hosts from a recording, with known differences
    Simulate(Box<SimulateArgs>),
}

/// Arguments of `fleet diff`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope fleet diff --a \"date < '2026-11-20'\" --b \"date >= '2026-11-20'\" LAKE   before and after\n  \
    hyperscope fleet diff --a \"pool = 'stable'\" --b \"pool = 'canary'\" LAKE            labels\n  \
    hyperscope fleet diff --a \"date < '2026-11-20'\" --b \"date >= '2026-11-20'\" \\\n  \
    \x20   --control \"kernel_release LIKE '%-55'\" LAKE        some hosts were not updated\n  \
    hyperscope fleet diff --fail-if 'npf:mean > +2%' --a … --b … LAKE     exit code 3\n  \
    hyperscope fleet diff --a … --b … LAKE -o fleet.html                  a page for a browser\n\n\
    Conditions on sessions: columns of sessions (docs/formats/lake.md), date, labels; =, <>, <, <=, >, >=,\n\
    LIKE, IN, IS NULL, AND, OR, NOT. Conditions of --fail-if are those of diff.\n\
    Each host counts once; docs/fleet.md explains the comparison.\n\n\
    If FILE ends in .html, the output is a page with hosts by reasons, outliers, series over days (fleet\n\
    since), and commands that open reports of sessions. It is one file and needs no network.\n\n\
    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a condition of --fail-if holds.")]
pub(crate) struct FleetDiffArgs {
    /// The lake: a folder, or s3://BUCKET/FOLDER
    #[arg(value_name = "LAKE")]
    pub(crate) lake: PathBuf,
    /// Condition that selects the sessions of side A
    #[arg(long, value_name = "CONDITION", allow_hyphen_values = true)]
    pub(crate) a: Selection,
    /// Condition that selects the sessions of side B
    #[arg(long, value_name = "CONDITION", allow_hyphen_values = true)]
    pub(crate) b: Selection,
    /// Condition that selects unchanged hosts, by all of their sessions of B; a change that they
    /// share is not reported
    #[arg(long, value_name = "CONDITION", allow_hyphen_values = true)]
    pub(crate) control: Option<Selection>,
    /// Compare only hosts that have the same value of this column of sessions, or of this label
    #[arg(long, value_name = "COLUMN", default_value = "cpu_model")]
    pub(crate) strata: String,
    /// Only these metrics, separated by commas: count, mean, p99, mean_cost, time, cost_per_s
    #[arg(long, value_name = "METRIC,…", value_delimiter = ',', value_parser = metric)]
    pub(crate) metric: Vec<Metric>,
    /// Omit sessions that lost a larger share of their events
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    pub(crate) most_lost: f64,
    /// Show all rows, even those without a difference
    #[arg(long)]
    pub(crate) all: bool,
    /// Accepted share of false positives among significant differences; intervals have confidence 1
    /// - alpha
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = command::args::share)]
    pub(crate) alpha: f64,
    /// Seed for resampling; the same seed gives the same report
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Exit with code 3 if this condition holds for a row that differs; may be repeated
    #[arg(long, value_name = "CONDITION", value_parser = Condition::read, allow_hyphen_values = true)]
    pub(crate) fail_if: Vec<Condition>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `fleet since`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope fleet since LAKE\n  \
    hyperscope fleet since --where \"date >= '2026-10-01' AND pool = 'stable'\" LAKE   only these sessions\n  \
    hyperscope fleet since --strata cpu_model,pool LAKE         also by kind of host\n  \
    hyperscope fleet since --step 7 LAKE                        by weeks, if load follows the days of a week\n  \
    hyperscope fleet since --fail-if 'npf:mean > +2%' LAKE      exit code 3\n\n\
    Conditions are those of fleet diff. If at least four days have enough hosts, each number of each\n\
    reason is tested for changes; docs/fleet.md explains how.\n\n\
    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a condition of --fail-if holds.")]
pub(crate) struct FleetSinceArgs {
    /// The lake: a folder, or s3://BUCKET/FOLDER
    #[arg(value_name = "LAKE")]
    pub(crate) lake: PathBuf,
    /// Only sessions that meet this condition
    #[arg(long = "where", value_name = "CONDITION", allow_hyphen_values = true)]
    pub(crate) selection: Option<Selection>,
    /// Also test each kind of hosts separately, by these columns of sessions or labels, separated
    /// by commas
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', default_value = "cpu_model")]
    pub(crate) strata: Vec<String>,
    /// Only these metrics, separated by commas: count, mean, p99, mean_cost, time, cost_per_s
    #[arg(long, value_name = "METRIC,…", value_delimiter = ',', value_parser = metric)]
    pub(crate) metric: Vec<Metric>,
    /// Group this many days; use 7 if load follows the days of a week
    #[arg(long, value_name = "DAYS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=366))]
    pub(crate) step: u32,
    /// Omit sessions that lost a larger share of their events
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    pub(crate) most_lost: f64,
    /// Accepted share of false positives among reported changes; intervals have confidence 1 -
    /// alpha
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = command::args::share)]
    pub(crate) alpha: f64,
    /// Exit with code 3 if this condition holds for a lasting change; may be repeated
    #[arg(long, value_name = "CONDITION", value_parser = Condition::read, allow_hyphen_values = true)]
    pub(crate) fail_if: Vec<Condition>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `fleet simulate`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope fleet simulate /tmp/lake --hosts 20 --days 6 trace.dat\n  \
    hyperscope fleet simulate /tmp/lake --effect 'npf:cost=+3%,model=1,day=3' trace.dat\n\n\
    Each host has exits like those of the recording, with random differences, and one session per day.\n\
    Hosts alternate between two CPU models, simulated-0 and simulated-1. An effect is REASON:cost=+N% or\n\
    REASON:count=+N%, optionally only on one model (model=0 or 1), on one host (host=7), or from one day\n\
    on (day=0 is the first). The source_uri of sessions marks them as simulated.")]
pub(crate) struct SimulateArgs {
    /// The lake: a folder, created if it is missing, or s3://BUCKET/FOLDER
    #[arg(value_name = "LAKE")]
    pub(crate) lake: PathBuf,
    /// The recording from which the exits of hosts derive
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Number of hosts
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) hosts: u32,
    /// Number of days
    #[arg(long, value_name = "NUMBER", default_value_t = 6)]
    pub(crate) days: u32,
    /// The first day
    #[arg(long, value_name = "DATE", default_value = "2026-11-01")]
    pub(crate) from_day: Date,
    /// Length of a session, in slices of 10 s
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    pub(crate) slices: u32,
    /// An effect to simulate, such as npf:cost=+3%,model=1,day=3; may be repeated
    #[arg(long, value_name = "EFFECT")]
    pub(crate) effect: Vec<Effect>,
    /// Random seed; the same seed gives the same lake
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
}

fn metric(text: &str) -> Result<Metric, String> {
    let names = || Metric::ALL.map(Metric::short).join(", ");
    Metric::named(text).ok_or_else(|| format!("unknown metric {text}; use one of: {}", names()))
}
