//! Each host's numbers in a comparison, and its sessions.

use std::collections::BTreeSet;

use super::{Fleet, Host, Question};
use crate::metric::Metric;
use crate::sums::{Key, Sums};

/// Hosts and their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    /// In the order of their names.
    pub(crate) hosts: Vec<GridHost>,
    /// Numbers that enough hosts have.
    pub(crate) columns: Vec<GridColumn>,
}

#[derive(Clone, Debug)]
pub(crate) struct GridHost {
    pub(crate) name: String,
    /// Its kind; empty: unknown.
    pub(crate) kind: String,
    pub(crate) is_control: bool,
    /// By side, the newest first.
    pub(crate) sessions: [Vec<HostSession>; 2],
}

#[derive(Clone, Debug)]
pub(crate) struct HostSession {
    pub(crate) session: String,
    pub(crate) date: Option<String>,
    pub(crate) kernel: Option<String>,
    /// The path of its recording.
    pub(crate) source: Option<String>,
}

/// A number of one kind of exits.
#[derive(Clone, Debug)]
pub(crate) struct GridColumn {
    pub(crate) key: Key,
    pub(crate) metric: Metric,
    /// Each host's value on A and on B.
    pub(crate) values: Vec<[Option<f64>; 2]>,
}

/// Min hosts of a column.
const MIN_HOSTS: usize = 3;

impl Fleet<'_> {
    /// Numbers that at least three hosts have, for all hosts.
    pub(super) fn grid(&self, question: &Question, sums: &Sums) -> Grid {
        let groups = sums.iter().flatten().flat_map(|side| side.groups.keys());
        let keys: BTreeSet<&Key> = groups.collect();
        let numbers =
            keys.into_iter().flat_map(|key| question.metrics.iter().map(move |m| (key, *m)));
        let column = |(key, metric): (&Key, Metric)| {
            let of_hosts = self.values(sums, (key, metric), 1, None);
            let values: Vec<_> = of_hosts.iter().map(|(_, value)| [value.a, value.b]).collect();
            let has_any = |sides: &&[Option<f64>; 2]| sides.iter().any(Option::is_some);
            let is_enough = values.iter().filter(has_any).count() >= MIN_HOSTS;
            is_enough.then(|| GridColumn { key: key.clone(), metric, values })
        };
        Grid {
            hosts: self.hosts.iter().map(|host| self.grid_host(host)).collect(),
            columns: numbers.filter_map(column).collect(),
        }
    }

    fn grid_host(&self, host: &Host) -> GridHost {
        let session = |at: &usize| {
            let session = self.session(*at)?;
            Some(HostSession {
                session: session.session.clone(),
                date: session.text("date"),
                kernel: session.text("kernel_release"),
                source: session.text("source_uri"),
            })
        };
        let of_side = |side: &Vec<usize>| {
            let mut all: Vec<HostSession> = side.iter().filter_map(session).collect();
            all.sort_by(|session, other| {
                other.date.cmp(&session.date).then(session.session.cmp(&other.session))
            });
            all
        };
        GridHost {
            name: host.name.clone(),
            kind: self.strata.get(host.stratum).cloned().unwrap_or_default(),
            is_control: host.is_control,
            sessions: host.sessions.each_ref().map(of_side),
        }
    }
}
