//! Arguments of `diff`.

use std::path::PathBuf;

use analyses::diff::{Condition, QUESTIONS, Question};
use clap::Args;
use command::args::share;

use super::debug_files::DebugFilesArgs;
use super::{MemoryArgs, OutputArgs, PartArgs};

/// Arguments of `diff`.
#[derive(Debug, Args)]
#[command(
    override_usage = "hyperscope diff [OPTIONS] [REPORT] A B\n       \
                      hyperscope diff [OPTIONS] [REPORT] A… -- B…",
    after_help = "Examples:\n  \
    hyperscope diff before.dat after.dat                       exits of two recordings\n  \
    hyperscope diff nested old.hscope new.hscope               nested exits of two sessions\n  \
    hyperscope diff boot a1.hscope a2.hscope -- b1.hscope b2.hscope    phases of boots
  \
    hyperscope diff path virtio.dat vhost.dat                  finds the hop that differs\n  \
    hyperscope diff profile virtio.hscope vhost.hscope         functions, and calls that moved\n  \
    hyperscope diff profile --flame out.svg a.hscope b.hscope  a flame graph of the difference\n  \
    hyperscope diff a1.dat a2.dat a3.dat -- b1.dat b2.dat b3.dat   several runs of each\n  \
    hyperscope diff --fail-if 'p99 > +10%' before.dat after.dat    for CI: exit code 3\n\n\
Conditions: [report.][reason:]metric OP [+|-]N[%|x|ns|us|ms|s], with > >= < or <=. N with %, x or a\n\
sign is a change from A to B, which must also be significant; otherwise it is a value of B.\n\
Metrics of exits: count, share, mean, p50, p90, p99, time, kernel, user, off_cpu, halt_poll;\n\
of nested: count, reflected, ancillary, factor, mean, round_trip, p50, p99, time;\n\
of path: count, mean, p50, p90, p99, time, of requests and of each of their steps;\n\
of cpu: time, count, mean, p99, of vCPUs in each state and of threads by their part;
\
of profile: self, total, of each function;\n\
of boot: duration, exits, exit_time, kernel, user, off_cpu, events, of each phase.\n\n\
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a condition of --fail-if holds."
)]
pub(crate) struct DiffArgs {
    /// The report to compare: exits, nested, path, cpu, profile or boot [default: exits]. Then the
    /// runs: A and B, or all runs of A. A run is a recording or a session
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// The runs of B, if a side has several
    #[arg(last = true, value_name = "B")]
    others: Vec<PathBuf>,
    /// Show all rows, not only significant ones
    #[arg(long)]
    pub(crate) all: bool,
    /// Omit changes below this percentage
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub(crate) min_effect: f64,
    /// Accepted share of false positives among significant differences; intervals have
    /// confidence 1 - alpha
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = share)]
    pub(crate) alpha: f64,
    /// Seed for resampling; the same seed gives the same report
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Exit with code 3 if this condition holds for a row; may be repeated
    #[arg(long, value_name = "CONDITION", value_parser = Condition::parse, allow_hyphen_values = true)]
    pub(crate) fail_if: Vec<Condition>,
    /// Let --fail-if ignore significance, even if the change may be chance
    #[arg(long, requires = "fail_if")]
    pub(crate) fail_on_estimate: bool,
    /// Let --fail-if accept recordings that lost events or are damaged
    #[arg(long, requires = "fail_if")]
    pub(crate) allow_losses: bool,
    /// With profile: write one flame graph of both sides to this file, coloured where they differ
    #[arg(long, value_name = "FILE")]
    pub(crate) flame: Option<PathBuf>,
    /// With profile: write folded stacks to this file, for other tools: a;b;c NS_A NS_B, per second
    #[arg(long, value_name = "FILE")]
    pub(crate) folded: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) debug_files: DebugFilesArgs,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What is to be compared with what.
#[derive(Debug)]
pub(crate) struct Sides<'a> {
    pub(crate) question: &'static Question,
    pub(crate) a: &'a [PathBuf],
    pub(crate) b: &'a [PathBuf],
}

impl DiffArgs {
    /// The report and the runs of both sides.
    ///
    /// # Errors
    /// When a side has no run, or it isn't clear which runs are whose; or a condition is on
    /// another report.
    pub(crate) fn sides(&self) -> Result<Sides<'_>, String> {
        let named = self
            .runs
            .first()
            .and_then(|first| QUESTIONS.iter().find(|question| first.as_os_str() == question.name));
        let runs = self.runs.get(usize::from(named.is_some())..).unwrap_or(&[]);
        let (a, b) = match (runs, self.others.as_slice()) {
            ([a], []) => {
                return Err(format!(
                    "{} has nothing to be compared with: use diff A B",
                    a.display()
                ));
            }
            ([_, _], []) => runs.split_at(1),
            ([], _) => return Err("nothing to compare: use diff A B, or diff A… -- B…".to_owned()),
            (several, []) => {
                return Err(format!(
                    "{} runs: put -- between the runs of A and the runs of B",
                    several.len()
                ));
            }
            (a, b) => (a, b),
        };
        for (side, runs) in [("A", a), ("B", b)] {
            if let Some(run) = named_twice(runs) {
                return Err(format!(
                    "{} is listed twice among the runs of {side}: remove one",
                    run.display()
                ));
            }
        }
        let question = named.or(QUESTIONS.first()).ok_or("nothing can be compared")?;
        if (self.flame.is_some() || self.folded.is_some()) && !question.sampled {
            return Err(format!(
                "--flame and --folded: {} has no stacks; use diff profile",
                question.name
            ));
        }
        for condition in &self.fail_if {
            condition.check_for(question).map_err(|error| format!("--fail-if: {error}"))?;
        }
        Ok(Sides { question, a, b })
    }
}

/// A run that is named twice.
fn named_twice(runs: &[PathBuf]) -> Option<&PathBuf> {
    let mut seen = Vec::new();
    runs.iter().find(|run| {
        // A path that can't be resolved can't be opened either: opening it reports the error.
        let place = std::fs::canonicalize(run).unwrap_or_else(|_| (*run).clone());
        let again = seen.contains(&place);
        seen.push(place);
        again
    })
}

fn percent(text: &str) -> Result<f64, String> {
    let value = text.trim_end_matches('%').parse::<f64>().ok();
    value
        .filter(|value| (0.0..1e6).contains(value))
        .ok_or_else(|| "expected a percentage, such as 5".to_owned())
}
