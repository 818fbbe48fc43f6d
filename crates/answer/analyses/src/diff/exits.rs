//! Compares exits by VM, level and reason, and in total.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rustc_hash::FxHashMap;
use timeline::reasons::ReasonNames;
use timeline::{ExitSink, ExitSpan, Outcome, each_exit, group_vms};

use super::question::{
    Estimator, KeyValue, Lost, MeasuredGroup, Metric, Question, Run, RunInput, RunVm, Unit,
};
use super::series::{Series, Sums};
use super::stacks::Stacks;
use crate::known_parts::KnownParts;
use crate::recorded::RecordedParts;
use crate::tally::Tally;
use crate::vms::VmsByVcpu;

const COUNT: usize = 0;
const PAIRED: usize = 1;
const TIME: usize = 2;
const KERNEL: usize = 3;
const USER: usize = 4;
const OFF_CPU: usize = 5;
const HALT_POLL: usize = 6;
const COST: usize = 7;

/// The question of `hyperscope diff exits`.
pub(super) const QUESTION: Question = Question {
    name: "exits",
    columns: &["vm", "level", "isa", "reason"],
    metrics: &METRICS,
    weight: TIME,
    count: COUNT,
    aligned: false,
    sampled: false,
    measure,
    settle,
};

// Indexes of metrics that need optional events.
const SHARE: usize = 1;
const KERNEL_PART: usize = 7;
const USER_PART: usize = 8;
const OFF_CPU_PART: usize = 9;
const HALT_POLL_PART: usize = 10;
const COST_PART: usize = 11;

const METRICS: [Metric; 12] = [
    metric("count_per_s", "count", Unit::CountPerSecond, Estimator::PerSecond(COUNT)),
    metric("time_share", "share", Unit::Share, Estimator::Share(TIME)),
    metric("mean_ns", "mean", Unit::Time, Estimator::Per(TIME, PAIRED)),
    metric("p50_ns", "p50", Unit::Time, Estimator::Quantile(500)),
    metric("p90_ns", "p90", Unit::Time, Estimator::Quantile(900)),
    metric("p99_ns", "p99", Unit::Time, Estimator::Quantile(990)),
    metric("time_ns_per_s", "time", Unit::TimePerSecond, Estimator::PerSecond(TIME)),
    metric("kernel_ns_per_s", "kernel", Unit::TimePerSecond, Estimator::PerSecond(KERNEL)),
    metric("user_ns_per_s", "user", Unit::TimePerSecond, Estimator::PerSecond(USER)),
    metric("off_cpu_ns_per_s", "off_cpu", Unit::TimePerSecond, Estimator::PerSecond(OFF_CPU)),
    metric("halt_poll_ns_per_s", "halt_poll", Unit::TimePerSecond, Estimator::PerSecond(HALT_POLL)),
    metric("cost_ns_per_s", "cost_per_s", Unit::TimePerSecond, Estimator::PerSecond(COST)),
];

pub(super) const fn metric(
    name: &'static str,
    short: &'static str,
    unit: Unit,
    estimator: Estimator,
) -> Metric {
    Metric { name, short, unit, estimator, samples: None }
}

/// A preliminary group, because VMs are only known at the end.
type Key = (usize, u8, u8, u64);

#[derive(Debug, Default)]
struct ExitSeries {
    groups: FxHashMap<Key, (Series, Flags)>,
    span: Span,
}

/// Facts about a group that determine which parts of its time are known.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    user_return_unseen: bool,
    poll_unknown: bool,
}

/// First and last time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span(u64, u64);

impl Default for Span {
    fn default() -> Self {
        Self(u64::MAX, 0)
    }
}

impl Span {
    pub(super) fn include(&mut self, span: &ExitSpan) {
        *self = Self(self.0.min(span.start_ns), self.1.max(span.end_ns));
    }

    pub(super) fn ends(self) -> (u64, u64) {
        (self.0.min(self.1), self.1)
    }
}

impl ExitSink for ExitSeries {
    fn exit(&mut self, vcpu: usize, span: &ExitSpan) {
        self.span.include(span);
        let key = (vcpu, span.level, span.isa, span.code);
        let (series, flags) = self.groups.entry(key).or_default();
        let paired = span.outcome == Outcome::Paired;
        let mut sums = Sums::default();
        sums[COUNT] = 1;
        sums[COST] = span.before_exit_ns;
        if paired {
            sums[PAIRED] = 1;
            sums[TIME] = span.duration_ns();
            sums[KERNEL] = span.parts.kernel_ns;
            sums[USER] = span.parts.user_ns;
            sums[OFF_CPU] = span.parts.runnable_ns.saturating_add(span.parts.blocked_ns);
            sums[HALT_POLL] = span.parts.halt_poll_ns;
            let on_cpu_ns = span.parts.kernel_ns.saturating_add(span.parts.user_ns);
            sums[COST] = sums[COST].saturating_add(on_cpu_ns);
            flags.user_return_unseen |= span.user_return_unseen;
            flags.poll_unknown |= span.poll_unknown;
        }
        series.add(span.start_ns, &sums, paired.then(|| span.duration_ns()));
    }
}

fn measure(input: RunInput<'_>, progress: &(dyn Fn(u64) + Sync)) -> Run {
    let Some(recording) = input.view.recordings.first() else { return Run::empty() };
    let pass = each_exit(recording, false, ExitSeries::default(), progress);
    let vms = group_vms(recording, &pass.vcpus);
    let homes = VmsByVcpu::new(&vms);
    let recorded = RecordedParts::new(recording, pass.seen);
    let mut names = ReasonNames::new(recording);
    let mut wholes = vec![Series::default(), Series::default()];
    let mut groups: BTreeMap<(Vec<KeyValue>, bool), (Series, Flags)> = BTreeMap::new();
    let mut all = (Series::default(), Flags::default());
    let mut found: Vec<(Key, (Series, Flags))> = pass.sink.groups.into_iter().collect();
    found.sort_unstable_by_key(|(key, _)| *key);
    for ((vcpu, level, isa, code), (series, flags)) in found {
        let Some(vm) = homes.place(vcpu) else { continue };
        let waiting = names.isa(isa).waits(code);
        let isa_name = names.isa(isa).name().to_owned();
        let reason = names.name(isa, code);
        let key = vec![
            KeyValue::Vm(vm),
            KeyValue::Number(u64::from(level)),
            KeyValue::Text(isa_name),
            KeyValue::Text(reason),
        ];
        if let Some(whole_series) = wholes.get_mut(usize::from(waiting)) {
            whole_series.merge(&series);
        }
        if !waiting {
            add(&mut all, &series, flags);
        }
        match groups.entry((key, waiting)) {
            // Usually the only vCPU of its group; moves the series, because there can be many.
            Entry::Vacant(place) => _ = place.insert((series, flags)),
            Entry::Occupied(mut place) => add(place.get_mut(), &series, flags),
        }
    }
    let mut measured: Vec<MeasuredGroup> = groups
        .into_iter()
        .map(|((key, waiting), sums)| group(key, sums, Some(usize::from(waiting)), &recorded))
        .collect();
    measured.push(group(vec![KeyValue::None; 4], all, None, &recorded));
    Run {
        vms: vms.iter().map(RunVm::new).collect(),
        span_ns: recording.extent_ns().unwrap_or_else(|| pass.sink.span.ends()),
        groups: measured,
        wholes,
        nanoseconds: recording.is_nanoseconds(),
        lost: Lost::from_losses([&pass.losses]),
        calls: Vec::new(),
        stacks: Stacks::default(),
    }
}

fn add((total, known): &mut (Series, Flags), series: &Series, flags: Flags) {
    total.merge(series);
    known.user_return_unseen |= flags.user_return_unseen;
    known.poll_unknown |= flags.poll_unknown;
}

/// A group with its recorded parts.
fn group(
    key: Vec<KeyValue>,
    (series, flags): (Series, Flags),
    whole_index: Option<usize>,
    recorded: &RecordedParts,
) -> MeasuredGroup {
    let tally = Tally {
        user_return_unseen: u64::from(flags.user_return_unseen),
        poll_unknown: u64::from(flags.poll_unknown),
        ..Tally::default()
    };
    let known = KnownParts::new(&tally, recorded);
    let missing = [
        (SHARE, whole_index.is_none()),
        (KERNEL_PART, known.kernel_ns.is_none()),
        (COST_PART, known.cost_ns.is_none()),
        (USER_PART, !recorded.user || known.user_ns.is_none()),
        (OFF_CPU_PART, known.off_cpu_ns.is_none()),
        (HALT_POLL_PART, known.halt_poll_ns.is_none()),
    ];
    let unrecorded = missing.iter().fold(0, |bits, (at, gone)| bits | u32::from(*gone) << at);
    MeasuredGroup { key, series, whole_index, unrecorded }
}

/// Makes groups comparable. If one run lacks halt polling, it is merged into the kernel's part in all runs. If
/// runs differ in other parts, these are not compared.
fn settle(groups: &mut [&mut MeasuredGroup]) {
    let lacks = |group: &MeasuredGroup, part: usize| group.unrecorded >> part & 1 == 1;
    if groups.iter().any(|group| lacks(group, HALT_POLL_PART)) {
        for group in groups.iter_mut() {
            group.series.fold(HALT_POLL, KERNEL);
            group.unrecorded |= 1 << HALT_POLL_PART;
        }
    }
    let differ = |part| {
        groups.iter().any(|group| lacks(group, part))
            && groups.iter().any(|group| !lacks(group, part))
    };
    if differ(USER_PART) || differ(OFF_CPU_PART) {
        for group in groups.iter_mut() {
            let lacking = lacks(group, USER_PART) || lacks(group, OFF_CPU_PART);
            group.unrecorded |= u32::from(lacking) << KERNEL_PART;
        }
    }
}

impl RunVm {
    pub(super) fn new(vm: &timeline::Vm) -> Self {
        Self { name: vm.name.clone(), vcpus: vm.vcpus.len() }
    }
}

impl Run {
    pub(super) fn empty() -> Self {
        Self {
            vms: Vec::new(),
            span_ns: (0, 0),
            groups: Vec::new(),
            wholes: Vec::new(),
            nanoseconds: true,
            lost: Lost::default(),
            calls: Vec::new(),
            stacks: Stacks::default(),
        }
    }
}
