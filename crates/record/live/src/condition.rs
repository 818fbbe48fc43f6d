//! Conditions on live figures: `web: p99(EPT_MISCONFIG) > 500us`, `run_queue > 10%`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use timeline::VcpuActivity;

use crate::interval::{Interval, Row};
use crate::states::States;
use crate::sums::Sums;

/// Min exits for a quantile: one slow exit of two is no 99th percentile.
const MIN_EXITS: u64 = 20;
/// Max characters of a condition.
const MAX_CHARS: usize = 256;

/// A condition on one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    /// The VM; `None`: each VM.
    vm: Option<String>,
    figure: Figure,
    above: bool,
    limit: f64,
}

/// A figure of a VM.
#[derive(Clone, Debug, PartialEq)]
enum Figure {
    /// A quantile of times from exit to entry, in nanoseconds: of one reason, or of all non-waiting exits.
    Quantile(f64, Option<String>),
    /// Exits per second: of one reason, or of all non-waiting exits.
    Rate(Option<String>),
    /// Run-queue wait of its vCPUs, as a share of their time.
    RunQueue,
}

/// A condition that was true.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The condition's text.
    pub condition: String,
    pub vm: String,
    /// The figure as text, with its unit.
    pub value: String,
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}: {})", self.condition, self.vm, self.value)
    }
}

/// The text is not a valid condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a condition: write [VM:] FIGURE > LIMIT, where FIGURE is p50, p90, p99 or p999 (a time: 500us), rate (per second), each with or without (REASON), or run_queue (a percentage: 10%)"
)]
pub struct NoCondition(String);

impl FromStr for Condition {
    type Err = NoCondition;

    fn from_str(text: &str) -> Result<Self, NoCondition> {
        let wrong = || NoCondition(text.chars().take(MAX_CHARS).collect());
        let (subject, above, right) = match (text.split_once('>'), text.split_once('<')) {
            (Some((subject, right)), None) => (subject, true, right),
            (None, Some((subject, right))) => (subject, false, right),
            _ => return Err(wrong()),
        };
        // A VM's name may contain colons.
        let (vm, figure) = match subject.trim().rsplit_once(':') {
            Some((vm, figure)) => (Some(vm.trim().to_owned()), figure.trim()),
            None => (None, subject.trim()),
        };
        let figure = Figure::parse(figure).ok_or_else(wrong)?;
        let limit = figure.limit(right.trim()).filter(|limit| limit.is_finite() && *limit >= 0.0);
        let limit = limit.ok_or_else(wrong)?;
        if text.chars().count() > MAX_CHARS || vm.as_ref().is_some_and(String::is_empty) {
            return Err(wrong());
        }
        Ok(Self { text: text.trim().to_owned(), vm, figure, above, limit })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Condition {
    /// The first VM, by name, for which the condition is true in an interval.
    #[must_use]
    pub fn holds(&self, interval: &Interval) -> Option<Held> {
        let figures = match &self.figure {
            Figure::RunQueue => run_queue(interval),
            Figure::Quantile(quantile, reason) => {
                let quantile_of = |sums: &Sums| {
                    let value = sums.times.quantile_ns(*quantile)?;
                    (sums.times.count() >= MIN_EXITS).then_some(value as f64)
                };
                exits(interval, reason.as_deref(), quantile_of)
            }
            Figure::Rate(reason) => {
                let seconds = interval.interval_ns() as f64 / 1e9;
                exits(interval, reason.as_deref(), |sums| Some(sums.count as f64 / seconds))
            }
        };
        let is_its = |vm: &str| self.vm.as_deref().is_none_or(|own_vm| own_vm == vm);
        let holds = |value: f64| if self.above { value > self.limit } else { value < self.limit };
        let (vm, value) = figures.into_iter().find(|(vm, value)| is_its(vm) && holds(*value))?;
        Some(Held { condition: self.text.clone(), vm, value: self.figure.shown(value) })
    }
}

impl Figure {
    fn parse(text: &str) -> Option<Self> {
        let (name, reason) = match text.split_once('(') {
            Some((name, rest)) => (name.trim(), Some(rest.strip_suffix(')')?.trim().to_owned())),
            None => (text, None),
        };
        if reason.as_ref().is_some_and(String::is_empty) {
            return None;
        }
        Some(match (name, reason) {
            ("p50", reason) => Self::Quantile(0.5, reason),
            ("p90", reason) => Self::Quantile(0.9, reason),
            ("p99", reason) => Self::Quantile(0.99, reason),
            ("p999", reason) => Self::Quantile(0.999, reason),
            ("rate", reason) => Self::Rate(reason),
            ("run_queue", None) => Self::RunQueue,
            _ => return None,
        })
    }

    fn limit(&self, text: &str) -> Option<f64> {
        let end =
            text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at_checked(end)?;
        let number: f64 = number.parse().ok()?;
        Some(match (self, unit.trim()) {
            (Self::Quantile(..), "ns") => number,
            (Self::Quantile(..), "us") => number * 1e3,
            (Self::Quantile(..), "ms") => number * 1e6,
            (Self::Quantile(..), "s") => number * 1e9,
            (Self::RunQueue, "%") => number / 100.0,
            (Self::Rate(_), "" | "/s") => number,
            _ => return None,
        })
    }

    fn shown(&self, value: f64) -> String {
        match self {
            Self::Quantile(..) => format!("{:.1} us", value / 1e3),
            Self::RunQueue => format!("{:.1}%", value * 100.0),
            Self::Rate(_) => format!("{value:.0}/s"),
        }
    }
}

/// A figure of the exits of each VM.
fn exits(
    interval: &Interval,
    reason: Option<&str>,
    figure_of: impl Fn(&Sums) -> Option<f64>,
) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::<String, Sums>::new();
    let is_meant = |row: &&Row| match reason {
        Some(reason) => row.reason.eq_ignore_ascii_case(reason),
        None => !row.waiting,
    };
    for row in interval.rows.iter().filter(is_meant) {
        if let Some(vm) = &row.vm {
            sums.entry(vm.clone()).or_default().add(&row.sums);
        }
    }
    sums.into_iter().filter_map(|(vm, sums)| Some((vm, figure_of(&sums)?))).collect()
}

/// Run-queue wait of each VM's vCPUs, as a share of their time.
pub(crate) fn run_queue(interval: &Interval) -> BTreeMap<String, f64> {
    let mut states = BTreeMap::<String, States>::new();
    for vcpu in &interval.vcpus {
        states.entry(vcpu.vm.clone()).or_default().add(&vcpu.states);
    }
    let share = |(vm, states): (String, States)| {
        let waited_ns =
            states.time_ns(VcpuActivity::Preempted) + states.time_ns(VcpuActivity::Waiting);
        let all_ns = states.total_ns();
        (all_ns > 0).then(|| (vm, waited_ns as f64 / all_ns as f64))
    };
    states.into_iter().filter_map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::{exits_of, vcpu_of};

    fn condition(text: &str) -> Condition {
        text.parse().unwrap()
    }

    fn interval() -> Interval {
        Interval {
            begin_ns: 0,
            end_ns: 2_000_000_000,
            rows: vec![exits_of("web", "npf", 100, 600_000), exits_of("db", "npf", 10, 9_000_000)],
            vcpus: vec![vcpu_of("web", 850, 150), vcpu_of("web", 950, 50), vcpu_of("db", 999, 1)],
            ..Interval::default()
        }
    }

    #[test]
    fn conditions_hold_of_the_vms_that_they_name() {
        let interval = interval();
        let held = |text: &str| condition(text).holds(&interval).map(|held| held.vm);
        assert_eq!(held("p99(npf) > 500us").as_deref(), Some("web"));
        assert_eq!(held("web: p50(NPF) > 500us").as_deref(), Some("web"));
        assert_eq!(held("web: p99(npf) > 1ms"), None);
        assert_eq!(held("p99(hlt) > 1ns"), None, "there is none");
        assert_eq!(held("db: p99(npf) > 1us"), None, "ten are too few");
        assert_eq!(held("rate > 49/s").as_deref(), Some("web"));
        assert_eq!(held("db: rate(npf) < 6").as_deref(), Some("db"));
        assert_eq!(held("run_queue > 9.9%").as_deref(), Some("web"));
        assert_eq!(held("run_queue > 10.1%"), None);
        assert_eq!(held("db:run_queue<1%").as_deref(), Some("db"));
    }

    #[test]
    fn what_held_says_its_figure() {
        let held = condition("web: run_queue > 1%").holds(&interval()).unwrap();
        assert_eq!(held.to_string(), "web: run_queue > 1% (web: 10.0%)");
    }

    #[test]
    fn other_texts_are_no_conditions() {
        let wrong = [
            "",
            ">",
            "p99",
            "p98 > 1us",
            "p99 > 1",
            "p99 > 1%",
            "p99() > 1us",
            "p99(x > 1us",
            "run_queue(x) > 1%",
            "run_queue > 1us",
            "rate > 1us",
            "rate > -1",
            "p99 > 1us > 2us",
            ": rate > 1",
            "p99 > 1e400s",
            "rate > .",
        ];
        for text in wrong {
            assert!(text.parse::<Condition>().is_err(), "{text}");
        }
        assert!(format!("{}: rate > 1", "x".repeat(300)).parse::<Condition>().is_err());
        assert_eq!(condition("a:b: rate > 1").vm.as_deref(), Some("a:b"));
    }
}
