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
    hyperscope ab --parameter-list ns=0,50000,200000 --a 'echo {ns} > $P' -- ./workload     three of them\n  \
    hyperscope ab --a A --b B --exits --vm web -- ssh web make   which exits B has fewer of\n  \
    hyperscope ab --a A --b B --record runs -- ./bench            then hyperscope diff runs/*-a.hscope -- runs/*-b.hscope\n  \
    hyperscope ab --lab --a '' --b vhost --lab-workload stream    in guests of two labs\n  \
    hyperscope ab --lab --a halt-poll=0 --b halt-poll=200000 --exits -- ./bench\n  \
    hyperscope ab --a A --b B -o ab.html -- ./bench           a page with all runs as points\n  \
    hyperscope ab --a A --b B --fail-if 'wall > +3%' -- ./bench                for CI: exit code 3\n\n\
    Each block is one run of every configuration, in an order by chance: what changes slowly on the\n\
    machine is in all. Setups, --prepare and --teardown are lines for the shell, HYPERSCOPE_SIDE is\n\
    a, b and so on in all of them, and in the workload.\n\
    Conditions: metric OP [+|-]N[%|x|ns|us|ms|s], as those of diff.")]
pub(crate) struct AbArgs {
    /// Run the workload in guests of labs, one for each configuration, which are up at the same time; --a and --b name what is
    /// switched there, with commas: vhost, no-ioeventfd, halt-poll=NS, no-x2apic, no-huge-pages, levels=N, guest-cpus=N,
    /// processor=NAME, append=WORD, guest-append=WORD
    #[arg(long, conflicts_with_all = ["prepare", "teardown", "vm"])]
    pub(crate) lab: bool,
    /// In place of WORKLOAD one that guests have, with its own metrics
    #[arg(long, value_name = "NAME", value_enum, requires = "lab", conflicts_with = "workload")]
    pub(crate) lab_workload: Option<LabWorkload>,
    /// A line for the shell before each run that sets up A
    #[arg(long, value_name = "SETUP")]
    pub(crate) a: String,
    /// One that sets up B; given again, C and so on, each of which is compared with A
    #[arg(long, value_name = "SETUP", required_unless_present = "parameter_list")]
    pub(crate) b: Vec<String>,
    /// Configurations by the values of one parameter: A is --a with the first value in place of {NAME}, B with the second, and
    /// so on
    #[arg(long, value_name = "NAME=VALUE,…", conflicts_with = "b", value_parser = Parameter::parse)]
    pub(crate) parameter_list: Option<Parameter>,
    /// One before each run, after the setup: what is not to be timed
    #[arg(long, value_name = "LINE")]
    pub(crate) prepare: Option<String>,
    /// One after each run, also after one that failed
    #[arg(long, value_name = "LINE")]
    pub(crate) teardown: Option<String>,
    /// This many blocks of one run of each
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) runs: u32,
    /// Blocks until the interval of the ratio reaches no further than this from its middle: of the first --metric,
    /// or of the time
    #[arg(long, value_name = "PERCENT", conflicts_with = "runs", value_parser = width)]
    pub(crate) until: Option<f64>,
    /// No block begins later than this after the first one [default: 10m with --until]
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) budget: Option<Duration>,
    /// Blocks at the beginning that don't count
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(..=1000))]
    pub(crate) warmup: u32,
    /// The longest that one command may take; it is ended then with all that it started
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = some_time)]
    pub(crate) timeout: Duration,
    /// Go on when the workload fails: such a run counts as others do. Where it takes too long, or has no number for a
    /// --metric, its block is left out
    #[arg(long, short = 'i', visible_alias = "ignore-failure")]
    pub(crate) ignore_failures: bool,
    /// A number that the workload prints: NAME=REGEX, whose first group it is, or NAME=json:a.b.0; may be given
    /// several times
    #[arg(long, value_name = "NAME=WHERE", value_parser = Metric::parse)]
    pub(crate) metric: Vec<Metric>,
    /// Count this host's exits during each run, too: how many, what they cost, by reason, inside the kernel as top does
    #[arg(long, group = "counted")]
    pub(crate) exits: bool,
    /// Record each run, too: a session for each in this new folder (block-03-b.hscope), whose exits are counted as those of
    /// --exits are, and which exits, cpu, path and diff take apart
    #[arg(long, value_name = "DIR", group = "counted")]
    pub(crate) record: Option<PathBuf>,
    /// Of this VM alone
    #[arg(long, value_name = "NAME", requires = "counted")]
    pub(crate) vm: Option<String>,
    /// What the order is drawn from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// End with code 3 if this holds; a change has to be significant, too. May be given several times
    #[arg(long, value_name = "CONDITION", value_parser = Condition::read, allow_hyphen_values = true)]
    pub(crate) fail_if: Vec<Condition>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// What is timed: a program with its arguments, or one line for the shell
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
        let usage = || "NAME=VALUE,VALUE with two values at least".to_owned();
        let (name, values) = text.split_once('=').ok_or_else(usage)?;
        let values: Vec<String> = values.split(',').map(str::to_owned).collect();
        let is_right = !name.is_empty() && values.len() >= 2;
        is_right.then(|| Self { name: name.to_owned(), values }).ok_or_else(usage)
    }
}

impl AbArgs {
    /// How A and the others are set up.
    ///
    /// # Errors
    /// When there are too many, or the parameter occurs nowhere.
    pub(crate) fn setups(&self) -> Result<Vec<String>, Misuse> {
        let setups: Vec<String> = match &self.parameter_list {
            None => std::iter::once(&self.a).chain(&self.b).cloned().collect(),
            Some(Parameter { name, values }) => {
                let place = format!("{{{name}}}");
                if !self.a.contains(&place) {
                    return Err(Misuse(format!("--parameter-list: {place} does not occur in --a")));
                }
                values.iter().map(|value| self.a.replace(&place, value)).collect()
            }
        };
        match setups.len() {
            ..=MAX_SIDES => Ok(setups),
            many => {
                Err(Misuse(format!("{many} configurations are too many: {MAX_SIDES} are the most")))
            }
        }
    }

    /// When there are enough blocks.
    pub(crate) fn stop(&self) -> Stop {
        self.until.map_or(Stop::Blocks(self.runs as usize), Stop::Width)
    }

    /// How long blocks may begin.
    pub(crate) fn budget(&self) -> Option<Duration> {
        const OF_WIDTH: Duration = Duration::from_secs(600);
        self.budget.or_else(|| self.until.map(|_| OF_WIDTH))
    }
}

fn width(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse::<f64>().ok();
    let percent = number.filter(|percent| *percent > 0.0 && *percent <= 100.0);
    percent.map(|percent| percent / 100.0).ok_or_else(|| "a share such as 2%".to_owned())
}
