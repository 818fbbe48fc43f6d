//! Arguments of `ab`.

use std::path::PathBuf;
use std::time::Duration;

use analyses::ab::MAX_SIDES;
use analyses::diff::Condition;
use clap::Args;
use experiment::{Metric, Stop};

use super::OutputArgs;
use super::lab_workload::LabWorkload;
use command::args::time::some_time;
use session::Misuse;

/// Arguments of `ab`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope ab --a 'cpupower idle-set -D 0' --b 'cpupower idle-set -E' -- make -j8\n  \
    hyperscope ab --a 'echo 0 > $P' --b 'echo 200000 > $P' --until 2% -- ./workload\n  \
    hyperscope ab --a 'ssh g vhost off' --b 'ssh g vhost on' \\\n  \
    \x20   --metric bps=json:end.sum_received.bits_per_second -- iperf3 -J -c guest\n  \
    hyperscope ab --parameter-list ns=0,50000,200000 --a 'echo {ns} > $P' -- ./workload\n  \
    hyperscope ab --a A --b B --exits --vm web -- ssh web make   also compares exits by reason\n  \
    hyperscope ab --a A --b B --record runs -- ./bench            then hyperscope diff runs/*-a.hscope -- runs/*-b.hscope\n  \
    hyperscope ab --lab --a '' --b vhost --lab-workload stream    in the guests of two labs\n  \
    hyperscope ab --lab --a halt-poll=0 --b halt-poll=200000 --exits -- ./bench\n  \
    hyperscope ab --a A --b B -o ab.html -- ./bench           a page with all runs as points\n  \
    hyperscope ab --a A --b B --fail-if 'wall > +3%' -- ./bench                for CI: exit code 3\n\n\
    Each block runs every configuration once, in random order, so that slow changes of the machine \
    affect all of them. Setups, --prepare and --teardown are shell commands. HYPERSCOPE_SIDE is set to \
    a, b, ... for them and for the workload.\n\
    Conditions: metric OP [+|-]N[%|x|ns|us|ms|s], as for diff.")]
pub(crate) struct AbArgs {
    /// Run the workload in the guests of labs, one lab per configuration, all up at the same time;
    /// --a and --b list the settings to switch, separated by commas: vhost, no-ioeventfd,
    /// halt-poll=NS, no-x2apic, no-huge-pages, levels=N, guest-cpus=N, processor=NAME, append=WORD,
    /// guest-append=WORD
    #[arg(long, conflicts_with_all = ["prepare", "teardown", "vm"])]
    pub(crate) lab: bool,
    /// Run a workload that is built into the guests, with its own metrics, instead of WORKLOAD
    #[arg(long, value_name = "NAME", value_enum, requires = "lab", conflicts_with = "workload")]
    pub(crate) lab_workload: Option<LabWorkload>,
    /// Shell command that sets up A before each of its runs
    #[arg(long, value_name = "SETUP")]
    pub(crate) a: String,
    /// Shell command that sets up B; repeat it for C and so on. Each one is compared with A
    #[arg(long, value_name = "SETUP", required_unless_present = "parameter_list")]
    pub(crate) b: Vec<String>,
    /// Derive the configurations from the values of one parameter: A is --a with {NAME} replaced by
    /// the first value, B by the second, and so on
    #[arg(long, value_name = "NAME=VALUE,…", conflicts_with = "b", value_parser = Parameter::parse)]
    pub(crate) parameter_list: Option<Parameter>,
    /// Shell command before each run, after the setup; it is not timed
    #[arg(long, value_name = "LINE")]
    pub(crate) prepare: Option<String>,
    /// Shell command after each run, even if the run failed
    #[arg(long, value_name = "LINE")]
    pub(crate) teardown: Option<String>,
    /// Number of blocks
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) runs: u32,
    /// Run blocks until the confidence interval of the ratio is at most this far from its middle;
    /// the ratio is that of the first --metric, or of the time
    #[arg(long, value_name = "PERCENT", conflicts_with = "runs", value_parser = width)]
    pub(crate) until: Option<f64>,
    /// Start no further block after this time [default: 10m with --until]
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) budget: Option<Duration>,
    /// Number of warm-up blocks that are not counted
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(..=1000))]
    pub(crate) warmup: u32,
    /// Kill a command and all its children after this time
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = some_time)]
    pub(crate) timeout: Duration,
    /// Continue when the workload fails, and count the run. If a run times out or prints no number
    /// for a --metric, its block is left out
    #[arg(long, short = 'i', visible_alias = "ignore-failure")]
    pub(crate) ignore_failures: bool,
    /// A number that the workload prints: NAME=REGEX, where the first group is the number, or
    /// NAME=json:a.b.0; may be repeated
    #[arg(long, value_name = "NAME=WHERE", value_parser = Metric::parse)]
    pub(crate) metric: Vec<Metric>,
    /// Also count this host's exits during each run, with their cost and by reason, in the kernel
    /// as top does
    #[arg(long, group = "counted")]
    pub(crate) exits: bool,
    /// Also record each run as a session in this new folder (block-03-b.hscope). Exits are counted
    /// as with --exits; exits, cpu, path and diff read the sessions
    #[arg(long, value_name = "DIR", group = "counted")]
    pub(crate) record: Option<PathBuf>,
    /// Count or record only this VM
    #[arg(long, value_name = "NAME", requires = "counted")]
    pub(crate) vm: Option<String>,
    /// Seed of the random order
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Exit with code 3 if this condition holds; a change must also be significant. May be repeated
    #[arg(long, value_name = "CONDITION", value_parser = Condition::read, allow_hyphen_values = true)]
    pub(crate) fail_if: Vec<Condition>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// The command to time: a program with its arguments, or one shell command
    #[arg(required_unless_present = "lab_workload", last = true, value_name = "WORKLOAD")]
    pub(crate) workload: Vec<String>,
}

/// A parameter and its values.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    name: String,
    values: Vec<String>,
}

impl Parameter {
    fn parse(text: &str) -> Result<Self, String> {
        let usage = || "expected NAME=VALUE,VALUE with at least two values".to_owned();
        let (name, values) = text.split_once('=').ok_or_else(usage)?;
        let values: Vec<String> = values.split(',').map(str::to_owned).collect();
        let is_right = !name.is_empty() && values.len() >= 2;
        is_right.then(|| Self { name: name.to_owned(), values }).ok_or_else(usage)
    }
}

impl AbArgs {
    /// The setups of A and the others.
    ///
    /// # Errors
    /// When there are too many, or the parameter occurs nowhere.
    pub(crate) fn setups(&self) -> Result<Vec<String>, Misuse> {
        let setups: Vec<String> = match &self.parameter_list {
            None => std::iter::once(&self.a).chain(&self.b).cloned().collect(),
            Some(Parameter { name, values }) => {
                let place = format!("{{{name}}}");
                if !self.a.contains(&place) {
                    return Err(Misuse(format!("--parameter-list: --a does not contain {place}")));
                }
                values.iter().map(|value| self.a.replace(&place, value)).collect()
            }
        };
        match setups.len() {
            ..=MAX_SIDES => Ok(setups),
            many => Err(Misuse(format!(
                "{many} configurations are too many: at most {MAX_SIDES} can be compared"
            ))),
        }
    }

    /// When to stop.
    pub(crate) fn stop(&self) -> Stop {
        self.until.map_or(Stop::Blocks(self.runs as usize), Stop::Width)
    }

    /// For how long new blocks may start.
    pub(crate) fn budget(&self) -> Option<Duration> {
        const OF_WIDTH: Duration = Duration::from_secs(600);
        self.budget.or_else(|| self.until.map(|_| OF_WIDTH))
    }
}

fn width(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse::<f64>().ok();
    let percent = number.filter(|percent| *percent > 0.0 && *percent <= 100.0);
    percent
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "expected a percentage such as 2%".to_owned())
}
