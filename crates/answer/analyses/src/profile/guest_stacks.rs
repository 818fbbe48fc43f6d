//! Corrects the stacks of a guest's own samples with the shares of functions in the host's samples.
//!
//! A guest's timer cannot interrupt code with interrupts off: these samples move to where interrupts are enabled
//! again. The host's samples, and exits by its interrupts, hit the guest anywhere, but have no stacks. So the
//! guest's stacks give the callers, and each innermost function gets its share from the host's samples. A function
//! without guest stacks has a row of its own without callers, and so has most of the time of a function with few
//! stacks. The method is post-stratification by function.

use std::collections::BTreeMap;

use super::code::CodeAt;
use super::seen::SeenBy;
use super::{Evidence, SampleDifference, SampledTime, weights};
use crate::states::VcpuState;

/// Min host samples in a state: with fewer, shares of functions are less certain than the error that they correct.
const MIN_SAMPLES: u64 = 200;
/// Min host samples if the guest has no more: with fewer, a stack says more than its function's share.
const MIN_OF_FEW: u64 = 30;
/// Max correction factor: if a guest has few samples in code that mostly runs with interrupts off, their stacks
/// are not typical for the rest.
const MAX_TIMES: f64 = 3.0;
/// Weights are integers in this fraction of the total.
const PARTS: f64 = 1e12;

/// Whether guests' stacks are corrected with the host's samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GuestStacks {
    #[default]
    Corrected,
    /// As the guest sampled them.
    Raw,
}

/// Samples of one kind in a stratum, by code.
pub(super) type SeenCode = SeenBy<CodeAt>;

/// Identity of a stack's innermost code: the state, and the function or its file. A file offset does not identify
/// a function, and timers of guest and host stop at different offsets. With instructions, the instruction as well,
/// because interrupts can be off in a part of a function.
type Leaf<'c> = (VcpuState, Option<&'c str>, Option<&'c str>, Option<u64>, Option<u64>);

fn leaf(code: &CodeAt) -> Leaf<'_> {
    let frame = code.stack.last();
    let (symbol, module) =
        frame.map_or((None, None), |frame| (frame.symbol.as_deref(), frame.module.as_deref()));
    let address = frame.and_then(|frame| frame.address).filter(|_| symbol.or(module).is_none());
    let into = frame.and_then(|frame| Some(frame.instruction.as_ref()?.into));
    (code.state, symbol, module, address, into)
}

/// Share of each leaf in the total weight.
fn shares_by_leaf(seen: &SeenCode) -> BTreeMap<Leaf<'_>, f64> {
    let total: f64 = seen.code.values().map(|sighting| sighting.weight_ns as f64).sum();
    let mut shares = BTreeMap::new();
    for (code, sighting) in &seen.code {
        *shares.entry(leaf(code)).or_insert(0.0) += sighting.weight_ns as f64 / total.max(1.0);
    }
    shares
}

fn share(shares: &BTreeMap<Leaf<'_>, f64>, leaf: &Leaf<'_>) -> f64 {
    shares.get(leaf).copied().unwrap_or(0.0)
}

/// Whether the host has enough samples for a correction: many, or at least as many as the guest.
pub(super) fn is_enough(guest: &SeenCode, host: &SeenCode) -> bool {
    host.samples >= MIN_SAMPLES || host.samples >= MIN_OF_FEW && host.samples >= guest.samples
}

/// Difference between the guest's samples and the host's.
pub(super) fn difference(time_ns: u64, guest: &SeenCode, host: &SeenCode) -> SampleDifference {
    let (of_guest, of_host) = (shares_by_leaf(guest), shares_by_leaf(host));
    let away =
        of_guest.iter().map(|(leaf, &guest_share)| (guest_share - share(&of_host, leaf)).max(0.0));
    // Rounding: a double has fewer digits than the time.
    let moved_ns = ((away.sum::<f64>().max(0.0) * time_ns as f64) as u64).min(time_ns);
    SampleDifference { time_ns, moved_ns }
}

/// Shares of a time by guest stack, so that innermost functions have the host's shares.
pub(super) fn corrected(
    time_ns: u64,
    guest: &SeenCode,
    host: &SeenCode,
) -> Vec<(CodeAt, Evidence, SampledTime)> {
    let (of_guest, of_host) = (shares_by_leaf(guest), shares_by_leaf(host));
    // A function without host samples may only be rare: adds as many guest samples as the square root of the
    // number of host samples (the minimax estimate of shares).
    let samples = host.samples as f64;
    let added = samples.sqrt();
    let estimate = |leaf: &Leaf<'_>| {
        (share(&of_host, leaf) * samples + share(&of_guest, leaf) * added) / (samples + added)
    };
    let guest_ns: f64 = guest.code.values().map(|sighting| sighting.weight_ns as f64).sum();
    let mut weighted: Vec<(&CodeAt, Evidence, u64, f64)> = Vec::new();
    for (code, sighting) in &guest.code {
        let of_leaf = share(&of_guest, &leaf(code)).max(f64::MIN_POSITIVE);
        let stack_share = sighting.weight_ns as f64 / guest_ns.max(1.0);
        let times = (estimate(&leaf(code)) / of_leaf).min(MAX_TIMES);
        weighted.push((code, Evidence::Agent, sighting.samples, times * stack_share));
    }
    let host_ns: f64 = host.code.values().map(|sighting| sighting.weight_ns as f64).sum();
    for (code, sighting) in &host.code {
        let leaf = leaf(code);
        let of_stacks = share(&of_guest, &leaf) * MAX_TIMES;
        let rest = estimate(&leaf) - of_stacks;
        if rest > 0.0 {
            let stack_share = sighting.weight_ns as f64 / host_ns.max(1.0);
            let part = stack_share / share(&of_host, &leaf).max(f64::MIN_POSITIVE);
            weighted.push((code, Evidence::Host, sighting.samples, rest * part));
        }
    }
    let parts: Vec<u64> = weighted.iter().map(|(.., weight)| (weight * PARTS) as u64).collect();
    let shares = weights::shares(time_ns, &parts);
    let effective = guest.effective.min(host.effective);
    let rows = weighted.into_iter().zip(shares).map(|((code, evidence, samples, _), ns)| {
        (code.clone(), evidence, weights::time(time_ns, ns, samples, effective))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::sums::Seen;
    use super::*;
    use crate::profile::CodeFrame;

    fn code(stack: &[&str]) -> CodeAt {
        let frame =
            |name: &&str| CodeFrame { symbol: Some((*name).to_owned()), ..CodeFrame::default() };
        let stack = stack.iter().map(frame).collect();
        CodeAt { state: VcpuState::GuestKernel, host_code: false, stack }
    }

    fn seen(samples: &[(&[&str], u64)]) -> SeenCode {
        let sighting = |&(stack, samples): &(&[&str], u64)| {
            (code(stack), Seen { samples, weight_ns: samples * 1000, ..Seen::default() })
        };
        let count = samples.iter().map(|(_, count)| count).sum();
        SeenCode {
            code: samples.iter().map(sighting).collect(),
            samples: count,
            effective: count as f64,
        }
    }

    fn time_of(rows: &[(CodeAt, Evidence, SampledTime)], stack: &[&str]) -> u64 {
        rows.iter().find(|(row_code, ..)| *row_code == code(stack)).map_or(0, |(.., time)| time.ns)
    }

    #[test]
    fn functions_get_the_shares_that_the_host_saw_and_stacks_those_of_the_guest() {
        // Half of the apparent `on` is really `off`, whose code the guest's timer cannot interrupt.
        let guest = seen(&[(&["a", "on"], 600), (&["b", "on"], 200), (&["a", "f"], 200)]);
        let host = seen(&[(&["on"], 4000), (&["off"], 4000), (&["f"], 2000)]);
        let difference = difference(1_000_000, &guest, &host);
        let rows = corrected(1_000_000, &guest, &host);
        let (a, b) = (time_of(&rows, &["a", "on"]), time_of(&rows, &["b", "on"]));
        assert!((295_000..307_000).contains(&a) && (98_000..103_000).contains(&b), "{a} {b}");
        assert!((395_000..401_000).contains(&time_of(&rows, &["off"])), "{rows:?}");
        assert_eq!(difference, SampleDifference { time_ns: 1_000_000, moved_ns: 400_000 });
        let alone = rows.iter().find(|(row_code, ..)| *row_code == code(&["off"])).unwrap();
        assert_eq!(alone.1, Evidence::Host);
    }

    #[test]
    fn few_stacks_do_not_stand_for_much() {
        let guest = seen(&[(&["irq", "off"], 10), (&["f"], 990)]);
        let rows = corrected(1_000_000, &guest, &seen(&[(&["off"], 400), (&["f"], 600)]));
        let (below, alone) = (time_of(&rows, &["irq", "off"]), time_of(&rows, &["off"]));
        assert!((29_000..31_000).contains(&below), "{rows:?}");
        assert!((340_000..370_000).contains(&alone), "{rows:?}");
    }

    #[test]
    fn samples_that_agree_stay_as_they_are() {
        let guest = seen(&[(&["a", "f"], 30), (&["b", "f"], 20), (&["g"], 50)]);
        let host = seen(&[(&["f"], 300), (&["g"], 300)]);
        let rows = corrected(1000, &guest, &host);
        assert_eq!(difference(1000, &guest, &host).moved_ns, 0);
        assert_eq!(time_of(&rows, &["a", "f"]), 300);
        assert_eq!(time_of(&rows, &["b", "f"]), 200);
    }

    proptest! {
        #[test]
        fn parts_add_up(
            time_ns in 0..u64::MAX,
            guest in prop::collection::vec((0..5_usize, 0..5_usize, 1..1000_u64), 1..20),
            others in prop::collection::vec((0..7_usize, 1..1000_u64), 0..7),
        ) {
            let names = ["a", "b", "c", "d", "e", "f", "g"];
            let stacks: Vec<([&str; 2], u64)> =
                guest.iter().map(|&(root, leaf, count)| ([names[root], names[leaf]], count)).collect();
            let guest: Vec<(&[&str], u64)> = stacks.iter().map(|(stack, count)| (&stack[..], *count)).collect();
            let leaves: Vec<([&str; 1], u64)> =
                others.iter().map(|&(leaf, count)| ([names[leaf]], count)).collect();
            let others: Vec<(&[&str], u64)> = leaves.iter().map(|(leaf, count)| (&leaf[..], *count)).collect();
            let (guest, others) = (seen(&guest), seen(&others));
            let difference = difference(time_ns, &guest, &others);
            let rows = corrected(time_ns, &guest, &others);
            let sum: u128 = rows.iter().map(|(.., time)| u128::from(time.ns)).sum();
            prop_assert_eq!(sum, u128::from(time_ns));
            prop_assert!(difference.moved_ns <= time_ns);
        }
    }
}
