//! Decides which changes over time are separate findings, not those that another reason offsets, and which kinds of
//! hosts carry a change of all hosts.

use std::collections::BTreeSet;

use crate::level_change::{LevelChange, host_changes};
use crate::series::Series;

/// Allowed ratio of two changes that offset each other.
const SAME: std::ops::RangeInclusive<f64> = 0.5..=2.0;

/// Notes reasons whose rate changed while another reason's changed by as much in the other direction at the same
/// time, and the sum did not change: work is counted elsewhere.
pub(crate) fn note_moves(changes: &mut [LevelChange]) {
    let moved: Vec<Option<String>> =
        changes.iter().map(|change| made_up_by(change, changes)).collect();
    for (change, moved) in changes.iter_mut().zip(moved) {
        change.moved = moved;
    }
}

fn made_up_by(change: &LevelChange, changes: &[LevelChange]) -> Option<String> {
    if !change.metric.is_rate() || change.is_of_all() {
        return None;
    }
    let is_peer = |other: &&LevelChange| {
        other.stratum == change.stratum
            && other.metric == change.metric
            && other.is_about_when(change)
    };
    let peers = || changes.iter().filter(is_peer);
    if peers().any(LevelChange::is_of_all) {
        return None;
    }
    let more = |change: &LevelChange| change.after - change.before;
    let others = peers().filter(|other| !other.is_of(change) && other.level == change.level);
    let mut same = others.filter(|other| SAME.contains(&(-more(other) / more(change))));
    same.next().map(|other| other.reason.clone())
}

/// Names the kinds of hosts that carry a change of all hosts, if only some kinds do.
pub(crate) fn name_kinds(changes: &mut [LevelChange], series: &[Series]) {
    let of_kinds: Vec<LevelChange> =
        changes.iter().filter(|change| change.stratum.is_some()).cloned().collect();
    for change in changes.iter_mut().filter(|change| change.stratum.is_none()) {
        let is_same = |kind: &&LevelChange| {
            kind.metric == change.metric && kind.is_of(change) && kind.is_with(change)
        };
        let carrying: Vec<&LevelChange> = of_kinds.iter().filter(is_same).collect();
        let columns: BTreeSet<&str> = carrying.iter().filter_map(|kind| column(kind)).collect();
        // The most specific column is the one of which the fewest kinds carry the change.
        let share = |name: &&str| {
            let kinds = carrying.iter().filter(|kind| column(kind) == Some(*name));
            let hosts: usize = kinds.map(|kind| kind.hosts).sum();
            let all = series.iter().filter(|series| {
                let is_kind = series.stratum.as_ref().is_some_and(|kind| kind.0 == **name);
                is_kind && series.metric == change.metric && is_of(series, change)
            });
            (hosts, all.count())
        };
        let found = columns.into_iter().map(|name| (name, share(&name)));
        let some = found.filter(|(name, (_, kinds))| {
            carrying.iter().filter(|kind| column(kind) == Some(name)).count() < *kinds
        });
        let Some((name, _)) = some.min_by_key(|(_, (hosts, _))| *hosts) else { continue };
        let kinds = carrying.iter().filter(|kind| column(kind) == Some(name));
        let hosts: BTreeSet<&String> = kinds.flat_map(|kind| &kind.carried_by).collect();
        change.carried_by = hosts.into_iter().cloned().collect();
    }
}

/// Adds to changes of a kind the number of hosts of all kinds.
pub(crate) fn count_all_hosts(changes: &mut [LevelChange], series: &[Series]) {
    for change in changes.iter_mut().filter(|change| change.stratum.is_some()) {
        let is_whole = |series: &&Series| {
            series.stratum.is_none() && series.metric == change.metric && is_of(series, change)
        };
        if let Some(fleet) = series.iter().find(is_whole) {
            let hosts = host_changes(&fleet.levels.values, change.bounds).len();
            change.hosts_of_all = hosts.max(change.hosts);
        }
    }
}

/// Findings, each as indices of its changes, the most certain first: several numbers or kinds of the same hosts at
/// the same time are one finding.
pub(crate) fn distinct(changes: &[LevelChange]) -> Vec<Vec<usize>> {
    let mut all: Vec<(&LevelChange, Vec<usize>)> = Vec::new();
    for (at, change) in changes.iter().enumerate().filter(|(_, change)| change.is_finding()) {
        let is_one = |(known, _): &&mut (&LevelChange, Vec<usize>)| {
            known.is_of(change) && known.is_with(change) && known.carried_by == change.carried_by
        };
        match all.iter_mut().find(is_one) {
            Some(known) => known.1.push(at),
            None => all.push((change, vec![at])),
        }
    }
    let p = |at: &usize| changes.get(*at).map_or(1.0, |change| change.p_adjusted);
    let sorted = |(_, mut places): (&LevelChange, Vec<usize>)| {
        places.sort_by(|place, other| p(place).total_cmp(&p(other)));
        places
    };
    all.into_iter().map(sorted).collect()
}

fn column(change: &LevelChange) -> Option<&str> {
    change.stratum.as_ref().map(|stratum| stratum.0.as_str())
}

fn is_of(series: &Series, change: &LevelChange) -> bool {
    let key = &series.key;
    (key.level, &key.isa, &key.reason, key.waiting)
        == (change.level, &change.isa, &change.reason, change.waiting)
}
