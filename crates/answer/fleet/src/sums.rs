//! Sums of the exits of each host and side, from the rollups of a lake.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io;

use crate::lake::store::{Entry, Storage, TableFiles, each_open};
use crate::lake::tables::{EXIT_HIST, EXIT_ROLLUP};
use crate::lake::{Group, Values, each_group};
use analyses::distribution::upper_end;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::sessions::files;

/// The key of a kind of exits; without a reason: all except waiting exits.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// 0: all levels.
    pub(crate) level: i32,
    pub(crate) isa: String,
    pub(crate) reason: String,
    pub(crate) waiting: bool,
}

impl Key {
    /// Whether it stands for all exits together.
    pub(crate) fn is_of_all(&self) -> bool {
        self.level == 0 && self.reason.is_empty()
    }

    /// The reason as text.
    pub(crate) fn shown(&self) -> &str {
        if self.is_of_all() { "all" } else { &self.reason }
    }
}

/// A borrowed key, as a row has it: looks up existing sums without a copy of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Kind<'r> {
    level: i32,
    isa: &'r str,
    reason: &'r str,
    waiting: bool,
}

impl Kind<'_> {
    fn to_key(self) -> Key {
        let Self { level, isa, reason, waiting } = self;
        Key { level, isa: isa.to_owned(), reason: reason.to_owned(), waiting }
    }
}

/// Lookup by both types of keys, which compare alike.
trait AsKind {
    fn kind(&self) -> Kind<'_>;
}

impl AsKind for Key {
    fn kind(&self) -> Kind<'_> {
        Kind { level: self.level, isa: &self.isa, reason: &self.reason, waiting: self.waiting }
    }
}

impl AsKind for Kind<'_> {
    fn kind(&self) -> Kind<'_> {
        *self
    }
}

impl<'r> Borrow<dyn AsKind + 'r> for Key {
    fn borrow(&self) -> &(dyn AsKind + 'r) {
        self
    }
}

impl PartialEq for dyn AsKind + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.kind() == other.kind()
    }
}

impl Eq for dyn AsKind + '_ {}

impl PartialOrd for dyn AsKind + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn AsKind + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.kind().cmp(&other.kind())
    }
}

/// Sums of a kind of exits.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupSums {
    pub(crate) exits: u64,
    pub(crate) paired: u64,
    pub(crate) time_ns: u64,
    /// `None`: not recorded.
    pub(crate) cost_ns: Option<u64>,
    /// Times by bucket.
    pub(crate) hist: FxHashMap<i32, u64>,
}

impl GroupSums {
    fn add(&mut self, other: &Self) {
        self.exits = self.exits.saturating_add(other.exits);
        self.paired = self.paired.saturating_add(other.paired);
        self.time_ns = self.time_ns.saturating_add(other.time_ns);
        if let Some(cost_ns) = other.cost_ns {
            self.cost_ns = Some(self.cost_ns.unwrap_or(0).saturating_add(cost_ns));
        }
    }
}

/// A host's exits on one side, or in a part of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostSums {
    /// Time that was recorded without a loss.
    pub(crate) covered_ns: u64,
    pub(crate) groups: BTreeMap<Key, GroupSums>,
}

impl HostSums {
    fn change(&mut self, kind: Kind<'_>, change: impl FnOnce(&mut GroupSums)) {
        match self.groups.get_mut(&kind as &dyn AsKind) {
            Some(sums) => change(sums),
            None => change(self.groups.entry(kind.to_key()).or_default()),
        }
    }
}

/// The target of a session's rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) host: usize,
    /// 0: A; 1: B.
    pub(crate) side: usize,
    /// Slices from this time on are at the end of the side; unset if the time is unknown.
    pub(crate) late_ns: i64,
}

/// By host: the sums on A, on B, and at the end of B.
pub(crate) type Sums = Vec<[HostSums; 3]>;

/// Index of the end of B in a host's sums.
pub(crate) const LATE: usize = 2;

/// The used sessions, by session id and then ingest id, so that a row's texts can be looked up without a
/// copy.
pub(crate) type Places = FxHashMap<String, FxHashMap<String, Place>>;

/// Selects the sessions and hosts to sum.
#[derive(Debug)]
pub(crate) struct SessionChoice {
    pub(crate) places: Places,
    pub(crate) hosts: usize,
    /// Whether to read histograms, which take most of the time.
    pub(crate) hists: bool,
}

/// Sums the rows of sessions that have a place, in files for which `is_wanted` holds.
pub(crate) fn read<S: Storage>(
    storage: &S,
    tables: &[TableFiles],
    SessionChoice { places, hosts, hists }: &SessionChoice,
    is_wanted: &dyn Fn(&str) -> bool,
) -> io::Result<Sums> {
    let mut sums = vec![<[HostSums; 3]>::default(); *hosts];
    let files = |table| -> Vec<&Entry> {
        files(tables, table).into_iter().filter(|file| is_wanted(&file.name)).collect()
    };
    each_open(storage, &files(EXIT_ROLLUP.name), &mut |_, file| {
        // By session of this file, the slices whose time was counted.
        let mut counted = FxHashMap::default();
        each_group(file, &EXIT_ROLLUP, &ROLLUP, &mut |group| {
            add_rollup(group, places, &mut sums, &mut counted)
        })
    })?;
    if *hists {
        each_open(storage, &files(EXIT_HIST.name), &mut |_, file| {
            each_group(file, &EXIT_HIST, &HIST, &mut |group| add_hist(group, places, &mut sums))
        })?;
    }
    Ok(sums)
}

const ROLLUP: [&str; 13] = [
    "session_id",
    "ingest_id",
    "machine",
    "slice_ns",
    "level",
    "isa",
    "reason",
    "waiting",
    "exits",
    "paired",
    "time_ns",
    "cost_ns",
    "covered_ns",
];

const HIST: [&str; 10] = [
    "session_id",
    "ingest_id",
    "machine",
    "metric",
    "level",
    "isa",
    "reason",
    "waiting",
    "bucket",
    "n",
];

/// Only the host's exits are compared: guests' own exits use their host's CPUs as well.
const HOST: &str = "host";

fn place_of<'p>(
    places: &'p Places,
    (session, ingest, machine): (&Values, &Values, &Values),
    row: usize,
) -> Option<&'p Place> {
    if machine.text(row) != Some(HOST) {
        return None;
    }
    places.get(session.text(row)?)?.get(ingest.text(row)?)
}

fn kind_of<'r>([level, isa, reason, waiting]: [&'r Values; 4], row: usize) -> Kind<'r> {
    Kind {
        level: level.number(row).and_then(|level| i32::try_from(level).ok()).unwrap_or(0),
        isa: isa.text(row).unwrap_or_default(),
        reason: reason.text(row).unwrap_or_default(),
        waiting: waiting.flag(row).unwrap_or(false),
    }
}

/// A number from a file that should not be negative.
fn count(values: &Values, row: usize) -> Option<u64> {
    values.number(row).map(|number| u64::try_from(number).unwrap_or(0))
}

fn add_rollup(
    group: &Group,
    places: &Places,
    sums: &mut Sums,
    counted: &mut FxHashMap<String, FxHashSet<i64>>,
) -> io::Result<()> {
    let [
        session,
        ingest,
        machine,
        slice,
        level,
        isa,
        reason,
        waiting,
        exits,
        paired,
        time,
        cost,
        covered,
    ] = group.columns()?;
    for row in 0..group.rows {
        let Some(place) = place_of(places, (session, ingest, machine), row) else { continue };
        let slice_ns = slice.number(row).unwrap_or(0);
        let row_sums = GroupSums {
            exits: count(exits, row).unwrap_or(0),
            paired: count(paired, row).unwrap_or(0),
            time_ns: count(time, row).unwrap_or(0),
            cost_ns: count(cost, row),
            hist: FxHashMap::default(),
        };
        let kind = kind_of([level, isa, reason, waiting], row);
        let covered_ns = if is_first(counted, session.text(row).unwrap_or_default(), slice_ns) {
            count(covered, row).unwrap_or(0)
        } else {
            0
        };
        let Some(host) = sums.get_mut(place.host) else { continue };
        let is_late = place.side == 1 && slice_ns >= place.late_ns;
        for side in [Some(place.side), is_late.then_some(LATE)].into_iter().flatten() {
            let Some(side) = host.get_mut(side) else { continue };
            side.covered_ns = side.covered_ns.saturating_add(covered_ns);
            if !kind.waiting {
                side.change(Kind::default(), |sums| sums.add(&row_sums));
            }
            side.change(kind, |sums| sums.add(&row_sums));
        }
    }
    Ok(())
}

/// Whether a session's slice is seen for the first time.
fn is_first(seen: &mut FxHashMap<String, FxHashSet<i64>>, session: &str, slice_ns: i64) -> bool {
    match seen.get_mut(session) {
        Some(slices) => slices.insert(slice_ns),
        None => seen.entry(session.to_owned()).or_default().insert(slice_ns),
    }
}

fn add_hist(group: &Group, places: &Places, sums: &mut Sums) -> io::Result<()> {
    let [session, ingest, machine, metric, level, isa, reason, waiting, bucket, n] =
        group.columns()?;
    for row in 0..group.rows {
        if metric.text(row) != Some("time") {
            continue;
        }
        let Some(place) = place_of(places, (session, ingest, machine), row) else { continue };
        let bucket = bucket.number(row).and_then(|bucket| i32::try_from(bucket).ok());
        let (Some(bucket), Some(n)) = (bucket, count(n, row)) else { continue };
        let kind = kind_of([level, isa, reason, waiting], row);
        let side = sums.get_mut(place.host).and_then(|host| host.get_mut(place.side));
        let Some(side) = side else { continue };
        let kinds = [(!kind.waiting).then(Kind::default), Some(kind)];
        for kind in kinds.into_iter().flatten() {
            side.change(kind, |sums| *sums.hist.entry(bucket).or_default() += n);
        }
    }
    Ok(())
}

/// The end of the bucket below which `per_mille` of the values are.
pub(crate) fn percentile(hist: &FxHashMap<i32, u64>, per_mille: u64) -> Option<u64> {
    let mut buckets: Vec<(i32, u64)> = hist.iter().map(|(bucket, n)| (*bucket, *n)).collect();
    buckets.sort_unstable();
    let total: u128 = buckets.iter().map(|(_, n)| u128::from(*n)).sum();
    let mut upto = 0;
    let found = buckets.iter().find(|(_, n)| {
        upto += u128::from(*n);
        upto * 1000 >= total * u128::from(per_mille)
    });
    usize::try_from(found?.0).ok().map(upper_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_among_keys() {
        let mut all = Vec::new();
        for level in 0..3 {
            for isa in ["", "svm", "vmx"] {
                for reason in ["", "hlt", "npf"] {
                    all.extend([false, true].map(|waiting| Kind { level, isa, reason, waiting }));
                }
            }
        }
        let mut host = HostSums::default();
        for round in 1..=2 {
            for kind in &all {
                host.change(*kind, |sums| sums.exits += 1);
            }
            assert_eq!(host.groups.len(), 54);
            assert!(host.groups.values().all(|sums| sums.exits == round));
        }
        assert_eq!(host.groups.keys().map(AsKind::kind).collect::<Vec<_>>(), all);
    }

    #[test]
    fn percentiles_are_ends_of_buckets() {
        let hist: FxHashMap<i32, u64> = (0..100).map(|bucket| (bucket, 1)).collect();
        assert_eq!(percentile(&hist, 990), Some(98));
        assert_eq!(percentile(&hist, 500), Some(49));
        assert_eq!(percentile(&FxHashMap::default(), 500), None);
    }
}
