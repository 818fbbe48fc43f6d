//! Nested guests: which level handled their exits, and the cost for level 1.

use std::collections::BTreeMap;

use analyses::nested::{NestedRow, nested};

use super::accounts::naive;
use super::naive_nested::{LevelTwo, level_two};
use super::{open, truth};

fn found(row: &NestedRow) -> LevelTwo {
    let injected_as = row.injected_as.iter().map(|(_, code, count)| (code.to_string(), *count));
    let ancillary = row.ancillary.iter().map(|ancillary_row| {
        let sums =
            (ancillary_row.count, ancillary_row.durations.count(), ancillary_row.durations.sum());
        (ancillary_row.code.to_string(), sums)
    });
    LevelTwo {
        count: row.count,
        paired: row.durations.count(),
        time_ns: row.durations.sum(),
        reflected: row.reflected,
        unfinished: row.unfinished,
        injected_as: injected_as.collect(),
        ancillary: ancillary.collect(),
    }
}

fn check(name: &str) {
    let exits = naive(name);
    let expected = level_two(&exits);
    assert!(!expected.is_empty(), "{name} has nested exits");
    let report = nested(&open(name), &|_| ());
    let rows: BTreeMap<String, LevelTwo> =
        report.rows.iter().map(|row| (row.code.to_string(), found(row))).collect();
    assert_eq!(rows, expected, "{name}");
    let of_level = |level| exits.iter().filter(|exit| exit.level == level).count() as u64;
    assert_eq!(report.levels.iter().map(|level| level.level1).sum::<u64>(), of_level(1));
    assert_eq!(report.levels.iter().map(|level| level.level2).sum::<u64>(), of_level(2));
}

#[test]
fn amd() {
    check("x86-svm/nested.dat");
}

#[test]
fn intel() {
    check("x86-vmx/nested.dat");
}

#[test]
fn recordings_without_nested_guests_have_no_rows() {
    for name in ["x86-svm/host-guest.dat", "x86-vmx/smp.dat", "arm64/A.dat"] {
        assert!(nested(&open(name), &|_| ()).rows.is_empty(), "{name}");
    }
}

/// The recording's own events give the numbers of level-2 exits and of reflected exits.
#[test]
fn sums_are_those_of_the_nested_events() {
    for name in ["x86-svm/nested.dat", "x86-vmx/nested.dat"] {
        let events = &truth(name)["events"];
        let number = |event: &str| events[event].as_u64().unwrap();
        let report = nested(&open(name), &|_| ());
        let sum = |value_of: fn(&NestedRow) -> u64| report.rows.iter().map(value_of).sum::<u64>();
        assert_eq!(sum(|row| row.count), number("kvm_nested_vmexit"), "{name}");
        assert_eq!(sum(|row| row.reflected), number("kvm_nested_vmexit_inject"), "{name}");
    }
}

/// On AMD, each reflected exit costs level 1 one VMRUN, STGI and CLGI.
#[test]
fn amd_parents_pay_one_vmrun_stgi_and_clgi_per_exit() {
    let name = "x86-svm/nested.dat";
    let report = nested(&open(name), &|_| ());
    let reflected: u64 = report.rows.iter().map(|row| row.reflected).sum();
    assert_eq!(reflected, 36_068);
    for (reason, code) in [("vmrun", "128"), ("stgi", "132"), ("clgi", "133")] {
        let rows = report.rows.iter().flat_map(|row| &row.ancillary);
        let count: u64 = rows.filter(|row| row.code.to_string() == code).map(|row| row.count).sum();
        let all = truth(name)["exits"][code]["count"].as_u64().unwrap();
        assert_eq!(all, 36_068, "{reason}");
        let ratio = count as f64 / reflected as f64;
        assert!((0.999..=1.0).contains(&ratio), "{reason}: {count} for {reflected}");
    }
}

/// All level-1 exits for model-specific registers have the register's number, and no other exits have one.
#[test]
fn exits_for_registers_name_theirs() {
    for (name, codes) in
        [("x86-svm/nested.dat", &["124"][..]), ("x86-vmx/nested.dat", &["31", "32"])]
    {
        let report = nested(&open(name), &|_| ());
        let mut all = 0;
        for row in report.rows.iter().flat_map(|row| &row.ancillary) {
            let named: u64 = row.msrs.iter().map(|(_, count)| count).sum();
            let is_of_register = codes.contains(&row.code.to_string().as_str());
            assert_eq!(named, if is_of_register { row.count } else { 0 }, "{name} {}", row.reason);
            all += named;
        }
        let events = truth(name)["events"]["kvm_msr"].as_u64().unwrap();
        assert!(all > 0 && all <= events, "{name}: {all} of {events}");
    }
}

/// On Intel, level 1 reads one register in each reflected exit, and hardly any others.
#[test]
fn intel_parents_read_debugctl() {
    let report = nested(&open("x86-vmx/nested.dat"), &|_| ());
    let reads = report.rows.iter().flat_map(|row| &row.ancillary);
    let reads: Vec<_> = reads.filter(|read| read.code.to_string() == "31").collect();
    let all: u64 = reads.iter().map(|read| read.count).sum();
    let of_debugctl = |(msr, count): &(u64, u64)| if *msr == 0x1d9 { *count } else { 0 };
    let debugctl: u64 = reads.iter().flat_map(|read| &read.msrs).map(of_debugctl).sum();
    assert!(all >= 400 && debugctl * 100 >= all * 99, "{debugctl} of {all}");
}
