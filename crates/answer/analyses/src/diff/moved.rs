//! Functions whose callers differ between the sides: work that moved as a whole, for example network processing
//! from the VMM to vhost.

use std::collections::BTreeMap;

use super::question::{CallTime, Run};

/// Min samples of a function per side: fewer do not show its callers reliably.
const MIN_SAMPLES: u64 = 40;
/// Max share of a moved function's time with the same callers on both sides.
const MAX_SHARED: f64 = 0.25;
/// Min share of a function's time with the same callers in alternating blocks of one side. Work in interrupts has
/// arbitrary callers, so it seems to move all the time.
const MIN_STEADY: f64 = 0.6;
/// Max listed functions: those with the longest times.
const MOST: usize = 10;

#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    pub function: String,
    /// The most frequent caller on the first side.
    pub from: MovedFrom,
    /// The most frequent caller on the second side.
    pub to: MovedFrom,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MovedFrom {
    /// The caller; empty at the root of stacks.
    pub below: String,
    /// Role of most of its threads, or state of most of its vCPUs.
    pub part: String,
    /// Time per second in the function, for all callers.
    pub ns_per_s: f64,
}

/// Callers of a function on one side.
#[derive(Debug, Default)]
struct Callers<'r> {
    samples: u64,
    time_ns: u64,
    halves_ns: [u64; 2],
    /// By caller: the time, and the part with most of it.
    by_caller: BTreeMap<&'r str, ByCaller<'r>>,
}

#[derive(Debug, Default)]
struct ByCaller<'r> {
    time_ns: u64,
    halves_ns: [u64; 2],
    part: &'r str,
    of_part_ns: u64,
}

impl Callers<'_> {
    fn share(&self, caller: &str) -> f64 {
        let time_ns = self.by_caller.get(caller).map_or(0, |by| by.time_ns);
        time_ns as f64 / (self.time_ns as f64).max(1.0)
    }

    /// Share of its time with the same callers in both halves.
    fn steady(&self) -> f64 {
        let share = |by: &ByCaller<'_>, half: usize| {
            let half_of = |all: &[u64; 2]| all.get(half).copied().unwrap_or(0) as f64;
            half_of(&by.halves_ns) / half_of(&self.halves_ns).max(1.0)
        };
        self.by_caller.values().map(|by| share(by, 0).min(share(by, 1))).sum()
    }

    fn most(&self, seconds: f64) -> Option<MovedFrom> {
        let (below, by) = self.by_caller.iter().max_by_key(|(_, by)| by.time_ns)?;
        let ns_per_s = self.time_ns as f64 / seconds;
        Some(MovedFrom { below: (*below).to_owned(), part: by.part.to_owned(), ns_per_s })
    }
}

/// Functions that moved from side `a` to side `b`, the longest times first.
pub(super) fn moved(a: &[Run], b: &[Run]) -> Vec<Moved> {
    let (seconds_a, seconds_b) = (seconds(a), seconds(b));
    if seconds_a <= 0.0 || seconds_b <= 0.0 {
        return Vec::new();
    }
    let (of_a, of_b) = (callers(a), callers(b));
    let mut moved: Vec<Moved> = of_a
        .iter()
        .filter_map(|(function, callers)| {
            let other = of_b.get(function)?;
            if callers.samples.min(other.samples) < MIN_SAMPLES {
                return None;
            }
            let shared: f64 = callers
                .by_caller
                .keys()
                .map(|caller| callers.share(caller).min(other.share(caller)))
                .sum();
            if callers.steady().min(other.steady()) < MIN_STEADY {
                return None;
            }
            let (from, to) = (callers.most(seconds_a)?, other.most(seconds_b)?);
            let is_moved = shared <= MAX_SHARED && from.below != to.below;
            is_moved.then(|| Moved { function: (*function).to_owned(), from, to })
        })
        .collect();
    let time = |entry: &Moved| entry.from.ns_per_s + entry.to.ns_per_s;
    moved.sort_by(|entry, other| time(other).total_cmp(&time(entry)));
    moved.truncate(MOST);
    moved
}

fn seconds(runs: &[Run]) -> f64 {
    let span = |run: &Run| run.span_ns.1.saturating_sub(run.span_ns.0);
    runs.iter().map(span).fold(0, u64::saturating_add) as f64 / 1e9
}

fn add(sums: &mut [u64; 2], more: [u64; 2]) {
    sums.iter_mut().zip(more).for_each(|(sum, addend)| *sum = sum.saturating_add(addend));
}

fn callers(runs: &[Run]) -> BTreeMap<&str, Callers<'_>> {
    let mut callers: BTreeMap<&str, Callers<'_>> = BTreeMap::new();
    for CallTime { function, below, part, time_ns, samples } in
        runs.iter().flat_map(|run| &run.calls)
    {
        let function_callers = callers.entry(function).or_default();
        function_callers.samples = function_callers.samples.saturating_add(*samples);
        let halves_ns = *time_ns;
        let time_ns = &halves_ns.iter().fold(0, |sum: u64, &half| sum.saturating_add(half));
        function_callers.time_ns = function_callers.time_ns.saturating_add(*time_ns);
        add(&mut function_callers.halves_ns, halves_ns);
        let by = function_callers.by_caller.entry(below).or_default();
        add(&mut by.halves_ns, halves_ns);
        by.time_ns = by.time_ns.saturating_add(*time_ns);
        if by.of_part_ns <= *time_ns {
            (by.part, by.of_part_ns) = (part, *time_ns);
        }
    }
    callers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of one second; calls by function, caller, part and number of samples of a millisecond.
    fn run(calls: &[(&str, &str, &str, u64)]) -> Run {
        let call = |&(function, below, part, samples): &(&str, &str, &str, u64)| CallTime {
            function: function.to_owned(),
            below: below.to_owned(),
            part: part.to_owned(),
            time_ns: [samples * 500_000; 2],
            samples,
        };
        let calls = calls.iter().map(call).collect();
        Run { calls, span_ns: (0, 1_000_000_000), ..Run::empty() }
    }

    #[test]
    fn only_the_root_of_what_moved_is_named() {
        let a = [("tun", "writev", "vmm", 100), ("filter", "tun", "vmm", 60)];
        let b = [("tun", "send", "vhost", 80), ("filter", "tun", "vhost", 40)];
        let found = moved(&[run(&a)], &[run(&b)]);
        let [tun] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&*tun.function, &*tun.from.below, &*tun.to.below), ("tun", "writev", "send"));
        assert_eq!((&*tun.from.part, &*tun.to.part), ("vmm", "vhost"));
        assert!((tun.to.ns_per_s - 80e6).abs() < 1.0);
    }

    #[test]
    fn few_samples_and_mostly_the_same_callers_say_nothing() {
        let a = [("few", "one", "vmm", 39), ("same", "one", "vmm", 60), ("same", "two", "vmm", 40)];
        let b = [("few", "two", "vmm", 99), ("same", "one", "vmm", 40), ("same", "two", "vmm", 60)];
        assert_eq!(moved(&[run(&a)], &[run(&b)]), []);
    }

    #[test]
    fn what_is_called_by_others_all_the_time_has_not_moved() {
        let mut a = run(&[("irq", "one", "vmm", 90), ("irq", "two", "vmm", 80)]);
        (a.calls[0].time_ns, a.calls[1].time_ns) = ([90, 0], [0, 80]);
        let b = run(&[("irq", "three", "vmm", 90)]);
        assert_eq!(moved(&[a], &[b]), []);
    }
}
