//! Compares figures before a trigger with those at the trigger: what has changed most.

use std::collections::{BTreeMap, VecDeque};

use crate::condition::run_queue;
use crate::interval::Interval;
use crate::sums::Sums;

/// Max intervals to keep: some hundred bytes for each reason of a VM.
const MAX_INTERVALS: usize = 120;

/// A VM, the level of its exits, and their reason.
pub type ReasonOf = (String, u8, String);

/// The latest intervals.
#[derive(Debug, Default)]
pub struct History(VecDeque<Interval>);

/// A reason's exits in a time.
#[derive(Clone, Debug, PartialEq)]
pub struct ExitFigures {
    /// Exits per second.
    pub per_s: f64,
    /// CPU time for handling them, per second.
    pub cost_ns_per_s: f64,
    /// The median of times from exit to entry.
    pub p50_ns: Option<u64>,
    /// The 99th percentile of times from exit to entry.
    pub p99_ns: Option<u64>,
}

/// A figure before and at the trigger; `None`: it did not occur.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<T> {
    pub before: Option<T>,
    pub at: Option<T>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Length of the interval before the trigger.
    pub before_ns: u64,
    /// Length of the interval at the trigger.
    pub at_ns: u64,
    /// Run-queue wait of a VM's vCPUs as a share of their time, by VM.
    pub run_queue: BTreeMap<String, Change<f64>>,
    /// Non-waiting exits, by VM, level and reason.
    pub exits: BTreeMap<ReasonOf, Change<ExitFigures>>,
}

impl History {
    /// Adds an interval, and drops the oldest.
    pub fn remember(&mut self, interval: Interval) {
        self.0.push_back(interval);
        while self.0.len() > MAX_INTERVALS {
            self.0.pop_front();
        }
    }

    /// Compares the latest `at` intervals with all others; `None` if there are no others.
    #[must_use]
    pub fn changes(&self, at: usize) -> Option<Changes> {
        let split = self.0.len().checked_sub(at.max(1)).filter(|split| *split > 0)?;
        let (before, at) = (
            Totals::from_intervals(self.0.iter().take(split)),
            Totals::from_intervals(self.0.iter().skip(split)),
        );
        let mut changes =
            Changes { before_ns: before.took_ns, at_ns: at.took_ns, ..Changes::default() };
        let keys = before.exits.keys().chain(at.exits.keys());
        for key in keys.collect::<std::collections::BTreeSet<_>>() {
            let change = Change { before: before.figures(key), at: at.figures(key) };
            changes.exits.insert(key.clone(), change);
        }
        let vms = before.run_queue.keys().chain(at.run_queue.keys());
        for vm in vms.collect::<std::collections::BTreeSet<_>>() {
            let share = |totals: &Totals| {
                let (sum, count) = totals.run_queue.get(vm)?;
                Some(sum / f64::from(*count))
            };
            changes.run_queue.insert(vm.clone(), Change { before: share(&before), at: share(&at) });
        }
        Some(changes)
    }
}

/// Sums over some intervals.
#[derive(Debug, Default)]
struct Totals {
    took_ns: u64,
    exits: BTreeMap<ReasonOf, Sums>,
    /// Sums of shares, and the number of intervals.
    run_queue: BTreeMap<String, (f64, u32)>,
}

impl Totals {
    fn from_intervals<'i>(intervals: impl Iterator<Item = &'i Interval>) -> Self {
        let mut totals = Self::default();
        for interval in intervals {
            totals.took_ns += interval.interval_ns();
            for row in interval.rows.iter().filter(|row| !row.waiting) {
                let Some(vm) = &row.vm else { continue };
                let key = (vm.clone(), row.level, row.reason.clone());
                totals.exits.entry(key).or_default().add(&row.sums);
            }
            for (vm, share) in run_queue(interval) {
                let (sum, count) = totals.run_queue.entry(vm).or_default();
                *sum += share;
                *count += 1;
            }
        }
        totals
    }

    fn figures(&self, key: &ReasonOf) -> Option<ExitFigures> {
        let sums = self.exits.get(key)?;
        let seconds = self.took_ns as f64 / 1e9;
        Some(ExitFigures {
            per_s: sums.count as f64 / seconds,
            cost_ns_per_s: sums.cost_ns() as f64 / seconds,
            p50_ns: sums.times.quantile_ns(0.5),
            p99_ns: sums.times.quantile_ns(0.99),
        })
    }
}

impl Changes {
    /// The exits whose cost has grown most, of one VM or of all.
    #[must_use]
    pub fn most_grown(&self, vm: Option<&str>) -> Option<(&ReasonOf, &Change<ExitFigures>)> {
        let is_its = |name: &str| vm.is_none_or(|vm| vm == name);
        let grown = |change: &Change<ExitFigures>| {
            let cost = |figures: &Option<ExitFigures>| {
                figures.as_ref().map_or(0.0, |figures| figures.cost_ns_per_s)
            };
            cost(&change.at) - cost(&change.before)
        };
        let candidates =
            self.exits.iter().filter(|((name, ..), change)| is_its(name) && grown(change) > 0.0);
        candidates.max_by(|(_, a), (_, b)| grown(a).total_cmp(&grown(b)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use timeline::VcpuActivity;
    use timeline::arch::Isa;

    use super::*;
    use crate::histogram::{BUCKETS, Histogram};
    use crate::interval::{Row, Vcpu};
    use crate::states::{ACTIVITIES, States};

    /// Exits of a VM, each with this time in the kernel.
    pub(crate) fn exits_of(vm: &str, reason: &str, count: u64, each_ns: u64) -> Row {
        let mut counts = [0; BUCKETS];
        let at = (0..BUCKETS).find(|&at| each_ns as f64 / 1e9 <= Histogram::end_s(at)).unwrap();
        counts[at] = count;
        let mut sums = Sums { count, paired: count, time_ns: count * each_ns, ..Sums::default() };
        sums.parts.kernel_ns = sums.time_ns;
        sums.times = Histogram::new(counts, count);
        Row {
            vm: Some(vm.to_owned()),
            vcpu: None,
            level: 1,
            isa: Isa::Svm,
            code: None,
            reason: reason.to_owned(),
            waiting: false,
            sums,
        }
    }

    /// A vCPU with these run and wait times.
    pub(crate) fn vcpu_of(vm: &str, ran: u64, waited: u64) -> Vcpu {
        let mut times = [0; ACTIVITIES.len()];
        times[VcpuActivity::Guest as usize] = ran;
        times[VcpuActivity::Waiting as usize] = waited;
        Vcpu {
            vm: vm.to_owned(),
            process: 1,
            vcpu: Some(0),
            thread: 2,
            states: States::new(times),
            ..Vcpu::default()
        }
    }

    fn second(at: u64, rows: Vec<Row>, vcpus: Vec<Vcpu>) -> Interval {
        let (begin_ns, end_ns) = (at * 1_000_000_000, (at + 1) * 1_000_000_000);
        Interval { begin_ns, end_ns, rows, vcpus, ..Interval::default() }
    }

    #[test]
    fn what_grew_most_is_found_against_the_time_before() {
        let mut history = History::default();
        assert!(history.changes(1).is_none());
        for at in 0..4 {
            let rows = vec![exits_of("web", "msr", 1000, 2_000), exits_of("web", "npf", 10, 3_000)];
            history.remember(second(at, rows, vec![vcpu_of("web", 990, 10)]));
        }
        let rows = vec![exits_of("web", "msr", 1100, 2_000), exits_of("web", "npf", 10, 900_000)];
        history.remember(second(4, rows, vec![vcpu_of("web", 700, 300)]));
        let changes = history.changes(1).unwrap();
        assert_eq!((changes.before_ns, changes.at_ns), (4_000_000_000, 1_000_000_000));
        let (key, change) = changes.most_grown(None).unwrap();
        assert_eq!((&*key.0, key.1, &*key.2), ("web", 1, "npf"));
        let [before, at] = [&change.before, &change.at].map(|figures| figures.clone().unwrap());
        assert_eq!((before.per_s, before.cost_ns_per_s), (10.0, 30_000.0));
        assert_eq!((at.per_s, at.cost_ns_per_s), (10.0, 9_000_000.0));
        assert!(before.p99_ns < Some(4_000) && at.p99_ns > Some(700_000));
        let run_queue = &changes.run_queue["web"];
        assert!(
            (run_queue.before.unwrap() - 0.01).abs() < 1e-9
                && (run_queue.at.unwrap() - 0.3).abs() < 1e-9
        );
        assert!(changes.most_grown(Some("db")).is_none());
    }

    #[test]
    fn what_is_new_has_nothing_before() {
        let mut history = History::default();
        history.remember(second(0, Vec::new(), Vec::new()));
        history.remember(second(1, vec![exits_of("web", "io", 5, 1_000)], Vec::new()));
        let changes = history.changes(1).unwrap();
        assert!(changes.most_grown(Some("web")).unwrap().1.before.is_none());
    }

    #[test]
    fn old_intervals_are_forgotten() {
        let mut history = History::default();
        (0..500).for_each(|at| history.remember(second(at, Vec::new(), Vec::new())));
        assert_eq!(
            history.changes(1).unwrap().before_ns,
            (MAX_INTERVALS as u64 - 1) * 1_000_000_000
        );
    }
}
