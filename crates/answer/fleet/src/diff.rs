//! Compares two parts of a lake, host by host.

mod grid;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::lake::store::{Storage, counted};

pub(crate) use self::grid::{Grid, GridColumn, GridHost, HostSession};
use crate::carriers::carriers;
use crate::compare::{Design, HostValues, compare};
use crate::findings::{correct, note_shifts};
use crate::metric::Metric;
use crate::rows::{HostRatio, Row};
use crate::selection::Selection;
use crate::sessions::{Session, Sessions};
use crate::sums::{Key, LATE, Place, Places, SessionChoice, Sums, read};
use crate::totals::{Parts, total_ratio};

/// The question of a comparison.
#[derive(Clone, Debug)]
pub struct Question {
    /// Sessions of the first side, and of the second.
    pub sides: [Selection; 2],
    /// Controls are hosts for which this holds for all sessions of the second side.
    pub control: Option<Selection>,
    /// The column of `sessions` or the label that defines kinds of hosts.
    pub strata: String,
    /// Numbers to compare.
    pub metrics: Vec<Metric>,
    /// Sessions that lost a greater share of their events are left out.
    pub most_lost: f64,
    /// Accepted share of false positives among the significant rows.
    pub alpha: f64,
    /// Seed of the resamples.
    pub seed: u64,
    /// Keep each host's numbers, for a page.
    pub per_host: bool,
}

/// Facts about a side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SideFacts {
    pub hosts: usize,
    pub sessions: usize,
    /// Time that was recorded without a loss.
    pub covered_ns: u64,
}

/// Two parts of a fleet, compared.
#[derive(Clone, Debug)]
pub struct FleetDiff {
    /// The question.
    pub question: Question,
    /// Both sides.
    pub sides: [SideFacts; 2],
    /// Hosts on both sides.
    pub paired: usize,
    /// Hosts that are controls.
    pub controls: usize,
    /// Sessions that were left out: too many losses, unknown host, on both sides, or of a host that is a control only
    /// in part.
    pub left_out: [usize; 4],
    /// Rows, greatest change first.
    pub rows: Vec<Row>,
    /// Each host's numbers, if requested.
    pub(crate) grid: Option<Grid>,
}

/// Compares two parts of a lake.
///
/// # Errors
/// When it can't be read, or a condition uses a name that sessions don't have (an error of [`crate::SelectionError`]).
pub fn fleet_diff<S: Storage>(storage: &S, question: Question) -> io::Result<FleetDiff> {
    let tables = counted(storage)?;
    let sessions = Sessions::read(storage, &tables)?;
    let [a, b] = &question.sides;
    sessions.check([Some(a), Some(b), question.control.as_ref()], &[&question.strata])?;
    let fleet = Fleet::new(&question, &sessions);
    let hists = question.metrics.contains(&Metric::P99);
    let wanted = SessionChoice { places: fleet.places(), hosts: fleet.hosts.len(), hists };
    let sums = read(storage, &tables, &wanted, &|_| true)?;
    let mut rows = fleet.rows(&question, &sums);
    correct(&mut rows, question.alpha);
    note_shifts(&mut rows);
    for row in rows.iter_mut().filter(|row| row.significant) {
        fleet.explain(row, &sums, question.alpha);
    }
    name_strata(&mut rows);
    let size = |row: &Row| row.log_change().map_or(0.0, f64::abs);
    rows.sort_by(|row, other| {
        let significant = other.significant.cmp(&row.significant);
        significant.then(size(other).total_cmp(&size(row)))
    });
    let grid = question.per_host.then(|| fleet.grid(&question, &sums));
    Ok(FleetDiff { grid, ..fleet.done(question, &sums, rows) })
}

#[derive(Debug)]
struct Host {
    name: String,
    /// Index of its stratum.
    stratum: usize,
    is_control: bool,
    /// Indices of its sessions, by side.
    sessions: [Vec<usize>; 2],
}

/// The hosts of both sides.
#[derive(Debug)]
struct Fleet<'s> {
    sessions: &'s Sessions,
    hosts: Vec<Host>,
    strata: Vec<String>,
    left_out: [usize; 4],
}

/// The last third of B is its end.
const END: f64 = 1.0 / 3.0;

impl<'s> Fleet<'s> {
    fn new(question: &Question, sessions: &'s Sessions) -> Self {
        let mut left_out = [0; 4];
        let [lost, unknown, on_both, mixed] = &mut left_out;
        let mut hosts: BTreeMap<String, [Vec<usize>; 2]> = BTreeMap::new();
        for (at, session) in sessions.all.iter().enumerate() {
            let is_on =
                question.sides.each_ref().map(|side| side.holds(&|name| session.fact(name)));
            let side = match is_on {
                [false, false] => continue,
                [true, true] => {
                    *on_both += 1;
                    continue;
                }
                [is_first, _] => usize::from(!is_first),
            };
            if session.lost() > question.most_lost {
                *lost += 1;
                continue;
            }
            let Some(host) = session.text("host_id") else {
                *unknown += 1;
                continue;
            };
            let sides = hosts.entry(host).or_default();
            sides.iter_mut().skip(side).take(1).for_each(|side| side.push(at));
        }
        let kind = |all: &[Vec<usize>; 2]| {
            let newest = all.iter().flatten().next_back().and_then(|at| sessions.all.get(*at));
            newest.and_then(|session| session.text(&question.strata)).unwrap_or_default()
        };
        let strata: BTreeSet<String> = hosts.values().map(kind).collect();
        let strata: Vec<String> = strata.into_iter().collect();
        let mut found = Vec::new();
        for (name, all) in hosts {
            let Some(is_control) = is_control(question, sessions, &all) else {
                *mixed += all.iter().map(Vec::len).sum::<usize>();
                continue;
            };
            let stratum = strata.binary_search(&kind(&all)).unwrap_or(0);
            found.push(Host { name, stratum, is_control, sessions: all });
        }
        Self { sessions, hosts: found, strata, left_out }
    }

    fn session(&self, at: usize) -> Option<&'s Session> {
        self.sessions.all.get(at)
    }

    fn places(&self) -> Places {
        let mut places = Places::default();
        for (at, host) in self.hosts.iter().enumerate() {
            let late_ns = self.end_of(host);
            for (side, sessions) in host.sessions.iter().enumerate() {
                for session in sessions.iter().filter_map(|at| self.session(*at)) {
                    let of_session = places.entry(session.session.clone()).or_default();
                    of_session.insert(session.ingest.clone(), Place { host: at, side, late_ns });
                }
            }
        }
        places
    }

    /// The start of the end of a host's B.
    fn end_of(&self, host: &Host) -> i64 {
        let [_, b] = &host.sessions;
        let spans = b.iter().map(|at| self.session(*at).and_then(|session| session.span_ns));
        let Some(spans) = spans.collect::<Option<Vec<_>>>() else { return i64::MAX };
        let from = spans.iter().map(|span| span.0).min().unwrap_or(i64::MAX);
        let to = spans.iter().map(|span| span.1).max().unwrap_or(i64::MAX);
        to.saturating_sub((to.saturating_sub(from) as f64 * END) as i64)
    }

    /// The rows of all hosts and, if there are several kinds, of each kind.
    fn rows(&self, question: &Question, sums: &Sums) -> Vec<Row> {
        let keys: BTreeSet<&Key> =
            sums.iter().flat_map(|host| host.iter().flat_map(|side| side.groups.keys())).collect();
        let kinds = (0..self.strata.len()).map(Some).filter(|_| self.strata.len() > 1);
        let strata: Vec<Option<usize>> = [None].into_iter().chain(kinds).collect();
        let mut rows = Vec::new();
        for key in keys {
            for &metric in &question.metrics {
                for &stratum in &strata {
                    rows.extend(self.row(question, sums, (key, metric, stratum)));
                }
            }
        }
        rows
    }

    /// Hosts' values of a number on A and on another part.
    fn values(
        &self,
        sums: &Sums,
        (key, metric): (&Key, Metric),
        part: usize,
        stratum: Option<usize>,
    ) -> Vec<(usize, HostValues)> {
        let value = |host: usize, part: usize| {
            let side = sums.get(host)?.get(part)?;
            metric.value(side.groups.get(key)?, side.covered_ns)
        };
        let is_of = |host: &Host| stratum.is_none_or(|stratum| host.stratum == stratum);
        let hosts = self.hosts.iter().enumerate().filter(|(_, host)| is_of(host));
        hosts
            .map(|(at, host)| {
                let (stratum, is_control) = (host.stratum, host.is_control);
                (at, HostValues { a: value(at, 0), b: value(at, part), stratum, is_control })
            })
            .collect()
    }

    fn row(
        &self,
        question: &Question,
        sums: &Sums,
        (key, metric, stratum): (&Key, Metric, Option<usize>),
    ) -> Option<Row> {
        let values = self.values(sums, (key, metric), 1, stratum);
        let hosts: Vec<HostValues> = values.iter().map(|entry| entry.1).collect();
        let name = stratum.and_then(|at| self.strata.get(at).cloned());
        let mut row = Row::new(name, key, metric);
        row.count(&hosts);
        if row.hosts == [0; 3] {
            return None;
        }
        row.change = compare(&hosts, question.alpha, question.seed);
        let changed = values.iter().filter(|entry| !entry.1.is_control);
        let parts: Vec<Parts> = changed
            .map(|(at, _)| {
                [0, 1].map(|side| {
                    let side = sums.get(*at)?.get(side)?;
                    metric.quotient(side.groups.get(key)?, side.covered_ns)
                })
            })
            .collect();
        row.total = row.change.and_then(|change| {
            let paired = change.design != Design::Welch;
            total_ratio(&parts, paired, question.alpha, question.seed)
        });
        Some(row)
    }

    /// Adds to a significant row the hosts that carry it, and whether it lasts until the end.
    fn explain(&self, row: &mut Row, sums: &Sums, alpha: f64) {
        let key = Key {
            level: row.level,
            isa: row.isa.clone(),
            reason: row.reason.clone(),
            waiting: row.waiting,
        };
        let stratum = row.stratum.as_ref().and_then(|name| self.strata.binary_search(name).ok());
        let values = self.values(sums, (&key, row.metric), 1, stratum);
        let changed: Vec<(usize, f64)> = values
            .iter()
            .filter(|entry| !entry.1.is_control)
            .filter_map(|(at, value)| Some((*at, value.change()?)))
            .collect();
        let name =
            |at: usize| self.hosts.get(at).map_or_else(String::new, |host| host.name.clone());
        if row.change.is_some_and(|change| change.design != Design::Welch) {
            let changes: Vec<f64> = changed.iter().map(|entry| entry.1).collect();
            let carriers = carriers(&changes);
            let places = carriers.iter().filter_map(|at| Some(changed.get(*at)?.0));
            row.carried_by = places.map(name).collect();
        } else {
            // If no host is on both sides, it is unknown which of them changed.
            let on_b = values.iter().filter(|entry| entry.1.b.is_some());
            row.carried_by = on_b.map(|entry| name(entry.0)).collect();
        }
        let ratio = |(at, value): &(usize, HostValues)| {
            let stratum = self.strata.get(value.stratum).cloned().unwrap_or_default();
            Some(HostRatio { host: name(*at), stratum, a: value.a?, b: value.b? })
        };
        row.host_ratios = values.iter().filter_map(ratio).collect();
        let late: Vec<HostValues> = self
            .values(sums, (&key, row.metric), LATE, stratum)
            .into_iter()
            .map(|entry| entry.1)
            .collect();
        let known = late.iter().filter(|host| host.b.is_some()).count();
        let late = compare(&late, alpha, 0).filter(|_| known * 2 >= row.hosts[1]);
        row.went_away = late.zip(row.log_change()).map(|(late, change)| {
            // At least half of the change remains, in the same direction.
            late.ratio.ln() / change < 0.5
        });
    }

    fn done(self, question: Question, sums: &Sums, rows: Vec<Row>) -> FleetDiff {
        let side = |at: usize| {
            let per_host = self.hosts.iter().filter_map(|host| host.sessions.get(at));
            let sessions: Vec<usize> = per_host.map(Vec::len).filter(|count| *count > 0).collect();
            let covered = sums.iter().filter_map(|host| host.get(at)).map(|side| side.covered_ns);
            SideFacts {
                hosts: sessions.len(),
                sessions: sessions.iter().sum(),
                covered_ns: covered.fold(0, u64::saturating_add),
            }
        };
        let is_paired = |host: &&Host| host.sessions.iter().all(|side| !side.is_empty());
        FleetDiff {
            question,
            sides: [side(0), side(1)],
            paired: self.hosts.iter().filter(is_paired).count(),
            controls: self.hosts.iter().filter(|host| host.is_control).count(),
            left_out: self.left_out,
            rows,
            grid: None,
        }
    }
}

/// Whether a host is a control; `None`: only for a part of its second side.
fn is_control(question: &Question, sessions: &Sessions, all: &[Vec<usize>; 2]) -> Option<bool> {
    let Some(control) = &question.control else { return Some(false) };
    let [_, b] = all;
    let on_b = b.iter().filter_map(|at| sessions.all.get(*at));
    let count = on_b.filter(|session| control.holds(&|name| session.fact(name))).count();
    match count {
        0 => Some(false),
        count if count == b.len() => Some(true),
        _ => None,
    }
}

/// Names the kinds of hosts that carry a change of all hosts, if only some kinds do.
fn name_strata(rows: &mut [Row]) {
    let of_kinds: Vec<Row> = rows.iter().filter(|row| row.stratum.is_some()).cloned().collect();
    for row in rows.iter_mut().filter(|row| row.stratum.is_none() && row.significant) {
        let same = |other: &&Row| other.metric == row.metric && other.is_of(row);
        let kinds: Vec<&Row> =
            of_kinds.iter().filter(same).filter(|kind| kind.change.is_some()).collect();
        let is_alike =
            |kind: &&Row| kind.log_change().zip(row.log_change()).is_some_and(|(a, b)| a * b > 0.0);
        let carrying: Vec<&Row> =
            kinds.iter().copied().filter(|kind| kind.significant).filter(is_alike).collect();
        if !carrying.is_empty() && carrying.len() < kinds.len() {
            row.carried_by = carrying.iter().flat_map(|kind| kind.carried_by.clone()).collect();
            row.carried_by.sort();
        }
    }
}
