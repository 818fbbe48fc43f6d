//! Compares exits by raw code with `NAME.truth.json`, made from the output of `trace-cmd report`.

use std::collections::BTreeMap;

use analyses::exits::exits;
use analyses::group::By;

use super::{open, truth};

/// The truth of one raw code: count, paired, sum, min and max duration.
type Numbers = (u64, u64, u64, Option<u64>, Option<u64>);

fn expected(name: &str) -> BTreeMap<String, Numbers> {
    let truth = truth(name);
    let exits = truth["exits"].as_object().unwrap().iter();
    exits
        .map(|(code, row)| {
            let number = |field: &str| row[field].as_u64();
            let numbers = (
                number("count").unwrap(),
                number("paired").unwrap(),
                number("time_ns").unwrap(),
                number("min_ns"),
                number("max_ns"),
            );
            (code.clone(), numbers)
        })
        .collect()
}

fn found(name: &str) -> BTreeMap<String, Numbers> {
    let report = exits(&open(name), &[By::Code], &|_| ());
    report
        .rows
        .iter()
        .map(|row| {
            let durations = &row.tally.durations;
            let numbers = (
                row.tally.count,
                row.tally.paired(),
                durations.sum(),
                durations.min(),
                durations.max(),
            );
            (row.group.code.as_ref().unwrap().to_string(), numbers)
        })
        .collect()
}

pub(crate) fn check(name: &str) {
    let expected = expected(name);
    assert!(!expected.is_empty(), "{name} has no exits to compare");
    assert_eq!(found(name), expected, "{name}");
}
