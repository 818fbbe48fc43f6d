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
    A lake has the tables of many hosts' recordings: hyperscope lake add.")]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    pub(crate) verb: FleetVerb,
}

/// What to do with a fleet.
#[derive(Debug, Subcommand)]
pub(crate) enum FleetVerb {
    /// Compare hosts with others, or with themselves before
    Diff(Box<FleetDiffArgs>),
    /// Find since when hosts' numbers are others
    Since(Box<FleetSinceArgs>),
    /// Make a lake of hosts that there are not, from a recording, with known differences
    Simulate(Box<SimulateArgs>),
}

/// Arguments of `fleet diff`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope fleet diff --a \"date < '2026-11-20'\" --b \"date >= '2026-11-20'\" LAKE   before and after\n  \
    hyperscope fleet diff --a \"pool = 'stable'\" --b \"pool = 'canary'\" LAKE            labels\n  \
    hyperscope fleet diff --a \"date < '2026-11-20'\" --b \"date >= '2026-11-20'\" \\\n  \
    \x20   --control \"kernel_release LIKE '%-55'\" LAKE        of which some were not updated\n  \
    hyperscope fleet diff --fail-if 'npf:mean > +2%' --a … --b … LAKE     exit code 3\n  \
    hyperscope fleet diff --a … --b … LAKE -o fleet.html                  a page for a browser\n\n\
    Conditions on sessions: columns of sessions (docs/formats/lake.md), date, labels; =, <>, <, <=, >, >=,\n\
    LIKE, IN, IS NULL, AND, OR, NOT. Conditions of --fail-if are those of diff.\n\
    The host is the unit: docs/fleet.md says what is compared how.\n\n\
    A page, asked for by a FILE that ends in .html, has hosts by reasons, hosts that stand apart, series over\n\
    days (fleet since), and commands that open sessions' reports. It is one file and needs no network.\n\n\
    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a condition of --fail-if holds.")]
pub(crate) struct FleetDiffArgs {
    /// The lake: a folder, or s3://BUCKET/FOLDER
    #[arg(value_name = "LAKE")]
    pub(crate) lake: PathBuf,
    /// Sessions of the first side
    #[arg(long, value_name = "CONDITION", allow_hyphen_values = true)]
    pub(crate) a: Selection,
    /// Sessions of the second side
    #[arg(long, value_name = "CONDITION", allow_hyphen_values = true)]
    pub(crate) b: Selection,
    /// Hosts all of whose sessions of B are such were left as they are: what changed on them, too, is no change
    #[arg(long, value_name = "CONDITION", allow_hyphen_values = true)]
    pub(crate) control: Option<Selection>,
    /// Compare hosts with those of the same kind: a column of sessions, or a label
    #[arg(long, value_name = "COLUMN", default_value = "cpu_model")]
    pub(crate) strata: String,
    /// Only these numbers, separated by commas: count, mean, p99, mean_cost, time, cost_per_s
    #[arg(long, value_name = "METRIC,…", value_delimiter = ',', value_parser = metric)]
    pub(crate) metric: Vec<Metric>,
    /// Leave out sessions that lost a greater share of their events
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    pub(crate) most_lost: f64,
    /// Show all rows, not only those that differ
    #[arg(long)]
    pub(crate) all: bool,
    /// Share of differences called significant that may be none; intervals have the confidence left
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = command::args::share)]
    pub(crate) alpha: f64,
    /// What resamples are drawn from: the same seed gives the same report
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// End with code 3 if this holds for a row that differs; may be given several times
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
    hyperscope fleet since --where \"date >= '2026-10-01' AND pool = 'stable'\" LAKE   of some sessions\n  \
    hyperscope fleet since --strata cpu_model,pool LAKE         changes of some kinds of hosts\n  \
    hyperscope fleet since --step 7 LAKE                        by weeks, where days have a rhythm\n  \
    hyperscope fleet since --fail-if 'npf:mean > +2%' LAKE      exit code 3\n\n\
    Conditions on sessions, and those of --fail-if, are those of fleet diff. Where four days or more have enough\n\
    hosts, each number of each reason is looked at: docs/fleet.md says how.\n\n\
    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a condition of --fail-if holds.")]
pub(crate) struct FleetSinceArgs {
    /// The lake: a folder, or s3://BUCKET/FOLDER
    #[arg(value_name = "LAKE")]
    pub(crate) lake: PathBuf,
    /// Only sessions that this holds for
    #[arg(long = "where", value_name = "CONDITION", allow_hyphen_values = true)]
    pub(crate) selection: Option<Selection>,
    /// Also look at each kind of hosts alone, by these columns of sessions or labels, separated by commas
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', default_value = "cpu_model")]
    pub(crate) strata: Vec<String>,
    /// Only these numbers, separated by commas: count, mean, p99, mean_cost, time, cost_per_s
    #[arg(long, value_name = "METRIC,…", value_delimiter = ',', value_parser = metric)]
    pub(crate) metric: Vec<Metric>,
    /// Take as many days together; 7 where weeks have a rhythm
    #[arg(long, value_name = "DAYS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=366))]
    pub(crate) step: u32,
    /// Leave out sessions that lost a greater share of their events
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    pub(crate) most_lost: f64,
    /// Share of numbers said to change that may not; intervals have the confidence left
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = command::args::share)]
    pub(crate) alpha: f64,
    /// End with code 3 if this holds for a change that stays; may be given several times
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
    Each host has exits as those of the recording, some more and longer and some less, and a session a day.\n\
    Hosts have two models of CPUs in turn, simulated-0 and simulated-1. An effect is REASON:cost=+N% or\n\
    REASON:count=+N%, on hosts of a model (model=0 or 1), on one host (host=7) and from a day on (day=0 is\n\
    the first), where that is said. Sessions say in source_uri that they are simulated.")]
pub(crate) struct SimulateArgs {
    /// The lake: a folder, which is made where there is none, or s3://BUCKET/FOLDER
    #[arg(value_name = "LAKE")]
    pub(crate) lake: PathBuf,
    /// The recording that hosts' exits are like
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// How many hosts
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) hosts: u32,
    /// How many days
    #[arg(long, value_name = "NUMBER", default_value_t = 6)]
    pub(crate) days: u32,
    /// The first day
    #[arg(long, value_name = "DATE", default_value = "2026-11-01")]
    pub(crate) from_day: Date,
    /// How long a session is, in slices of 10 s
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    pub(crate) slices: u32,
    /// What differs, such as npf:cost=+3%,model=1,day=3; may be given several times
    #[arg(long, value_name = "EFFECT")]
    pub(crate) effect: Vec<Effect>,
    /// What chance is drawn from: the same seed gives the same lake
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
}

fn metric(text: &str) -> Result<Metric, String> {
    let names = || Metric::ALL.map(Metric::short).join(", ");
    Metric::named(text).ok_or_else(|| format!("no metric {text}; there are: {}", names()))
}
