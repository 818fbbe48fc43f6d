//! Compares profiles: time per second in each function, self and total; and callers of functions.

use std::collections::{BTreeMap, BTreeSet};

use sources::TimeRange;

use super::exits::metric;
use super::question::{
    CallTime, Estimator, KeyValue, Lost, MeasuredGroup, Metric, Question, Run, RunInput, RunVm,
    Unit,
};
use super::series::{Series, Sums};
use super::stacks::Stacks;
use crate::profile::{CodeFrame, TimedSample, each_sample};
use crate::states::States;

/// Indexes of sums: samples in the function itself, and the time that they represent.
const COUNT: usize = 0;
const SELF: usize = 1;
/// Samples and time including callees.
const STACK_COUNT: usize = 2;
const TOTAL: usize = 3;

/// Min samples of a function over both sides.
const MIN_SAMPLES: u64 = 20;
/// Block length as a power of two in nanoseconds: about a quarter of a second.
const BLOCK_SHIFT: u32 = 28;
/// Max functions: those with the longest times; all others are merged.
const MAX_FUNCTIONS: usize = 2000;
/// Name of all functions beyond [`MAX_FUNCTIONS`].
const OTHERS: &str = "[other functions]";
/// Bits of an address that identify code within its page. Programs are loaded at page boundaries, so these bits
/// are equal in each run. Functions are aligned to 16 bytes.
const PLACE_IN_PAGE: u64 = 0xff0;
/// Max calls of all functions.
const MAX_CALLS: usize = 1 << 18;

/// The question of `hyperscope diff profile`.
pub(super) const QUESTION: Question = Question {
    name: "profile",
    columns: &["vm", "state", "function"],
    metrics: &METRICS,
    weight: SELF,
    count: COUNT,
    aligned: true,
    sampled: true,
    measure,
    settle,
};

const METRICS: [Metric; 2] = [
    sampled("self_ns_per_s", "self", SELF, COUNT),
    sampled("total_ns_per_s", "total", TOTAL, STACK_COUNT),
];

const fn sampled(name: &'static str, short: &'static str, time: usize, samples: usize) -> Metric {
    let rate = metric(name, short, Unit::TimePerSecond, Estimator::PerSecond(time));
    Metric { samples: Some(samples), ..rate }
}

/// A function by VM, and vCPU state or thread role.
type Key = (Option<usize>, &'static str, String);

#[derive(Debug, Default)]
struct Functions {
    stacks: Stacks,
    series: BTreeMap<Key, Series>,
    calls: BTreeMap<(String, String, &'static str), ([u64; 2], u64)>,
}

impl Functions {
    fn add(&mut self, sample: &TimedSample<'_>) {
        let names = names(sample.stack);
        if sample.is_own
            && let Some(leaf) = names.last()
        {
            let mut sums = Sums::default();
            (sums[COUNT], sums[SELF]) = (1, sample.time_ns);
            self.series_of(sample, leaf).add(sample.at_ns, &sums, None);
        }
        if sample.is_stack {
            self.stacks.add_sample(sample, &names);
            let mut sums = Sums::default();
            (sums[STACK_COUNT], sums[TOTAL]) = (1, sample.time_ns);
            // A recursive function counts once.
            for name in names.iter().collect::<BTreeSet<_>>() {
                self.series_of(sample, name).add(sample.at_ns, &sums, None);
            }
            self.add_calls(sample, &names);
        }
    }

    fn series_of(&mut self, sample: &TimedSample<'_>, name: &str) -> &mut Series {
        let key = |name: &str| (sample.vm, sample.part, name.to_owned());
        let is_room = self.series.len() < MAX_FUNCTIONS;
        let key =
            if is_room || self.series.contains_key(&key(name)) { key(name) } else { key(OTHERS) };
        self.series.entry(key).or_default()
    }

    fn add_calls(&mut self, sample: &TimedSample<'_>, names: &[String]) {
        let callers = std::iter::once("").chain(names.iter().map(String::as_str));
        let calls: BTreeSet<(&str, &str)> =
            callers.zip(names).map(|(caller, name)| (name.as_str(), caller)).collect();
        for (name, caller) in calls {
            let key = (name.to_owned(), caller.to_owned(), sample.part);
            if self.calls.len() < MAX_CALLS || self.calls.contains_key(&key) {
                let (time_ns, samples) = self.calls.entry(key).or_default();
                if let Some(half_ns) = time_ns.get_mut(block(sample.at_ns)) {
                    *half_ns = half_ns.saturating_add(sample.time_ns);
                }
                *samples = samples.saturating_add(1);
            }
        }
    }
}

/// Ignores functions with few samples: they cannot be significant, and each comparison makes others less
/// significant.
fn settle(groups: &mut [&mut MeasuredGroup]) {
    for (metric, sum) in
        METRICS.iter().enumerate().filter_map(|(at, metric)| Some((at, metric.samples?)))
    {
        let samples =
            groups.iter().map(|group| group.series.total(sum)).fold(0, u64::saturating_add);
        if samples < MIN_SAMPLES {
            groups.iter_mut().for_each(|group| group.unrecorded |= 1 << metric);
        }
    }
}

/// Alternating blocks of a quarter of a second: 0 or 1.
fn block(at_ns: u64) -> usize {
    usize::from(at_ns >> BLOCK_SHIFT & 1 == 1)
}

/// Names of a stack's frames. Consecutive frames without a symbol in the same file are merged.
fn names(stack: &[CodeFrame]) -> Vec<String> {
    let mut frames: Vec<&CodeFrame> = stack.iter().collect();
    frames.dedup_by(|frame, other| frame.symbol.is_none() && frame.function() == other.function());
    let mut names: Vec<String> = frames.iter().map(|frame| frame.function()).collect();
    names.extend(frames.last().and_then(|leaf| place(leaf)));
    names
}

/// The position in its page of a program's code without a symbol, so that runs can be compared.
fn place(frame: &CodeFrame) -> Option<String> {
    let address = frame.address.filter(|_| frame.is_user_address())?;
    Some(format!("{} at …{:03x}", frame.function(), address & PLACE_IN_PAGE))
}

/// First and last event of the first recording; without events, first and last sample.
fn span_ns(input: &RunInput<'_>, states: &States) -> (u64, u64) {
    let events = states.pass.spans_ns.first().copied().flatten();
    let sampled = || {
        let (from_ns, to_ns) = input.samples.first()?.as_ref()?.first_and_last_ns()?;
        let range = input.view.recordings.first()?.range().unwrap_or(TimeRange::ALL);
        Some((from_ns.max(range.from_ns), to_ns.min(range.to_ns)))
    };
    events.or_else(sampled).unwrap_or((0, 0))
}

fn measure(input: RunInput<'_>, progress: &(dyn Fn(u64) + Sync)) -> Run {
    let RunInput { view, samples } = input;
    let Some(host) = view.recordings.first() else { return Run::empty() };
    let mut functions = Functions::default();
    let states = each_sample(view, samples, progress, &mut |sample| functions.add(sample));
    let lost = Lost::from_losses(&states.pass.losses);
    let group = |((vm, state, function), series): (Key, Series)| MeasuredGroup {
        key: vec![
            vm.map_or(KeyValue::None, KeyValue::Vm),
            KeyValue::Text(state.to_owned()),
            KeyValue::Text(function),
        ],
        series,
        whole_index: None,
        unrecorded: 0,
    };
    let call = |((function, below, part), (time_ns, samples)): (
        (String, String, &str),
        ([u64; 2], u64),
    )| { CallTime { function, below, part: part.to_owned(), time_ns, samples } };
    Run {
        vms: states.vms.first().map_or_else(Vec::new, |vms| vms.iter().map(RunVm::new).collect()),
        span_ns: span_ns(&input, &states),
        groups: functions.series.into_iter().map(group).collect(),
        wholes: Vec::new(),
        nanoseconds: host.is_nanoseconds(),
        lost,
        calls: functions.calls.into_iter().map(call).collect(),
        stacks: functions.stacks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::USER_MODULE;

    fn names_at(address: u64) -> Vec<String> {
        let module = Some(USER_MODULE.to_owned());
        let leaf =
            CodeFrame { module, address: Some(address), user_space: true, ..CodeFrame::default() };
        names(&[leaf])
    }

    /// Load addresses of programs do not matter; two functions have two names, both below the program's frame.
    #[test]
    fn places_in_programs_are_the_same_in_each_run() {
        assert_eq!(names_at(0x40_1136), ["[user]", "[user] at …130"]);
        assert_eq!(names_at(0x40_1136), names_at(0x5555_5555_513a));
        assert_ne!(names_at(0x40_1136), names_at(0x40_1146));
        let kernel = CodeFrame { address: Some(0xffff_ffff_8100_0000), ..CodeFrame::default() };
        assert_eq!(names(&[kernel]), ["[kernel]"]);
    }
}
