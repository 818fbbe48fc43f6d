//! Savings if functions that match a pattern were not traced.
//!
//! Candidates are sequences of words in function names (`kmem_cache` in `kmem_cache_alloc_node`), as patterns for
//! the kernel's filters. Among candidates with the same saving, the longest is the clearest.

use ftrace::eventfmt::glob;
use rustc_hash::{FxHashMap, FxHashSet};

use super::functions::Function;

/// Saving by a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saving {
    /// The pattern, in the syntax of `trace-cmd record -n`.
    pub pattern: String,
    /// Whether the caller requested it; otherwise it was found.
    pub is_requested: bool,
    /// Number of called functions that match.
    pub functions: u64,
    pub events: u64,
    /// Events of this pattern and of all patterns before it in the list.
    pub cumulative_events: u64,
}

/// Max found patterns.
const MAX_FOUND: usize = 8;

/// A found pattern saves at least one in this many events.
const LEAST: u64 = 100;

/// Max words in a candidate.
const LONGEST_RUN: usize = 3;

/// Min letters of a candidate: shorter ones are not meaningful.
const SHORTEST_RUN: usize = 4;

/// Max candidates to evaluate: those whose functions have most events.
const MAX_TRIED: usize = 400;

/// Savings by the requested patterns, then by found ones.
pub(super) fn savings(functions: &[Function], requested: &[String]) -> Vec<Saving> {
    let named: Vec<(&str, u64)> = functions
        .iter()
        .filter(|function| function.events > 0)
        .filter_map(|function| Some((function.name.as_deref()?, function.events)))
        .collect();
    let mut spared = FxHashSet::default();
    let mut savings = Vec::new();
    for pattern in requested {
        let matches = matching(&named, pattern);
        savings.push(saving(&named, pattern.clone(), true, &matches, &mut spared));
    }
    let all: u64 = functions.iter().map(|function| function.events).sum();
    let candidates = candidates(&named);
    let mut spared = FxHashSet::default();
    for _ in 0..MAX_FOUND {
        let Some((pattern, matches)) = best(&named, &candidates, &spared, all) else { break };
        // If only one function matches, its name is clearer than the pattern.
        let single = match matches.as_slice() {
            [only] => named.get(*only).map(|(name, _)| (*name).to_owned()),
            _ => None,
        };
        let pattern = single.unwrap_or_else(|| pattern.clone());
        savings.push(saving(&named, pattern, false, matches, &mut spared));
    }
    savings
}

fn matching(named: &[(&str, u64)], pattern: &str) -> Vec<usize> {
    let names = named.iter().enumerate();
    names.filter(|(_, (name, _))| glob(pattern, name)).map(|(at, _)| at).collect()
}

fn events_of<'m>(named: &[(&str, u64)], matches: impl IntoIterator<Item = &'m usize>) -> u64 {
    matches.into_iter().filter_map(|&at| named.get(at)).map(|(_, events)| events).sum()
}

fn saving(
    named: &[(&str, u64)],
    pattern: String,
    is_requested: bool,
    matches: &[usize],
    spared: &mut FxHashSet<usize>,
) -> Saving {
    spared.extend(matches);
    Saving {
        pattern,
        is_requested,
        functions: matches.len() as u64,
        events: events_of(named, matches),
        cumulative_events: events_of(named, &*spared),
    }
}

type Candidate = (String, Vec<usize>);

/// Candidates with the functions that they match.
fn candidates(named: &[(&str, u64)]) -> Vec<Candidate> {
    let mut events_by_run: FxHashMap<String, u64> = FxHashMap::default();
    for (name, events) in named {
        for pattern in runs(name) {
            *events_by_run.entry(pattern).or_default() += events;
        }
    }
    let mut patterns: Vec<(String, u64)> = events_by_run.into_iter().collect();
    patterns.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    patterns.truncate(MAX_TRIED);
    let tried = patterns.into_iter().map(|(pattern, _)| {
        let matches = matching(named, &pattern);
        (pattern, matches)
    });
    tried.collect()
}

/// Candidates from a name: sequences of its words, and the name itself.
fn runs(name: &str) -> FxHashSet<String> {
    let words: Vec<&str> = name.split(['_', '.']).filter(|word| !word.is_empty()).collect();
    let mut runs = FxHashSet::default();
    for length in 1..=LONGEST_RUN {
        for run in words.windows(length) {
            let run = run.join("_");
            if run.len() >= SHORTEST_RUN && name.contains(&run) {
                runs.insert(format!("*{run}*"));
            }
        }
    }
    runs.insert(name.to_owned());
    runs
}

/// The candidate with the largest additional saving. Among candidates within a twentieth of the largest, the one
/// with most letters.
fn best<'c>(
    named: &[(&str, u64)],
    candidates: &'c [Candidate],
    spared: &FxHashSet<usize>,
    all: u64,
) -> Option<&'c Candidate> {
    let gain = |candidate: &Candidate| {
        events_of(named, candidate.1.iter().filter(|at| !spared.contains(at)))
    };
    let gains: Vec<(u64, &Candidate)> =
        candidates.iter().map(|candidate| (gain(candidate), candidate)).collect();
    let max = gains.iter().map(|(gain, _)| *gain).max()?;
    if max == 0 || max < all.div_ceil(LEAST) {
        return None;
    }
    let near = gains.into_iter().filter(|(gain, _)| *gain >= max - max / 20);
    let chosen = near.max_by(|(gain, candidate), (other_gain, other)| {
        let by_gain = gain.cmp(other_gain);
        candidate.0.len().cmp(&other.0.len()).then(by_gain).then_with(|| other.0.cmp(&candidate.0))
    });
    chosen.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions(counts: &[(&str, u64)]) -> Vec<Function> {
        let function = |&(name, events): &(&str, u64)| Function {
            name: Some(name.to_owned()),
            events,
            ..Function::default()
        };
        counts.iter().map(function).collect()
    }

    #[test]
    fn what_has_a_word_in_common_is_spared_by_one_pattern() {
        let all = functions(&[
            ("acpi_ns_lookup", 300),
            ("acpi_ut_update_ref", 300),
            ("_raw_spin_lock", 100),
            ("_raw_spin_unlock", 80),
            ("kfree", 5),
        ]);
        let found = savings(&all, &["k*".to_owned()]);
        let savings: Vec<(&str, bool, u64, u64)> = found
            .iter()
            .map(|saving| {
                (
                    saving.pattern.as_str(),
                    saving.is_requested,
                    saving.events,
                    saving.cumulative_events,
                )
            })
            .collect();
        let expected =
            [("k*", true, 5, 5), ("*acpi*", false, 600, 600), ("*raw_spin*", false, 180, 780)];
        assert_eq!(savings, expected);
    }

    #[test]
    fn one_function_that_is_called_most_is_named_whole() {
        let found = savings(&functions(&[("vmread_error", 900), ("other_thing", 2)]), &[]);
        assert_eq!(found.first().map(|saving| saving.pattern.as_str()), Some("vmread_error"));
        assert!(savings(&[], &[]).is_empty());
    }
}
