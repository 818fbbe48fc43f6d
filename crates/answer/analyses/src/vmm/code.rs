//! Code that ran while VMMs handled exits: functions in samples of their threads.

use std::collections::BTreeMap;

use super::exits::SampledCode;
use super::split::{ExitSplit, VmmPart};
use crate::profile::StackFunctions;

/// A function that ran while a VMM handled exits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmmCode {
    /// The exits, as index in [`Vmm::exits`](super::Vmm::exits).
    pub exits: usize,
    /// The part of the exits' time.
    pub part: VmmPart,
    /// The innermost function, or its file if it has no name; `None` if unknown.
    pub function: Option<String>,
    /// Number of samples.
    pub samples: u64,
    /// Its share of the part's time, by samples.
    pub time_ns: u64,
}

/// Functions of a group of exits. The times of a sampled part's functions add up to the part's time, except for
/// rounding.
pub(super) fn of_exits(
    exits: usize,
    split: &ExitSplit,
    sampled: &SampledCode,
    functions: &StackFunctions,
) -> Vec<VmmCode> {
    let mut by_function: BTreeMap<(VmmPart, Option<&str>), u64> = BTreeMap::new();
    let mut by_part: BTreeMap<VmmPart, u64> = BTreeMap::new();
    for ((part, stack), samples) in sampled {
        *by_function.entry((*part, functions.get(*stack))).or_default() += samples;
        *by_part.entry(*part).or_default() += samples;
    }
    let code = |((part, function), samples): ((VmmPart, Option<&str>), u64)| {
        let all = by_part.get(&part).copied().unwrap_or(1).max(1);
        let time_ns = u128::from(split.running(part)) * u128::from(samples) / u128::from(all);
        VmmCode {
            exits,
            part,
            function: function.map(str::to_owned),
            samples,
            time_ns: u64::try_from(time_ns).unwrap_or(u64::MAX),
        }
    };
    by_function.into_iter().map(code).collect()
}
