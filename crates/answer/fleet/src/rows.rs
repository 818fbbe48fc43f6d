//! A number of one kind of exits on both sides of a fleet.

use crate::compare::{Change, HostValues};
use crate::metric::Metric;
use crate::sums::Key;

/// The values of a host on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRatio {
    /// Its name.
    pub host: String,
    /// Its kind.
    pub stratum: String,
    /// Its value on the first side.
    pub a: f64,
    /// On the second.
    pub b: f64,
}

/// A row of a comparison.
#[derive(Clone, Debug)]
pub struct Row {
    /// Only hosts of this kind; `None`: all kinds.
    pub stratum: Option<String>,
    /// Level of the exits; 0: all.
    pub level: i32,
    /// Their architecture; empty: any.
    pub isa: String,
    /// Their reason; empty: all except waiting exits.
    pub reason: String,
    /// Whether they are waiting exits.
    pub waiting: bool,
    /// The number.
    pub metric: Metric,
    /// Number of hosts that have the metric: on each side, and on both.
    pub hosts: [usize; 3],
    /// Geometric mean over the hosts of each side.
    pub means: [Option<f64>; 2],
    /// The change of the typical host.
    pub change: Option<Change>,
    /// p after the correction by Benjamini and Hochberg, over all rows.
    pub p_adjusted: Option<f64>,
    /// Whether the sides differ.
    pub significant: bool,
    /// The fleet as a whole: the ratio of its totals, and its interval.
    pub total: Option<(f64, f64, f64)>,
    /// Whether half of the change or more is gone at the end of B; `None`: unknown.
    pub went_away: Option<bool>,
    /// The reason with the opposite change while the sum stayed the same.
    pub shifted: Option<String>,
    /// Hosts that carry the change; only in significant rows.
    pub carried_by: Vec<String>,
    /// Hosts on both sides; only in significant rows.
    pub host_ratios: Vec<HostRatio>,
}

impl Row {
    /// A row before the comparison.
    pub(crate) fn new(stratum: Option<String>, key: &Key, metric: Metric) -> Self {
        Self {
            stratum,
            level: key.level,
            isa: key.isa.clone(),
            reason: key.reason.clone(),
            waiting: key.waiting,
            metric,
            hosts: [0; 3],
            means: [None; 2],
            change: None,
            p_adjusted: None,
            significant: false,
            total: None,
            went_away: None,
            shifted: None,
            carried_by: Vec::new(),
            host_ratios: Vec::new(),
        }
    }

    /// Counts hosts, and computes means.
    pub(crate) fn count(&mut self, hosts: &[HostValues]) {
        let a: Vec<f64> = hosts.iter().filter_map(|host| host.a).collect();
        let b: Vec<f64> = hosts.iter().filter_map(|host| host.b).collect();
        let both = hosts.iter().filter(|host| host.a.is_some() && host.b.is_some()).count();
        self.hosts = [a.len(), b.len(), both];
        self.means = [geometric_mean(&a), geometric_mean(&b)];
    }

    /// Whether both concern the same exits.
    pub(crate) fn is_of(&self, other: &Self) -> bool {
        (self.level, &self.isa, &self.reason, self.waiting)
            == (other.level, &other.isa, &other.reason, other.waiting)
    }

    /// Whether it concerns all exits together.
    #[must_use]
    pub fn is_of_all(&self) -> bool {
        self.level == 0 && self.reason.is_empty()
    }

    /// The reason as text.
    #[must_use]
    pub fn reason_shown(&self) -> &str {
        if self.is_of_all() { "all" } else { &self.reason }
    }

    /// Whether it is a finding: it is significant, lasts until the end, and no other reason offsets
    /// it.
    #[must_use]
    pub fn is_finding(&self) -> bool {
        self.significant && self.went_away != Some(true) && self.shifted.is_none()
    }

    /// The logarithm of the change.
    pub(crate) fn log_change(&self) -> Option<f64> {
        Some(self.change?.ratio.ln())
    }
}

fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs: Vec<f64> =
        values.iter().filter(|value| **value > 0.0).map(|value| value.ln()).collect();
    stats::mean(&logs).map(f64::exp)
}
