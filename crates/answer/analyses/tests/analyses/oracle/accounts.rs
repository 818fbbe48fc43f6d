//! Compares every exit of every recording: counts, handlers, and parts to the nanosecond.

use std::collections::BTreeMap;

use analyses::exits::exits;
use analyses::group::By;
use analyses::tally::Tally;

use super::naive_exits::{Exit, Sums, exits_of};
use super::{flat, open};

/// All exits of a recording by thread.
pub(crate) fn naive(name: &str) -> Vec<Exit> {
    let recording = open(name);
    let all = flat::events(&recording);
    let threads = flat::by_vcpu_thread(&all);
    threads.iter().flat_map(|(thread, events)| exits_of(*thread, events)).collect()
}

fn expected<K: Ord>(exits: &[Exit], key: impl Fn(&Exit) -> K) -> BTreeMap<K, Sums> {
    let mut groups: BTreeMap<K, Sums> = BTreeMap::new();
    for exit in exits {
        groups.entry(key(exit)).or_default().add(exit);
    }
    groups
}

fn found<K: Ord>(
    name: &str,
    by: &[By],
    key: impl Fn(&analyses::group::Group) -> K,
) -> BTreeMap<K, Sums> {
    let report = exits(&open(name), by, &|_| ());
    report.rows.iter().map(|row| (key(&row.group), sums(&row.tally))).collect()
}

fn sums(tally: &Tally) -> Sums {
    assert_eq!(tally.dropped, 0, "nothing was lost in the bundled recordings");
    assert_eq!(tally.parts.total_ns(), tally.durations.sum(), "parts add up");
    Sums {
        count: tally.count,
        paired: tally.paired(),
        time_ns: tally.durations.sum(),
        kernel_ns: tally.parts.kernel_ns,
        user_ns: tally.parts.user_ns,
        runnable_ns: tally.parts.runnable_ns,
        blocked_ns: tally.parts.blocked_ns,
        halt_poll_ns: tally.parts.halt_poll_ns,
        by_kernel: tally.by_kernel,
        by_user: tally.by_user,
        by_l1: tally.by_l1,
        poll_unknown: tally.poll_unknown,
        before_exit_ns: tally.before_exit_ns,
        guest_ns: tally.guest_ns,
    }
}

pub(crate) fn check(name: &str) {
    let exits = naive(name);
    assert!(!exits.is_empty(), "{name} has exits");
    let code = |group: &analyses::group::Group| group.code.as_ref().unwrap().to_string();
    assert_same(
        &format!("{name} by code"),
        &expected(&exits, |exit| exit.code.clone()),
        &found(name, &[By::Code], code),
    );
    assert_same(
        &format!("{name} by thread, level and code"),
        &expected(&exits, |exit| (exit.thread, exit.level, exit.code.clone())),
        &found(name, &[By::Task, By::Level, By::Code], |group| {
            let (_, thread) = group.task.as_ref().unwrap().rsplit_once('-').unwrap();
            (thread.parse().unwrap(), group.level.unwrap(), code(group))
        }),
    );
    if exits.iter().all(|exit| exit.vcpu_id.is_some()) {
        assert_same(
            &format!("{name} by vCPU, level and code"),
            &expected(&exits, |exit| (exit.vcpu_id, exit.level, exit.code.clone())),
            &found(name, &[By::Vcpu, By::Level, By::Code], |group| {
                (group.vcpu.map(u64::from), group.level.unwrap(), code(group))
            }),
        );
    }
}

/// Prints only the groups that differ.
fn assert_same<K: Ord + std::fmt::Debug>(
    what: &str,
    expected: &BTreeMap<K, Sums>,
    found: &BTreeMap<K, Sums>,
) {
    let keys: std::collections::BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    let differences: Vec<String> = keys
        .into_iter()
        .filter(|key| expected.get(key) != found.get(key))
        .map(|key| {
            format!("{key:?}\n  naive: {:?}\n  found: {:?}", expected.get(key), found.get(key))
        })
        .collect();
    assert!(differences.is_empty(), "{what}\n{}", differences.join("\n"));
}

#[test]
fn guests_without_guests_have_no_exits() {
    for name in ["x86-svm/host-guest.guest.dat", "arm64/A.guest.dat"] {
        assert!(naive(name).is_empty() && exits(&open(name), &[By::Code], &|_| ()).rows.is_empty());
    }
}
