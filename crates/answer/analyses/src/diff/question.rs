//! What a report says of itself to be compared: its key columns, its metrics, and how one run is
//! measured. A report that can be compared is one [`Question`].

use sources::Samples;
use timeline::Losses;

use super::series::Series;
use super::stacks::Stacks;
use crate::view::View;

/// A report whose runs can be compared.
#[derive(Debug)]
pub struct Question {
    /// The name of the report, as on the command line.
    pub name: &'static str,
    /// What tells its groups apart, in the order of [`MeasuredGroup::key`].
    pub columns: &'static [&'static str],
    /// What is compared of each group.
    pub metrics: &'static [Metric],
    /// The sum that says how much a group matters: differences of its rate order the groups.
    pub weight: usize,
    /// The sum that counts what a group is of: rare groups are judged by it.
    pub count: usize,
    /// Guests' recordings must be on their hosts' clocks before they are measured.
    pub aligned: bool,
    /// It is about samples.
    pub sampled: bool,
    /// Measures one run.
    pub measure: Measure,
    /// Makes the same group of all runs comparable, where some were recorded with fewer events.
    pub settle: fn(&mut [&mut MeasuredGroup]),
}

#[derive(Clone, Copy, Debug)]
pub struct RunInput<'r> {
    /// Its recordings, the host's first, with guests as they were aligned, if they were.
    pub view: View<'r>,
    /// By recording, samples that were taken with it, where the question is about those.
    pub samples: &'r [Option<Samples>],
}

/// Measures one run; receives the number of bytes read.
pub type Measure = fn(RunInput<'_>, &(dyn Fn(u64) + Sync)) -> Run;

/// A number that is compared.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name; a time's ends with its unit, `_ns`, or has it within (`time_ns_per_s`).
    pub name: &'static str,
    /// A shorter name for conditions.
    pub short: &'static str,
    /// What its values are.
    pub unit: Unit,
    /// How it is made of the sums and durations.
    pub estimator: Estimator,
    /// The sum that counts what it is made of, where that decides how sure it is: a time that samples stand for.
    pub samples: Option<usize>,
}

/// What values of a metric are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds, or ticks of a clock that has none.
    Time,
    TimePerSecond,
    /// Events per second.
    CountPerSecond,
    /// A share of a whole, from 0 to 1.
    Share,
    /// This many for each.
    Times,
}

/// How a metric is made of a group's sums (by their place in [`super::Sums`]) and durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// A sum over the seconds that the run lasted.
    PerSecond(usize),
    /// A sum over that of the group's whole.
    Share(usize),
    /// A sum over another one of the group.
    Per(usize, usize),
    /// A quantile of the durations, in thousandths.
    Quantile(u64),
}

/// One run as measured for a question.
#[derive(Debug)]
pub struct Run {
    /// The VMs it has, for those of two runs to be matched.
    pub vms: Vec<RunVm>,
    /// First moment and last.
    pub span_ns: (u64, u64),
    pub groups: Vec<MeasuredGroup>,
    /// What shares are of.
    pub wholes: Vec<Series>,
    /// Whether times are nanoseconds; else they are ticks of the recording's clock.
    pub nanoseconds: bool,
    /// What its recordings lost.
    pub lost: Lost,
    /// Callers and callees, if the question needs them.
    pub calls: Vec<CallTime>,
    /// The stacks, where the question is about that.
    pub stacks: Stacks,
}

/// What a run, or all runs of a side, lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Events that are not in the recordings, as far as that is known.
    pub events: u64,
    /// Places that could not be read.
    pub places: u64,
}

impl Lost {
    /// What recordings lost.
    pub(super) fn from_losses<'l>(losses: impl IntoIterator<Item = &'l Losses>) -> Self {
        let of_one =
            |loss: &Losses| Self { events: loss.events_gone(), places: loss.pages_damaged() };
        losses.into_iter().map(of_one).fold(Self::default(), Self::with)
    }

    /// Both together.
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            events: self.events.saturating_add(other.events),
            places: self.places.saturating_add(other.places),
        }
    }

    /// Whether anything is missing.
    #[must_use]
    pub fn is_any(self) -> bool {
        self != Self::default()
    }
}

/// Time in a function that was called by another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTime {
    pub function: String,
    /// Its caller; empty: it is where the stack begins.
    pub below: String,
    /// What the thread is, or what the vCPU does.
    pub part: String,
    /// The time, in it and in what it calls: of every second block of the run, and of the others.
    pub time_ns: [u64; 2],
    pub samples: u64,
}

/// A VM as far as it matters for finding it in another run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunVm {
    /// Its name; may be made of a thread's id, and so another one in each run.
    pub name: String,
    /// Its vCPUs.
    pub vcpus: usize,
}

/// A property of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyValue {
    None,
    /// The VM, by its place in [`Run::vms`].
    Vm(usize),
    Number(u64),
    /// A name.
    Text(String),
}

/// The measurements of one group in one run.
#[derive(Clone, Debug)]
pub struct MeasuredGroup {
    /// Its properties, one for each of [`Question::columns`].
    pub key: Vec<KeyValue>,
    /// Its measurements.
    pub series: Series,
    /// What its shares are of: a place in [`Run::wholes`].
    pub whole_index: Option<usize>,
    /// A metric that this run has no events for is left out: a bit for each of
    /// [`Question::metrics`].
    pub unrecorded: u32,
}
