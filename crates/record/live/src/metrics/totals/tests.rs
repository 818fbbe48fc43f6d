//! Tests of monotonic sums, ends of VMs, and limits.

use std::collections::BTreeMap;

use crate::{Histogram, States, Sums, Vcpu};
use proptest::prelude::*;
use timeline::Parts;
use timeline::VcpuActivity;
use timeline::arch::Isa;
use timeline::reasons::Code;

use super::*;

const SECOND_NS: u64 = 1_000_000_000;

pub(crate) fn row(vm: &str, reason: &str, waiting: bool, count: u64) -> Row {
    let mut counts = [0; crate::BUCKETS];
    counts[60] = count;
    let parts = Parts { kernel_ns: 3 * count, user_ns: 2 * count, ..Parts::default() };
    Row {
        vm: Some(vm.to_owned()),
        vcpu: None,
        level: 1,
        isa: Isa::Svm,
        code: Some(Code::Number(1)),
        reason: reason.to_owned(),
        waiting,
        sums: Sums {
            count,
            paired: count,
            time_ns: 5 * count,
            before_exit_ns: count,
            parts,
            handled: [count, 0, 0],
            times: Histogram::new(counts, count),
            ..Sums::default()
        },
    }
}

pub(crate) fn vcpu(vm: &str, number: u32) -> Vcpu {
    let mut states = States::default();
    states.give(VcpuActivity::Guest, SECOND_NS - 100);
    states.give(VcpuActivity::Waiting, 100);
    Vcpu {
        vm: vm.to_owned(),
        process: 1,
        vcpu: Some(number),
        thread: 100 + number,
        states,
        waits: row(vm, "", false, 2).sums,
        ..Vcpu::default()
    }
}

pub(crate) fn interval(rows: Vec<Row>, vcpus: Vec<Vcpu>) -> Interval {
    Interval { end_ns: SECOND_NS, rows, vcpus, ..Interval::default() }
}

/// Counts by VM and reason; empty names mean the rest.
fn counts(totals: &Totals) -> BTreeMap<(String, String), u64> {
    let mut counts = BTreeMap::new();
    for (name, vm) in totals.vms.iter().map(|(name, vm)| (name.clone(), vm)) {
        for ((_, reason), exits) in &vm.reasons {
            counts.insert((name.clone(), reason.clone()), exits.count);
        }
        counts.insert((name, String::new()), vm.other.count);
    }
    counts.insert((String::new(), String::new()), totals.rest.other.count);
    counts
}

#[test]
fn intervals_add_up() {
    let mut totals = Totals::new(10_000);
    for _ in 0..3 {
        totals.add(&interval(
            vec![row("web", "hlt", true, 4), row("web", "msr", false, 6)],
            vec![vcpu("web", 0), vcpu("web", 1)],
        ));
    }
    let web = &totals.vms["web"];
    assert_eq!((web.exits(), web.handled), (30, [30, 0, 0]));
    assert_eq!(web.reasons[&(1, "msr".to_owned())].parts_ns, [54, 36, 0, 0, 0, 18]);
    let [busy, waiting] = &web.durations;
    assert_eq!((busy.histogram.count(), busy.sum_ns), (18, 90));
    assert_eq!((waiting.histogram.count(), waiting.sum_ns), (12, 60));
    assert_eq!((web.vcpus, web.states.total_ns()), (2, 6 * SECOND_NS));
    assert_eq!((web.waits.histogram.count(), totals.left_out), (12, 0));
}

#[test]
fn series_of_a_vm_end_a_minute_after_it() {
    let mut totals = Totals::new(10_000);
    let mut last = interval(vec![row("web", "hlt", true, 1)], vec![vcpu("web", 0)]);
    last.vcpus[0].gone = true;
    totals.add(&last);
    assert_eq!(totals.vms["web"].vcpus, 0);
    let at = |second: u64| Interval { end_ns: second * SECOND_NS, ..Interval::default() };
    totals.add(&at(61));
    assert_eq!(totals.vms["web"].exits(), 1);
    totals.add(&at(62));
    assert!(totals.vms.is_empty());
    assert_eq!(totals.series(), MIN_SERIES);
    // A new VM of the same name starts at 0.
    totals.add(&Interval { end_ns: 63 * SECOND_NS, ..last });
    assert_eq!(totals.vms["web"].exits(), 1);
}

#[test]
fn what_has_no_room_is_counted_elsewhere_and_reported() {
    let mut totals = Totals::new(MIN_SERIES + VM_SERIES + REASON_SERIES);
    for _ in 0..2 {
        totals.add(&interval(
            vec![row("a", "hlt", true, 1), row("a", "msr", false, 2), row("b", "hlt", true, 4)],
            vec![vcpu("a", 0), vcpu("b", 0)],
        ));
    }
    let counts = counts(&totals);
    let count_of = |vm: &str, reason: &str| counts[&(vm.to_owned(), reason.to_owned())];
    assert_eq!((count_of("a", "hlt"), count_of("a", ""), count_of("", "")), (2, 4, 8));
    assert_eq!((totals.rest.vcpus, totals.vms["a"].vcpus), (1, 1));
    assert_eq!(totals.left_out, VM_SERIES + REASON_SERIES);
    assert_eq!(totals.series(), totals.most_series());
}

#[test]
fn exits_of_no_known_vm_are_kept() {
    let mut totals = Totals::new(10_000);
    totals.add(&interval(vec![Row { vm: None, ..row("", "other", false, 5) }], vec![]));
    assert_eq!((totals.rest.exits(), totals.left_out), (5, 0));
}

proptest! {
    #[test]
    fn counters_never_fall_and_no_exit_is_missing(
        intervals in proptest::collection::vec(
            proptest::collection::vec((0usize..6, 0usize..4, 0u64..9), 0..12), 1..12),
        room in 0usize..6,
    ) {
        let mut totals = Totals::new(MIN_SERIES + room * VM_SERIES / 2);
        let mut all = 0;
        for interval_rows in intervals {
            let before = counts(&totals);
            let mut vms: Vec<usize> = interval_rows.iter().map(|row| row.0).collect();
            vms.dedup();
            let rows = interval_rows.iter().map(|&(vm, reason, count)| {
                all += count;
                row(&format!("vm{vm}"), &format!("reason{reason}"), reason == 0, count)
            });
            let rows = rows.collect();
            let vcpus = vms.iter().map(|vm| vcpu(&format!("vm{vm}"), 0)).collect();
            totals.add(&interval(rows, vcpus));
            let after = counts(&totals);
            for (key, count) in before {
                prop_assert!(after[&key] >= count);
            }
            prop_assert_eq!(after.values().sum::<u64>(), all);
            prop_assert!(totals.series() <= totals.most_series());
        }
    }
}
