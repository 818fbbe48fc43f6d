//! Finds the hosts that carry a change: all hosts that have it, or a separate group of them.

/// Hosts form two groups if the groups' distance exceeds this many deviations within them. Among similar hosts,
/// the distance of the two most different halves is 2.7.
const MIN_GAP: f64 = 6.0;

/// Indices of the hosts that carry a change, from the changes of all hosts.
pub(crate) fn carriers(changes: &[f64]) -> Vec<usize> {
    let mean = changes.iter().sum::<f64>() / changes.len().max(1) as f64;
    let sign = if mean < 0.0 { -1.0 } else { 1.0 };
    let mut order: Vec<usize> = (0..changes.len()).collect();
    let change_of = |at: &usize| changes.get(*at).copied().unwrap_or(0.0) * sign;
    order.sort_by(|place, other| {
        change_of(other).total_cmp(&change_of(place)).then(place.cmp(other))
    });
    let values: Vec<f64> = order.iter().map(change_of).collect();
    let apart = split(&values);
    // Among similar hosts, a host with the opposite change has it by chance.
    let mut found: Vec<usize> = order.into_iter().take(apart.unwrap_or(usize::MAX)).collect();
    found.sort_unstable();
    found
}

/// How many of the greatest values form a separate group; `values` descend.
fn split(values: &[f64]) -> Option<usize> {
    let all = Squares::new(values);
    let best = (1..values.len()).map(|first| {
        let (head, other) = values.split_at(first);
        let (head, other) = (Squares::new(head), Squares::new(other));
        (first, head.rest + other.rest, head.mean - other.mean)
    });
    let (first, rest, gap) = best.min_by(|candidate, other| candidate.1.total_cmp(&other.1))?;
    let freedom = values.len() as f64 - 2.0;
    let deviation = (rest / freedom.max(1.0)).sqrt();
    (freedom > 0.0 && all.rest > 0.0 && gap > MIN_GAP * deviation).then_some(first)
}

struct Squares {
    mean: f64,
    /// Sum of squared differences from the mean.
    rest: f64,
}

impl Squares {
    fn new(values: &[f64]) -> Self {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        Self { mean, rest: values.iter().map(|value| (value - mean).powi(2)).sum() }
    }
}

#[cfg(test)]
mod tests {
    use stats::Chance;

    use super::*;
    use crate::simulate::normal;

    #[test]
    fn hosts_that_stand_apart_are_named() {
        let mut chance = Chance::new(1);
        let changes: Vec<f64> = (0..100)
            .map(|at| normal(&mut chance) * 0.03 + if at % 8 == 3 { 0.3 } else { 0.0 })
            .collect();
        let expected: Vec<usize> = (0..100).filter(|at| at % 8 == 3).collect();
        assert_eq!(carriers(&changes), expected);
        let less: Vec<f64> = changes.iter().map(|change| -change).collect();
        assert_eq!(carriers(&less), expected);
    }

    #[test]
    fn of_hosts_that_are_alike_none_stands_apart() {
        let mut groups = 0;
        for seed in 0..200 {
            let mut chance = Chance::new(seed);
            let changes: Vec<f64> = (0..20).map(|_| 0.5 + normal(&mut chance) * 0.1).collect();
            groups += usize::from(carriers(&changes).len() != 20);
        }
        assert!(groups <= 10, "{groups} of 200");
        assert!(carriers(&[]).is_empty());
        assert_eq!(carriers(&[0.1]), [0]);
        assert_eq!(carriers(&[0.1, 0.1, 0.1, -0.01]), [0, 1, 2]);
    }
}
