//! Compares a number between sides, with the host as the unit.

use stats::{
    Comparison, Permutation, Scale, Side, compare as welch, compare_pairs, flip_signs, mean,
    permute, standard_deviation, student_quantile, student_two_sided,
};

/// A host's values of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostValues {
    /// On the first side.
    pub a: Option<f64>,
    /// On the second.
    pub b: Option<f64>,
    /// The kind of the host: hosts are compared within their kind.
    pub stratum: usize,
    /// Whether the host was not changed: a control shows what would have changed anyway.
    pub is_control: bool,
}

impl HostValues {
    /// The logarithm of the second value over the first.
    pub(crate) fn change(&self) -> Option<f64> {
        let (a, b) = (self.a.filter(|a| *a > 0.0)?, self.b.filter(|b| *b > 0.0)?);
        Some((b / a).ln())
    }
}

/// How hosts were compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    Paired,
    /// Hosts of one side against those of the other, within strata.
    Welch,
    /// Each host's change, and these against the changes of controls.
    Differences,
}

impl Design {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paired => "paired",
            Self::Welch => "welch",
            Self::Differences => "differences",
        }
    }
}

/// The difference of the typical host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The method of comparison.
    pub design: Design,
    /// The second side divided by the first: the geometric mean over hosts.
    pub ratio: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability of a change at least this large if the two sides did not differ.
    pub p: f64,
    /// The result of a permutation test, if hosts can be exchanged.
    pub permutation: Option<Permutation>,
}

impl Change {
    fn new(design: Design, found: Comparison, permutation: Option<Permutation>) -> Self {
        let Comparison { change: ratio, low, high, p, .. } = found;
        Self { design, ratio, low, high, p, permutation }
    }

    /// Whether the permutation test agrees, or was impossible.
    #[must_use]
    pub fn is_not_contradicted(&self, alpha: f64) -> bool {
        self.permutation.is_none_or(|test| test.least > alpha || test.p <= alpha)
    }
}

/// Min hosts on either side of a comparison.
const MIN_HOSTS: usize = 3;

/// Compares the sides; `None` if there are too few hosts.
///
/// Hosts on both sides are compared with themselves if there are at least three, and at least half as many as on the
/// smaller side. Otherwise all hosts of one side are compared with all hosts of the other, by the logarithms of
/// their values. With controls, the changes of hosts are compared with those of controls.
#[must_use]
pub fn compare(hosts: &[HostValues], alpha: f64, seed: u64) -> Option<Change> {
    let changes = |controls: bool| -> Vec<f64> {
        let group = hosts.iter().filter(|host| host.is_control == controls);
        group.filter_map(HostValues::change).collect()
    };
    if hosts.iter().any(|host| host.is_control) {
        return differences(&changes(false), &changes(true), alpha, seed);
    }
    let pairs = changes(false);
    let positive = |value: Option<f64>| value.is_some_and(|value| value > 0.0);
    let on_a = hosts.iter().filter(|host| positive(host.a)).count();
    let on_b = hosts.iter().filter(|host| positive(host.b)).count();
    if pairs.len() >= MIN_HOSTS && pairs.len() * 2 >= on_a.min(on_b) {
        return paired(&pairs, alpha, seed);
    }
    stratified(hosts, alpha, seed)
}

fn paired(changes: &[f64], alpha: f64, seed: u64) -> Option<Change> {
    let pairs: Vec<(f64, f64)> = changes.iter().map(|change| (1.0, change.exp())).collect();
    let found = compare_pairs(&pairs, alpha)?;
    Some(Change::new(Design::Paired, found, flip_signs(changes, seed)))
}

/// The changes of hosts minus those of controls.
fn differences(treated: &[f64], controls: &[f64], alpha: f64, seed: u64) -> Option<Change> {
    if treated.len() < MIN_HOSTS || controls.len() < MIN_HOSTS {
        return None;
    }
    let (a, b) = (log_side(controls)?, log_side(treated)?);
    let found = welch(&a, &b, alpha);
    // Both were shifted equally, so that the values are ratios to no change.
    Some(Change::new(Design::Differences, found, permute(controls, treated, seed)))
}

/// Turns logarithms into a side of values with the same relative error.
fn log_side(logs: &[f64]) -> Option<Side> {
    let side = Side::of_runs(logs)?;
    let value = side.value.exp();
    Some(Side { value, error: side.error * value, ..side })
}

/// Hosts of one kind, by side.
#[derive(Debug, Default)]
struct Stratum {
    a: Vec<f64>,
    b: Vec<f64>,
}

/// Welch's test of logarithms within strata: differences between kinds of hosts count neither as a change nor as an
/// error. Strata on one side only are ignored.
fn stratified(hosts: &[HostValues], alpha: f64, seed: u64) -> Option<Change> {
    let mut strata: std::collections::BTreeMap<usize, Stratum> = std::collections::BTreeMap::new();
    for host in hosts {
        let stratum = strata.entry(host.stratum).or_default();
        stratum.a.extend(host.a.filter(|a| *a > 0.0).map(f64::ln));
        stratum.b.extend(host.b.filter(|b| *b > 0.0).map(f64::ln));
    }
    strata.retain(|_, stratum| !stratum.a.is_empty() && !stratum.b.is_empty());
    let all: Vec<&Stratum> = strata.values().collect();
    let permutation = match all.as_slice() {
        [stratum] => permute(&stratum.a, &stratum.b, seed),
        _ => None,
    };
    let (error_a, freedom_a) = within(all.iter().map(|stratum| stratum.a.as_slice()))?;
    let (error_b, freedom_b) = within(all.iter().map(|stratum| stratum.b.as_slice()))?;
    if freedom_a + 1.0 < MIN_HOSTS as f64 || freedom_b + 1.0 < MIN_HOSTS as f64 {
        return None;
    }
    // The weight of a stratum is the harmonic mean of its hosts on both sides.
    let (mut weights, mut change, mut square_a, mut square_b) = (0.0, 0.0, 0.0, 0.0);
    for stratum in &all {
        let (count_a, count_b) = (stratum.a.len() as f64, stratum.b.len() as f64);
        let weight = count_a * count_b / (count_a + count_b);
        weights += weight;
        change += weight * (mean(&stratum.b)? - mean(&stratum.a)?);
        square_a += weight * weight * error_a / count_a;
        square_b += weight * weight * error_b / count_b;
    }
    let change = change / weights;
    let (square_a, square_b) = (square_a / weights.powi(2), square_b / weights.powi(2));
    let error = (square_a + square_b).sqrt();
    let freedom = (square_a + square_b).powi(2)
        / (square_a.powi(2) / freedom_a + square_b.powi(2) / freedom_b);
    let (p, half) = if error > 0.0 {
        (student_two_sided(change / error, freedom), student_quantile(alpha, freedom) * error)
    } else {
        (f64::from(u8::from(change == 0.0)), 0.0)
    };
    let found = Comparison {
        scale: Scale::Ratio,
        change: change.exp(),
        low: (change - half).exp(),
        high: (change + half).exp(),
        p,
    };
    Some(Change::new(Design::Welch, found, permutation))
}

/// The variance of hosts within their strata, and its degrees of freedom.
fn within<'s>(strata: impl Iterator<Item = &'s [f64]>) -> Option<(f64, f64)> {
    let (mut squares, mut freedom) = (0.0, 0.0);
    for values in strata {
        let degrees = values.len() as f64 - 1.0;
        squares += standard_deviation(values).unwrap_or(0.0).powi(2) * degrees;
        freedom += degrees;
    }
    (freedom > 0.0).then(|| (squares / freedom, freedom))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(a: f64, b: f64, stratum: usize) -> HostValues {
        let known = |value: f64| (value > 0.0).then_some(value);
        HostValues { a: known(a), b: known(b), stratum, is_control: false }
    }

    #[test]
    fn hosts_on_both_sides_are_compared_with_themselves() {
        let hosts: Vec<_> =
            (1..=8).map(|value| host(f64::from(value), f64::from(value) * 1.1, 0)).collect();
        let found = compare(&hosts, 0.05, 1).unwrap();
        assert_eq!(found.design, Design::Paired);
        assert!((found.ratio - 1.1).abs() < 1e-9 && found.p < 1e-6, "{found:?}");
        // Without pairs, the same values show no difference.
        let apart: Vec<_> = hosts
            .iter()
            .flat_map(|host| [HostValues { b: None, ..*host }, HostValues { a: None, ..*host }])
            .collect();
        let found = compare(&apart, 0.05, 1).unwrap();
        assert_eq!(found.design, Design::Welch);
        assert!(found.p > 0.5 && (found.ratio - 1.1).abs() < 1e-9, "{found:?}");
    }

    /// One stratum gives Welch's test of logarithms; `stats` itself is tested against scipy.
    #[test]
    fn one_stratum_is_welch() {
        let hosts =
            [(2.0, 0.0), (2.2, 0.0), (1.9, 0.0), (0.0, 2.4), (0.0, 2.5), (0.0, 2.9), (0.0, 2.6)];
        let hosts = hosts.map(|(a, b)| host(a, b, 3));
        let found = compare(&hosts, 0.05, 1).unwrap();
        let logs = |value_of: fn(&HostValues) -> Option<f64>| -> Vec<f64> {
            hosts.iter().filter_map(value_of).map(f64::ln).collect()
        };
        let (a, b) = (logs(|host| host.a), logs(|host| host.b));
        let known = welch(&log_side(&a).unwrap(), &log_side(&b).unwrap(), 0.05);
        assert!((found.p - known.p).abs() < 1e-12 && (found.low - known.low).abs() < 1e-12);
        assert!(found.permutation.is_some_and(|test| (test.p - 1.0 / 35.0).abs() < 1e-12));
    }

    /// Twice as many hosts of the slow kind on B are not a change.
    #[test]
    fn kinds_of_hosts_are_no_change() {
        let mut hosts = Vec::new();
        for at in 0..12 {
            let cost = 1.0 + f64::from(at % 3) * 0.01;
            hosts.push(host(cost, 0.0, 0));
            hosts.push(host(0.0, cost * 5.0, 1));
            if at < 4 {
                hosts.push(host(cost * 5.0, 0.0, 1));
                hosts.push(host(0.0, cost, 0));
            }
        }
        let found = compare(&hosts, 0.05, 1).unwrap();
        assert!(found.p > 0.3 && (found.ratio - 1.0).abs() < 0.01, "{found:?}");
        let mixed: Vec<_> = hosts.iter().map(|host| HostValues { stratum: 0, ..*host }).collect();
        assert!(compare(&mixed, 0.05, 1).unwrap().p < 0.05);
    }

    #[test]
    fn what_controls_do_is_no_change() {
        let hosts = |by: f64| -> Vec<HostValues> {
            let make_host = |at: u32| {
                let a = 1.0 + f64::from(at);
                let noise = 1.0 + f64::from(at % 4) * 0.005;
                let is_control = at < 6;
                let b = a * 1.3 * noise * if is_control { 1.0 } else { by };
                HostValues { is_control, ..host(a, b, 0) }
            };
            (0..14).map(make_host).collect()
        };
        let same = compare(&hosts(1.0), 0.05, 1).unwrap();
        assert_eq!(same.design, Design::Differences);
        assert!(same.p > 0.2 && (same.ratio - 1.0).abs() < 0.01, "{same:?}");
        let dearer = compare(&hosts(1.03), 0.05, 1).unwrap();
        assert!(dearer.p < 1e-3 && (dearer.ratio - 1.03).abs() < 0.01, "{dearer:?}");
    }

    #[test]
    fn few_hosts_say_nothing() {
        assert_eq!(compare(&[host(1.0, 2.0, 0), host(1.0, 2.0, 0)], 0.05, 1), None);
        assert_eq!(compare(&[], 0.05, 1), None);
        let apart = [host(1.0, 0.0, 0), host(1.1, 0.0, 0), host(0.0, 2.0, 0), host(0.0, 2.0, 0)];
        assert_eq!(compare(&apart, 0.05, 1), None);
    }
}
