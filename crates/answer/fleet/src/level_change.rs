//! A change of a number's level at a step, with the hosts that carry it.

use std::collections::BTreeMap;

use stats::mean;

use crate::carriers::carriers;
use crate::change_points::ChangePoint;
use crate::day_levels::HostStep;
use crate::host_days::HostDays;
use crate::metric::Metric;
use crate::rows::HostRatio;
use crate::series::Series;
use crate::sessions::Sessions;
use crate::shared_facts::{Around, CameWith, SharedFact, came_with, shared};
use crate::sums::Key;

/// A number whose level changed on a day.
#[derive(Clone, Debug)]
pub struct LevelChange {
    /// Only hosts of this kind: the column that defines kinds, and the kind; `None`: all hosts.
    pub stratum: Option<(String, String)>,
    /// Level of the exits; 0: all.
    pub level: i32,
    /// Their architecture; empty: any.
    pub isa: String,
    /// Their reason; empty: all except waiting exits.
    pub reason: String,
    /// Whether they are waiting exits.
    pub waiting: bool,
    /// The number.
    pub metric: Metric,
    /// The first day of the new level.
    pub day: String,
    /// The last day of the level before.
    pub last_before: String,
    /// The typical host's value before, since the previous change.
    pub before: f64,
    /// The typical host's value since, up to the next change.
    pub after: f64,
    /// after divided by before.
    pub ratio: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability of such a change at any place of a series without one.
    pub p: f64,
    /// p after the correction by Benjamini and Hochberg, over all series.
    pub p_adjusted: f64,
    /// Number of steps before, and since.
    pub steps: [usize; 2],
    /// Hosts that have the number before and since.
    pub hosts: usize,
    /// Such hosts among all kinds.
    pub hosts_of_all: usize,
    /// Whether half of the change or more is gone at the end.
    pub went_away: bool,
    /// The reason with the opposite change while the sum stayed the same.
    pub moved: Option<String>,
    /// Hosts that carry the change.
    pub carried_by: Vec<String>,
    /// Facts that the carriers share and other hosts don't.
    pub shared: Vec<SharedFact>,
    /// Facts of the carriers that changed at the same time.
    pub came_with: Vec<CameWith>,
    /// Values of hosts that have the number before and since.
    pub host_ratios: Vec<HostRatio>,
    /// The first step of the level before, that of the new level, and the first after it.
    pub(crate) bounds: Bounds,
}

/// The steps that bound a change.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bounds {
    pub(crate) from: u32,
    pub(crate) at: u32,
    /// The first step after the new level.
    pub(crate) to: u32,
}

impl LevelChange {
    /// A change of a series with only its levels; the other facts follow later.
    pub(crate) fn new(series: &Series, point: ChangePoint, margin: f64) -> Self {
        let change = point.after - point.before;
        let Key { level, isa, reason, waiting } = series.key.clone();
        Self {
            stratum: series.stratum.clone(),
            level,
            isa,
            reason,
            waiting,
            metric: series.metric,
            day: String::new(),
            last_before: String::new(),
            before: point.before.exp(),
            after: point.after.exp(),
            ratio: change.exp(),
            low: (change - margin).exp(),
            high: (change + margin).exp(),
            p: point.p,
            p_adjusted: point.p,
            steps: [0; 2],
            hosts: 0,
            hosts_of_all: 0,
            went_away: false,
            moved: None,
            carried_by: Vec::new(),
            shared: Vec::new(),
            came_with: Vec::new(),
            host_ratios: Vec::new(),
            bounds: Bounds::default(),
        }
    }

    /// Whether both concern the same exits.
    #[must_use]
    pub fn is_of(&self, other: &Self) -> bool {
        (self.level, &self.isa, &self.reason, self.waiting)
            == (other.level, &other.isa, &other.reason, other.waiting)
    }

    /// Whether it concerns all exits together.
    #[must_use]
    pub fn is_of_all(&self) -> bool {
        self.level == 0 && self.reason.is_empty()
    }

    /// The reason in words.
    #[must_use]
    pub fn reason_shown(&self) -> &str {
        if self.is_of_all() { "all" } else { &self.reason }
    }

    /// Whether it is a finding: it lasts until the end, and no other reason offsets it.
    #[must_use]
    pub fn is_finding(&self) -> bool {
        !self.went_away && self.moved.is_none()
    }

    /// Whether both changes have the same direction, and the same time within the precision of noise.
    pub(crate) fn is_with(&self, other: &Self) -> bool {
        self.is_about_when(other) && (self.ratio > 1.0) == (other.ratio > 1.0)
    }

    /// Whether both are at the same step or at adjacent steps.
    pub(crate) fn is_about_when(&self, other: &Self) -> bool {
        self.bounds.at.abs_diff(other.bounds.at) <= 1
    }
}

/// Facts about hosts, from which carriers of changes are found.
#[derive(Debug)]
pub(crate) struct Carriers<'s> {
    days: &'s HostDays<'s>,
    traits: Vec<&'s str>,
}

impl<'s> Carriers<'s> {
    pub(crate) fn new(days: &'s HostDays<'s>, sessions: &'s Sessions) -> Self {
        Self { days, traits: sessions.traits().collect() }
    }

    /// Fills in the day of a change, its hosts, and its carriers; `parts` are the positions in the series where the
    /// level before, the new level and the next one begin.
    pub(crate) fn place(&self, change: &mut LevelChange, series: &Series, parts: [usize; 3]) {
        let steps = &series.levels.steps;
        let [from, at, to] = parts.map(|at| steps.get(at).copied());
        let (Some(from), Some(at)) = (from, at) else { return };
        let bounds = Bounds { from, at, to: to.unwrap_or(self.days.steps) };
        change.day = self.days.date(at);
        let before = steps.iter().take_while(|step| **step < at);
        change.last_before =
            before.clone().last().map_or_else(String::new, |step| self.days.last_date(*step));
        let after = steps.iter().filter(|step| (at..bounds.to).contains(*step));
        change.steps = [before.filter(|step| **step >= from).count(), after.count()];
        change.bounds = bounds;
        let hosts = host_changes(&series.levels.values, bounds);
        let logs: Vec<f64> = hosts.iter().map(|host| host.1[1] - host.1[0]).collect();
        let places = carriers(&logs);
        let carrying = places.iter().filter_map(|at| hosts.get(*at));
        change.carried_by = carrying.map(|host| self.name(host.0)).collect();
        change.hosts = hosts.len();
        change.hosts_of_all = hosts.len();
        let column = change.stratum.as_ref().map(|stratum| stratum.0.as_str());
        let ratio = |(host, [a, b]): &(u32, [f64; 2])| HostRatio {
            host: self.name(*host),
            stratum: self.kind(*host, column.unwrap_or("cpu_model"), bounds).unwrap_or_default(),
            a: a.exp(),
            b: b.exp(),
        };
        change.host_ratios = hosts.iter().map(ratio).collect();
    }

    fn name(&self, host: u32) -> String {
        self.days.hosts.get(host as usize).map_or_else(String::new, |host| host.name.clone())
    }

    fn kind(&self, host: u32, column: &str, bounds: Bounds) -> Option<String> {
        self.around(host, bounds).since?.text(column)
    }

    /// The last sessions of a host before a change, and before the next one.
    fn around(&self, host: u32, bounds: Bounds) -> Around<'s> {
        let host = self.days.hosts.get(host as usize);
        let last = |from: u32, to: u32| {
            let sessions = host.into_iter().flat_map(|host| &host.sessions);
            sessions.filter(|entry| (from..to).contains(&entry.0)).map(|entry| entry.1).next_back()
        };
        Around { before: last(bounds.from, bounds.at), since: last(bounds.at, bounds.to) }
    }

    /// Adds to each change the facts that its carriers share.
    pub(crate) fn say_what_they_share(&self, changes: &mut [LevelChange]) {
        let by_name: BTreeMap<&str, u32> =
            self.days.hosts.iter().zip(0..).map(|(host, at)| (host.name.as_str(), at)).collect();
        for change in changes {
            let is_carrying = |name: &str| change.carried_by.iter().any(|carrier| carrier == name);
            let (carrying, others): (Vec<_>, Vec<_>) =
                by_name.iter().partition(|(name, _)| is_carrying(name));
            let sides = |hosts: Vec<(&&str, &u32)>| -> Vec<Around<'_>> {
                hosts.into_iter().map(|(_, at)| self.around(*at, change.bounds)).collect()
            };
            let (carrying, others) = (sides(carrying), sides(others));
            let traits = self.traits.iter().copied();
            change.shared =
                traits.clone().filter_map(|name| shared(name, &carrying, &others)).collect();
            change.came_with =
                traits.filter_map(|name| came_with(name, &carrying, &others)).collect();
        }
    }
}

/// Values before and since, for hosts that have both.
pub(crate) fn host_changes(values: &[HostStep], bounds: Bounds) -> Vec<(u32, [f64; 2])> {
    let mut sides: BTreeMap<u32, [Vec<f64>; 2]> = BTreeMap::new();
    for value in values.iter().filter(|value| (bounds.from..bounds.to).contains(&value.step)) {
        let [before, since] = sides.entry(value.host).or_default();
        if value.step < bounds.at { before } else { since }.push(value.log);
    }
    let both = |(host, [a, b]): (u32, [Vec<f64>; 2])| Some((host, [mean(&a)?, mean(&b)?]));
    sides.into_iter().filter_map(both).collect()
}
