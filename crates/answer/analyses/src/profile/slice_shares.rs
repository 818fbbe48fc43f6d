//! Distributes times by slices over parts with known times: preserves both sums.

use std::collections::BTreeMap;

use super::slices::SliceTimes;

/// Times by slices for each part, as close to its weights as the sums allow: they add up to the part's time in
/// `parts`, and over all parts to the slice's time in `totals`, if both have equal sums. Slices must be ascending.
pub(super) fn shares(
    parts: &[u64],
    weights: &[SliceTimes],
    totals: &SliceTimes,
) -> Vec<SliceTimes> {
    let mut remaining: BTreeMap<u64, u64> = totals.0.iter().copied().collect();
    let mut shares: Vec<SliceTimes> =
        parts.iter().zip(weights).map(|(&ns, weights)| by_weight(ns, weights)).collect();
    bound(&mut shares, &remaining);
    let mut missing: Vec<u64> = Vec::with_capacity(parts.len());
    for (share, &ns) in shares.iter().zip(parts) {
        missing.push(ns.saturating_sub(share.0.iter().map(|(_, ns)| ns).sum()));
        for (slice, ns) in &share.0 {
            remaining
                .entry(*slice)
                .and_modify(|remaining_ns| *remaining_ns = remaining_ns.saturating_sub(*ns));
        }
    }
    // First fills slices that the part already has, then any others.
    for (share, missing) in shares.iter_mut().zip(&mut missing) {
        for (slice, ns) in &mut share.0 {
            let Some(remaining_ns) = remaining.get_mut(slice) else { continue };
            let more = (*remaining_ns).min(*missing);
            (*remaining_ns, *missing, *ns) = (*remaining_ns - more, *missing - more, *ns + more);
        }
    }
    let mut rest = remaining.into_iter().filter(|(_, ns)| *ns > 0).peekable();
    for (share, mut missing) in shares.iter_mut().zip(missing) {
        while let Some((slice, remaining_ns)) = rest.peek_mut().filter(|_| missing > 0) {
            let more = missing.min(*remaining_ns);
            share.0.push((*slice, more));
            (*remaining_ns, missing) = (*remaining_ns - more, missing - more);
            if *remaining_ns == 0 {
                rest.next();
            }
        }
        share.settle();
        share.0.retain(|(_, ns)| *ns > 0);
    }
    shares
}

/// Distributes a time by weights, rounded down.
fn by_weight(ns: u64, weights: &SliceTimes) -> SliceTimes {
    let total: u128 = weights.0.iter().map(|(_, weight)| u128::from(*weight)).sum();
    let share = |&(slice, weight): &(u64, u64)| Some((slice, part(ns, weight.into(), total)?));
    SliceTimes(weights.0.iter().filter_map(share).collect())
}

/// Scales down the parts in slices that exceed their total.
fn bound(shares: &mut [SliceTimes], totals: &BTreeMap<u64, u64>) {
    let mut sums: BTreeMap<u64, u128> = BTreeMap::new();
    for (slice, ns) in shares.iter().flat_map(|share| &share.0) {
        *sums.entry(*slice).or_default() += u128::from(*ns);
    }
    for (slice, ns) in shares.iter_mut().flat_map(|share| &mut share.0) {
        let (has, sum) = (totals.get(slice).copied().unwrap_or(0), sums.get(slice).copied());
        if let Some(sum) = sum.filter(|&sum| sum > u128::from(has)) {
            *ns = part(has, u128::from(*ns), sum).unwrap_or(0);
        }
    }
}

/// `ns * share / total`; `None` if the total is 0.
fn part(ns: u64, share: u128, total: u128) -> Option<u64> {
    let part = u128::from(ns).checked_mul(share)?.checked_div(total)?;
    u64::try_from(part).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times(all: &[(u64, u64)]) -> SliceTimes {
        let mut times = SliceTimes(all.to_vec());
        times.settle();
        times
    }

    #[test]
    fn code_is_where_its_samples_were() {
        let totals = times(&[(1, 100), (2, 100)]);
        let weights = [times(&[(1, 30)]), times(&[(2, 30)])];
        let shared = shares(&[100, 100], &weights, &totals);
        assert_eq!(shared, [times(&[(1, 100)]), times(&[(2, 100)])]);
    }

    #[test]
    fn a_part_without_samples_gets_what_is_left() {
        let totals = times(&[(1, 100), (2, 60)]);
        let shared = shares(&[40, 120], &[times(&[(2, 7)]), SliceTimes::default()], &totals);
        assert_eq!(shared, [times(&[(2, 40)]), times(&[(1, 100), (2, 20)])]);
    }

    proptest! {
        #[test]
        fn both_sums_stay(
            totals in prop::collection::vec((0..9_u64, 0..1_u64 << 40), 1..9),
            parts in prop::collection::vec(
                (any::<u32>(), prop::collection::vec((0..9_u64, any::<u32>()), 0..6)), 1..8),
        ) {
            let totals = times(&totals);
            let sum: u64 = totals.0.iter().map(|(_, ns)| ns).sum();
            let weights: Vec<u64> = parts.iter().map(|(weight, _)| u64::from(*weight)).collect();
            let of_parts = super::super::weights::shares(sum, &weights);
            let by_slice: Vec<SliceTimes> = parts
                .iter()
                .map(|(_, all)| times(&all.iter().map(|&(slice, weight)| (slice, weight.into())).collect::<Vec<_>>()))
                .collect();
            let shared = shares(&of_parts, &by_slice, &totals);
            for (share, ns) in shared.iter().zip(&of_parts) {
                prop_assert_eq!(share.0.iter().map(|(_, ns)| ns).sum::<u64>(), *ns);
            }
            let mut all = SliceTimes::default();
            shared.iter().for_each(|share| all.extend(share));
            all.settle();
            let has_time = |share: &SliceTimes| -> Vec<_> { share.0.iter().copied().filter(|(_, ns)| *ns > 0).collect() };
            prop_assert_eq!(has_time(&all), has_time(&totals));
        }
    }
}
