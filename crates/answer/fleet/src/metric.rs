//! Numbers that hosts are compared by.

use crate::sums::{GroupSums, percentile};

/// A number of a host's exits of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Metric {
    /// Exits a second.
    Count,
    /// How long an exit takes.
    Mean,
    /// The time that 99% of the exits don't exceed.
    P99,
    /// What an exit costs.
    MeanCost,
    /// Time of exits a second.
    Time,
    /// Cost of exits a second.
    Cost,
}

/// Exits of a kind on one side of a host, below which its numbers are not compared.
const MIN_EXITS: u64 = 10;

/// Exits beyond a percentile, below which it is not compared.
const MIN_BEYOND: u64 = 10;

impl Metric {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Count, Self::Mean, Self::P99, Self::MeanCost, Self::Time, Self::Cost];

    /// Its name, as in `diff`; times end in their unit, `_ns`, or have it within.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count_per_s",
            Self::Mean => "mean_ns",
            Self::P99 => "p99_ns",
            Self::MeanCost => "mean_cost_ns",
            Self::Time => "time_ns_per_s",
            Self::Cost => "cost_ns_per_s",
        }
    }

    /// A shorter name for conditions.
    #[must_use]
    pub const fn short(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Mean => "mean",
            Self::P99 => "p99",
            Self::MeanCost => "mean_cost",
            Self::Time => "time",
            Self::Cost => "cost_per_s",
        }
    }

    /// The metric of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name || metric.short() == name)
    }

    /// Whether its values are nanoseconds.
    #[must_use]
    pub const fn is_time(self) -> bool {
        !matches!(self, Self::Count)
    }

    /// Whether it is a sum a second: such can move from one reason to another.
    #[must_use]
    pub const fn is_rate(self) -> bool {
        matches!(self, Self::Count | Self::Time | Self::Cost)
    }

    /// What it is a quotient of; `None`: of nothing, or that was not recorded.
    pub(crate) fn quotient(self, sums: &GroupSums, covered_ns: u64) -> Option<(f64, f64)> {
        let seconds = covered_ns as f64 / 1e9;
        let (amount, per) = match self {
            Self::Count => (sums.exits as f64, seconds),
            Self::Mean => (sums.time_ns as f64, sums.paired as f64),
            Self::P99 => return None,
            Self::MeanCost => (sums.cost_ns? as f64, sums.exits as f64),
            Self::Time => (sums.time_ns as f64, seconds),
            Self::Cost => (sums.cost_ns? as f64, seconds),
        };
        (per > 0.0).then_some((amount, per))
    }

    /// Its value for a host on one side, where that has enough exits.
    pub(crate) fn value(self, sums: &GroupSums, covered_ns: u64) -> Option<f64> {
        if sums.exits < MIN_EXITS {
            return None;
        }
        if self == Self::P99 {
            let enough = sums.paired / 100 >= MIN_BEYOND;
            return percentile(&sums.hist, 990).filter(|_| enough).map(|value| value as f64);
        }
        let (amount, per) = self.quotient(sums, covered_ns)?;
        Some(amount / per)
    }
}
