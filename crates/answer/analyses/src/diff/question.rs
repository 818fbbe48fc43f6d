//! Description of a comparable report, a [`Question`]: key columns, metrics, and the measurement of one run.

use sources::Samples;
use timeline::Losses;

use super::series::Series;
use super::stacks::Stacks;
use crate::view::View;

/// A comparable report.
#[derive(Debug)]
pub struct Question {
    /// Name of the report on the command line.
    pub name: &'static str,
    /// Names of key columns, in the order of [`MeasuredGroup::key`].
    pub columns: &'static [&'static str],
    /// Metrics of each group.
    pub metrics: &'static [Metric],
    /// Index of the sum that orders groups: by the difference of its rate.
    pub weight: usize,
    /// Index of the sum that counts events: it determines the significance of rare groups.
    pub count: usize,
    /// Whether guests' recordings must be aligned before the measurement.
    pub aligned: bool,
    /// Whether it needs samples.
    pub sampled: bool,
    pub measure: Measure,
    /// Makes a group comparable in all runs, if some runs recorded fewer events.
    pub settle: fn(&mut [&mut MeasuredGroup]),
}

#[derive(Clone, Copy, Debug)]
pub struct RunInput<'r> {
    /// Its recordings, the host's first, with applied alignments of guests.
    pub view: View<'r>,
    /// Samples by recording, if the question needs them.
    pub samples: &'r [Option<Samples>],
}

/// Measures one run; the function argument receives the number of bytes read.
pub type Measure = fn(RunInput<'_>, &(dyn Fn(u64) + Sync)) -> Run;

#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Name; names of times contain their unit (`_ns`, `time_ns_per_s`).
    pub name: &'static str,
    /// A shorter name for conditions.
    pub short: &'static str,
    /// Unit of its values.
    pub unit: Unit,
    /// Estimator from sums and durations.
    pub estimator: Estimator,
    /// Index of the sum that counts samples, if samples determine its precision.
    pub samples: Option<usize>,
}

/// Unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds, or ticks of a clock without nanoseconds.
    Time,
    TimePerSecond,
    /// Events per second.
    CountPerSecond,
    /// From 0 to 1.
    Share,
    /// A ratio of two counts.
    Times,
}

/// Computes a metric from a group's sums (by index in [`super::Sums`]) and durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// A sum divided by the run's seconds.
    PerSecond(usize),
    /// A sum divided by the total's.
    Share(usize),
    /// A sum divided by another sum of the group.
    Per(usize, usize),
    /// A quantile of the durations, in thousandths.
    Quantile(u64),
}

/// The measurement of one run.
#[derive(Debug)]
pub struct Run {
    /// VMs, to match them between runs.
    pub vms: Vec<RunVm>,
    /// First and last time.
    pub span_ns: (u64, u64),
    pub groups: Vec<MeasuredGroup>,
    /// Totals that shares refer to.
    pub wholes: Vec<Series>,
    /// Whether times are nanoseconds; else they are ticks of the recording's clock.
    pub nanoseconds: bool,
    /// Losses of its recordings.
    pub lost: Lost,
    /// Callers and callees, if the question needs them.
    pub calls: Vec<CallTime>,
    /// Stacks, if the question needs them.
    pub stacks: Stacks,
}

/// Losses of a run, or of all runs of a side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Known number of missing events.
    pub events: u64,
    /// Number of unreadable places.
    pub places: u64,
}

impl Lost {
    /// Sums losses of recordings.
    pub(super) fn from_losses<'l>(losses: impl IntoIterator<Item = &'l Losses>) -> Self {
        let of_one =
            |loss: &Losses| Self { events: loss.events_gone(), places: loss.pages_damaged() };
        losses.into_iter().map(of_one).fold(Self::default(), Self::with)
    }

    /// Sum of both.
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            events: self.events.saturating_add(other.events),
            places: self.places.saturating_add(other.places),
        }
    }

    /// Whether there are any losses.
    #[must_use]
    pub fn is_any(self) -> bool {
        self != Self::default()
    }
}

/// Time in a function with one caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTime {
    pub function: String,
    /// Its caller; empty at the root of a stack.
    pub below: String,
    /// Role of the thread, or state of the vCPU.
    pub part: String,
    /// Time in the function and its callees, by alternating blocks of the run.
    pub time_ns: [u64; 2],
    pub samples: u64,
}

/// A VM's properties for matching.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunVm {
    /// Name; it can contain a thread id, which differs in each run.
    pub name: String,
    /// Number of vCPUs.
    pub vcpus: usize,
}

/// A property of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyValue {
    None,
    /// A VM, as index in [`Run::vms`].
    Vm(usize),
    Number(u64),
    Text(String),
}

/// The measurements of one group in one run.
#[derive(Clone, Debug)]
pub struct MeasuredGroup {
    /// One value per column in [`Question::columns`].
    pub key: Vec<KeyValue>,
    pub series: Series,
    /// Index in [`Run::wholes`] of the total for its shares.
    pub whole_index: Option<usize>,
    /// Bits of metrics in [`Question::metrics`] that this run has no events for.
    pub unrecorded: u32,
}
