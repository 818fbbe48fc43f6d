//! Counts events while a workload runs, as metrics whose names are known only afterwards.

use std::collections::BTreeMap;
use std::io;

use analyses::ab::{AbRun, AbSide};

/// Max names per kind, those with the highest counts; others are omitted.
const MAX_NAMES: usize = 12;

/// Identifies a run of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOf {
    /// Its configuration.
    pub side: AbSide,
    /// Its block, from 1; 0 during the warm-up.
    pub block: usize,
}

/// Counts events while a workload runs.
pub trait Watch {
    /// Called before a run of a workload.
    ///
    /// # Errors
    /// When counting fails.
    fn begin(&mut self, run: RunOf) -> io::Result<()>;

    /// Called after the run.
    ///
    /// # Errors
    /// When the counts can't be read.
    fn end(&mut self) -> io::Result<Vec<Count>>;
}

/// Counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn begin(&mut self, _: RunOf) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self) -> io::Result<Vec<Count>> {
        Ok(Vec::new())
    }
}

/// A count of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// The metric's name.
    pub name: String,
    /// The kind, of which only the names with the highest counts are shown; `None`: always shown.
    pub kind: Option<&'static str>,
    /// The count; 0 in runs without it.
    pub value: f64,
}

/// A run with its counts.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    pub(crate) run: AbRun,
    pub(crate) counts: Vec<Count>,
}

/// Names of all metrics, and each run with a value for each.
pub(crate) fn all_metrics(metric_names: &[String], runs: &[Watched]) -> (Vec<String>, Vec<AbRun>) {
    let names = shown(runs);
    let values = |watched: &Watched| {
        let count_of = |name: &String| {
            // Several VMs may have a count of the same name.
            let counts = watched.counts.iter().filter(|count| count.name == *name);
            counts.map(|count| count.value).sum::<f64>()
        };
        let mut run = watched.run.clone();
        run.values.extend(names.iter().map(count_of));
        run
    };
    let runs = runs.iter().map(values).collect();
    (metric_names.iter().chain(&names).cloned().collect(), runs)
}

/// The shown names, in order.
fn shown(runs: &[Watched]) -> Vec<String> {
    let mut always: Vec<String> = Vec::new();
    let mut sums: BTreeMap<&'static str, BTreeMap<&str, f64>> = BTreeMap::new();
    for count in runs.iter().flat_map(|watched| &watched.counts) {
        match count.kind {
            Some(kind) => {
                *sums.entry(kind).or_default().entry(&count.name).or_default() += count.value;
            }
            None if !always.contains(&count.name) => always.push(count.name.clone()),
            None => {}
        }
    }
    for names in sums.into_values() {
        let mut names: Vec<(&str, f64)> = names.into_iter().collect();
        names.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
        always.extend(names.into_iter().take(MAX_NAMES).map(|(name, _)| name.to_owned()));
    }
    always
}

#[cfg(test)]
mod tests {
    use super::*;
    use analyses::ab::AbSide;

    fn run(counts: &[(&str, Option<&'static str>, f64)]) -> Watched {
        let count = |&(name, kind, value): &(&str, Option<&'static str>, f64)| Count {
            name: name.to_owned(),
            kind,
            value,
        };
        Watched {
            run: AbRun { side: AbSide::A, block: 1, values: vec![1.0] },
            counts: counts.iter().map(count).collect(),
        }
    }

    #[test]
    fn what_a_run_lacks_is_zero_there_and_those_with_most_come_first() {
        let runs = [
            run(&[("exits", None, 9.0), ("exits_io", Some("exits"), 2.0)]),
            run(&[
                ("exits", None, 8.0),
                ("exits_msr", Some("exits"), 3.0),
                ("exits_io", Some("exits"), 0.25),
                ("exits_io", Some("exits"), 0.25),
            ]),
        ];
        let (names, runs) = all_metrics(&["wall_ns".to_owned()], &runs);
        assert_eq!(names, ["wall_ns", "exits", "exits_msr", "exits_io"]);
        assert_eq!(runs[0].values, [1.0, 9.0, 0.0, 2.0]);
        assert_eq!(runs[1].values, [1.0, 8.0, 3.0, 0.5]);
    }

    #[test]
    fn of_many_those_with_most_are_kept() {
        let names: Vec<String> = (0..40).map(|at| format!("exits_{at:02}")).collect();
        let counts: Vec<_> = names
            .iter()
            .zip(1..)
            .map(|(name, at)| (&**name, Some("exits"), f64::from(at)))
            .collect();
        let (names, _) = all_metrics(&[], &[run(&counts)]);
        assert_eq!(names.len(), MAX_NAMES);
        assert_eq!(names[0], "exits_39");
    }
}
