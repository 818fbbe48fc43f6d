//! Each host's numbers by step (a day, or several). They are read from a lake one step after the other, so that memory
//! grows with the numbers only, not with their histograms.

use std::collections::BTreeMap;
use std::io;

use crate::lake::store::{Storage, TableFiles, date_in};
use printable::calendar::{begin_of, date_of};

use crate::day_levels::HostStep;
use crate::metric::Metric;
use crate::selection::Selection;
use crate::sessions::{Session, Sessions};
use crate::sums::{Key, Place, Places, SessionChoice, read};

/// Nanoseconds of a day.
const DAY_NS: i64 = 86_400_000_000_000;

/// Selects sessions, and assigns them to steps.
#[derive(Clone, Debug)]
pub(crate) struct Choice<'q> {
    /// Only sessions for which this holds.
    pub(crate) selection: Option<&'q Selection>,
    /// Sessions that lost a greater share of their events are left out.
    pub(crate) most_lost: f64,
    pub(crate) step_days: u32,
}

/// A host and its sessions.
#[derive(Debug)]
pub(crate) struct Host<'s> {
    pub(crate) name: String,
    /// Its sessions with their steps, in order of time.
    pub(crate) sessions: Vec<(u32, &'s Session)>,
}

/// Hosts over time.
#[derive(Debug)]
pub(crate) struct HostDays<'s> {
    /// In the order of their names.
    pub(crate) hosts: Vec<Host<'s>>,
    /// Number of steps, including those without a session.
    pub(crate) steps: u32,
    /// The first day of the first step, in days since the Unix epoch.
    first_day: i64,
    step_days: u32,
    /// Sessions that were left out: too many losses, unknown host, unknown day, or days before the first complete step.
    pub(crate) left_out: [usize; 4],
}

impl<'s> HostDays<'s> {
    /// Sorts sessions by host and step. The last step ends with the last day; an incomplete first step is left out.
    pub(crate) fn new(sessions: &'s Sessions, choice: &Choice<'_>) -> Self {
        let (known, left_out) = known(sessions, choice);
        let days = || known.iter().map(|entry| entry.1);
        let (first, last) = (days().min().unwrap_or(0), days().max().unwrap_or(-1));
        let step = i64::from(choice.step_days.max(1));
        let steps = (last + 1 - first) / step;
        let mut all = Self {
            hosts: Vec::new(),
            steps: u32::try_from(steps).unwrap_or(u32::MAX),
            first_day: last + 1 - steps * step,
            step_days: choice.step_days.max(1),
            left_out,
        };
        let mut hosts: BTreeMap<String, Vec<(u32, &Session)>> = BTreeMap::new();
        for (host, day, session) in known {
            match u32::try_from((day - all.first_day).div_euclid(step)) {
                Ok(step) => hosts.entry(host).or_default().push((step, session)),
                Err(_) => all.left_out[3] += 1,
            }
        }
        let host = |(name, mut sessions): (String, Vec<(u32, &'s Session)>)| {
            sessions.sort_by_key(|(step, session)| (*step, session.span_ns, &session.session));
            Host { name, sessions }
        };
        all.hosts = hosts.into_iter().map(host).collect();
        all
    }

    /// The first day of a step.
    pub(crate) fn date(&self, step: u32) -> String {
        let day = self.first_day + i64::from(step) * i64::from(self.step_days);
        date_of(day.saturating_mul(DAY_NS))
    }

    /// The last day of a step.
    pub(crate) fn last_date(&self, step: u32) -> String {
        let day = self.first_day + (i64::from(step) + 1) * i64::from(self.step_days) - 1;
        date_of(day.saturating_mul(DAY_NS))
    }

    /// Number of sessions that are used.
    pub(crate) fn sessions(&self) -> usize {
        self.hosts.iter().map(|host| host.sessions.len()).sum()
    }

    /// Hosts' values of each number, by step.
    pub(crate) fn values<S: Storage>(
        &self,
        storage: &S,
        tables: &[TableFiles],
        metrics: &[Metric],
    ) -> io::Result<BTreeMap<(Key, Metric), Vec<HostStep>>> {
        let mut values: BTreeMap<(Key, Metric), Vec<HostStep>> = BTreeMap::new();
        let mut by_step = self.places();
        while let Some((step, places)) = by_step.pop_first() {
            let (from, to) = (self.date(step), self.last_date(step));
            // Dates of lakes sort as texts.
            let is_wanted = |name: &str| {
                date_in(name).is_some_and(|date| date >= from.as_str() && date <= to.as_str())
            };
            let hists = metrics.contains(&Metric::P99);
            let wanted = SessionChoice { places, hosts: self.hosts.len(), hists };
            let sums = read(storage, tables, &wanted, &is_wanted)?;
            for (host, [side, ..]) in (0u32..).zip(&sums) {
                for (key, group) in &side.groups {
                    for &metric in metrics {
                        let value =
                            metric.value(group, side.covered_ns).filter(|value| *value > 0.0);
                        let Some(value) = value else { continue };
                        let all = values.entry((key.clone(), metric)).or_default();
                        all.push(HostStep { host, step, log: value.ln() });
                    }
                }
            }
        }
        Ok(values)
    }

    /// Targets for the rows of sessions, by step.
    fn places(&self) -> BTreeMap<u32, Places> {
        let mut by_step: BTreeMap<u32, Places> = BTreeMap::new();
        for (host, entry) in self.hosts.iter().enumerate() {
            for (step, session) in &entry.sessions {
                let places = by_step.entry(*step).or_default();
                let of_session = places.entry(session.session.clone()).or_default();
                let place = Place { host, side: 0, late_ns: i64::MAX };
                of_session.insert(session.ingest.clone(), place);
            }
        }
        by_step
    }
}

/// Sessions that are used, with host and day, and the number of others.
fn known<'s>(
    sessions: &'s Sessions,
    choice: &Choice<'_>,
) -> (Vec<(String, i64, &'s Session)>, [usize; 4]) {
    let (mut known, mut left_out) = (Vec::new(), [0; 4]);
    let [lost, no_host, no_day, _] = &mut left_out;
    for session in &sessions.all {
        if choice.selection.is_some_and(|selection| !selection.holds(&|name| session.fact(name))) {
            continue;
        }
        if session.lost() > choice.most_lost {
            *lost += 1;
            continue;
        }
        let Some(host) = session.text("host_id") else {
            *no_host += 1;
            continue;
        };
        // As in the lake: a session's day is that of its start.
        let day = session.text("date").and_then(|date| begin_of(&date));
        match day {
            Some(begin_ns) => known.push((host, begin_ns.div_euclid(DAY_NS), session)),
            None => *no_day += 1,
        }
    }
    (known, left_out)
}
