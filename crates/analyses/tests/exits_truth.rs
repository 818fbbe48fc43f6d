//! Exits of the bundled recordings against counts made independently from `trace-cmd report`.

// Helpers of tests are not `#[test]` functions, which clippy.toml lets unwrap.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use analyses::{By, exits};
use serde_json::Value;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// What the truth tells of one raw code: count, paired, sum, least and greatest duration.
type Numbers = (u64, u64, u64, Option<u64>, Option<u64>);

fn expected(name: &str) -> BTreeMap<String, Numbers> {
    let path = fixtures().join(name).with_extension("truth.json");
    let truth: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
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
    let recording = sources::open(&fixtures().join(name)).unwrap();
    let report = exits(&recording, &[By::Code], &|_| ());
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

fn check(name: &str) {
    let expected = expected(name);
    assert!(!expected.is_empty(), "{name} has no exits to compare");
    assert_eq!(found(name), expected, "{name}");
}

#[test]
fn amd_host_and_guest() {
    check("x86-svm/host-guest.dat");
}

#[test]
fn amd_nested() {
    check("x86-svm/nested.dat");
}

#[test]
fn intel_one_vm() {
    check("x86-vmx/vmm.dat");
}

#[test]
fn intel_three_vms_on_two_cpus() {
    check("x86-vmx/smp.dat");
}

#[test]
fn intel_nested() {
    check("x86-vmx/nested.dat");
}

#[test]
fn arm64_guest_over_vsock() {
    check("arm64/A.dat");
}

#[test]
fn arm64_network_without_vhost() {
    check("arm64/B-vhost-off.dat");
}

#[test]
fn arm64_network_with_vhost() {
    check("arm64/B-vhost-on.dat");
}

#[test]
fn arm64_seen_by_perf_too() {
    check("arm64/D.dat");
}
