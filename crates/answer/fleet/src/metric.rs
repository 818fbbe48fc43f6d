//! The numbers by which hosts are compared.

use crate::sums::{GroupSums, percentile};

/// A number of a host's exits of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Metric {
    /// Exits per second.
    Count,
    /// Mean time of an exit.
    Mean,
    /// 99th percentile of the time of an exit.
    P99,
    /// Mean cost of an exit.
    MeanCost,
    /// Time of exits per second.
    Time,
    /// Cost of exits per second.
    Cost,
}

/// Min exits of a kind on one side of a host for its numbers to be compared.
const MIN_EXITS: u64 = 10;

/// Min exits beyond a percentile for it to be compared.
const MIN_BEYOND: u64 = 10;

impl Metric {
    /// All metrics.
    pub const ALL: [Self; 6] =
        [Self::Count, Self::Mean, Self::P99, Self::MeanCost, Self::Time, Self::Cost];

    /// Its name, as in `diff`; times contain their unit, `_ns`.
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

    /// The metric with that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name || metric.short() == name)
    }

    /// Whether its values are nanoseconds.
    #[must_use]
    pub const fn is_time(self) -> bool {
        !matches!(self, Self::Count)
    }

    /// Whether it is a rate: rates can move from one reason to another.
    #[must_use]
    pub const fn is_rate(self) -> bool {
        matches!(self, Self::Count | Self::Time | Self::Cost)
    }

    /// Its numerator and denominator; `None`: it is no quotient, or was not recorded.
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

    /// Its value for a host on one side, if there are enough exits.
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
