//! Splits the time in which VMMs handle exits: vCPU cycles, split at the events of the vCPU's thread.

use rustc_hash::FxHashMap;
use timeline::cycles::{CycleEnd, CycleSink, Interval, VcpuCycle};
use timeline::{Detail, ExitSpan, Handler, Outcome, VcpuActivity};

use super::activity::{Activity, Call, Mark, cut};
use super::calls::CallKind;
use super::split::{ExitSplit, VmmPart};
use super::sums::{CallKey, CallSum, LockKey, LockSum, Waiter};
use crate::profile::{StackNumber, ThreadSamples};

/// Max marks of one thread before its cycle is processed early.
const MAX_MARKS: usize = 1 << 14;

/// Max groups of exits by address, because guests choose the addresses.
const MAX_GROUPS: usize = 1 << 16;

/// Max kinds of calls per exit, and per group.
const MAX_CALLS: usize = 1024;

/// Max waits per exit, and max futexes.
const MAX_WAITS: usize = 1 << 16;

/// Number of samples by part and stack.
pub(super) type SampledCode = FxHashMap<(VmmPart, StackNumber), u64>;

/// Exits with equal keys form a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct GroupKey {
    pub(super) vcpu: usize,
    pub(super) level: u8,
    pub(super) isa: u8,
    pub(super) code: u64,
    pub(super) about: Option<(Detail, u64)>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct GroupSum {
    pub(super) exits: u64,
    pub(super) split: ExitSplit,
    pub(super) calls: FxHashMap<CallKey, CallSum>,
    pub(super) code: SampledCode,
}

/// A wake-up of a thread in a futex call, and the thread that released it.
#[derive(Clone, Copy, Debug)]
struct Release {
    at_ns: u64,
    by: Option<u32>,
}

/// An exit in progress.
#[derive(Clone, Debug, Default)]
struct Open {
    split: ExitSplit,
    was_in_vmm: bool,
    calls: Vec<(CallKey, CallSum)>,
    locks: Vec<(LockKey, u64)>,
    code: Vec<(VmmPart, StackNumber)>,
}

/// State of a vCPU's thread: the marks that split its cycle.
#[derive(Clone, Debug, Default)]
struct Log {
    marks: Vec<Mark>,
    /// Marks before this index are already counted as calls.
    counted: usize,
    releases: Vec<Release>,
    about: Option<(Detail, u64)>,
    open: Open,
}

/// Receives the cycles of all vCPUs of a recording.
#[derive(Debug)]
pub(super) struct ExitSplitter<'s> {
    pub(super) samples: ThreadSamples<'s>,
    logs: FxHashMap<u32, Log>,
    pub(super) groups: FxHashMap<GroupKey, GroupSum>,
    pub(super) locks: FxHashMap<(usize, LockKey), LockSum>,
}

impl<'s> ExitSplitter<'s> {
    pub(super) fn new(samples: ThreadSamples<'s>) -> Self {
        Self {
            samples,
            logs: FxHashMap::default(),
            groups: FxHashMap::default(),
            locks: FxHashMap::default(),
        }
    }

    /// The thread left its guest.
    pub(super) fn exits(&mut self, thread: u32) {
        self.logs.entry(thread).or_default().about = None;
    }

    /// Sets the detail of the exit in progress, with the rules of `exits`.
    pub(super) fn about(&mut self, thread: u32, detail: Detail, value: u64) {
        if let Some(log) = self.logs.get_mut(&thread) {
            detail.note(&mut log.about, value);
        }
    }

    /// The thread changes its activity. Returns whether there are too many marks, so that the cycle must be
    /// processed before its end.
    pub(super) fn mark(&mut self, thread: u32, at_ns: u64, activity: Activity) -> bool {
        let Some(log) = self.logs.get_mut(&thread) else { return false };
        let at_ns = log.marks.last().map_or(at_ns, |last| last.at_ns.max(at_ns));
        log.marks.push(Mark { at_ns, activity });
        log.marks.len() > MAX_MARKS
    }

    /// Drops a thread's processed marks.
    pub(super) fn forget_marks(&mut self, thread: u32) {
        if let Some(log) = self.logs.get_mut(&thread) {
            log.count_calls();
            log.forget_marks();
        }
    }

    /// The thread was woken in a futex call by the thread that released it.
    pub(super) fn released(&mut self, thread: u32, at_ns: u64, by: Option<u32>) {
        if let Some(log) = self.logs.get_mut(&thread)
            && log.releases.len() < MAX_MARKS
        {
            let at_ns = log.releases.last().map_or(at_ns, |last| last.at_ns.max(at_ns));
            log.releases.push(Release { at_ns, by });
        }
    }

    fn close(&mut self, vcpu: usize, exit: &ExitSpan, about: Option<(Detail, u64)>, open: Open) {
        let Open { mut split, was_in_vmm, calls, locks, code } = open;
        if !was_in_vmm && exit.handler != Handler::User {
            return;
        }
        // Time that no interval of a cycle covers is unknown.
        split.not_split_ns += exit.parts.user_ns.saturating_sub(split.user_ns());
        let mut key = GroupKey { vcpu, level: exit.level, isa: exit.isa, code: exit.code, about };
        if self.groups.len() >= MAX_GROUPS && !self.groups.contains_key(&key) {
            key.about = None;
        }
        let group = self.groups.entry(key).or_default();
        group.exits += 1;
        group.split += split;
        for (key, sum) in calls {
            if group.calls.len() < MAX_CALLS || group.calls.contains_key(&key) {
                group.calls.entry(key).or_default().add(&sum);
            }
        }
        code.into_iter().for_each(|sampled| *group.code.entry(sampled).or_default() += 1);
        for (key, waited_ns) in locks {
            if self.locks.len() < MAX_WAITS || self.locks.contains_key(&(vcpu, key)) {
                let lock = self.locks.entry((vcpu, key)).or_default();
                lock.wait(Waiter::Vcpu(vcpu), waited_ns);
            }
        }
    }
}

impl CycleSink for ExitSplitter<'_> {
    fn cycle(&mut self, cycle: &VcpuCycle<'_>) {
        let Self { logs, samples, .. } = self;
        let Some(log) = logs.get_mut(&cycle.thread) else { return };
        for interval in
            cycle.intervals.iter().filter(|interval| interval.in_vmm && interval.in_exit)
        {
            log.interval(interval, &mut |from_ns, to_ns| {
                samples.next(cycle.thread, from_ns, to_ns)
            });
        }
        log.count_calls();
        log.forget_marks();
        if cycle.end == CycleEnd::Partial {
            return;
        }
        let (open, about) = (std::mem::take(&mut log.open), log.about);
        if cycle.end == CycleEnd::Entry
            && let Some(exit) = cycle.exit
            && exit.outcome == Outcome::Paired
        {
            self.close(cycle.vcpu, exit, about, open);
        }
    }
}

impl Log {
    /// Adds an interval; `sampled` returns the next sample in a range.
    fn interval(
        &mut self,
        interval: &Interval,
        sampled: &mut dyn FnMut(u64, u64) -> Option<StackNumber>,
    ) {
        let Self { marks, releases, open, .. } = self;
        open.was_in_vmm = true;
        let range = (interval.from_ns, interval.to_ns);
        match interval.activity {
            VcpuActivity::User => cut(marks, range, |activity, (from_ns, to_ns)| {
                let (part, ns) = (VmmPart::from_activity(activity), to_ns - from_ns);
                open.split.runs(part, ns);
                open.call(activity, |sum| sum.running_ns += ns);
                while let Some(stack) = sampled(from_ns, to_ns) {
                    open.code.push((part, stack));
                }
            }),
            VcpuActivity::Blocked => cut(marks, range, |activity, (from_ns, to_ns)| {
                let ns = to_ns - from_ns;
                open.split.sleeps(activity, ns);
                open.call(activity, |sum| sum.waited_ns += ns);
                if let Activity::Call(Call { kind: CallKind::Futex, futex, .. }) = activity {
                    let at = releases.partition_point(|release| release.at_ns < interval.to_ns);
                    let release =
                        releases.get(at).filter(|release| release.at_ns == interval.to_ns);
                    let holder = release.and_then(|release| release.by);
                    if open.locks.len() < MAX_WAITS {
                        open.locks.push((LockKey { futex, holder }, ns));
                    }
                }
            }),
            VcpuActivity::Preempted | VcpuActivity::Waiting => {
                open.split.run_queue_ns += interval.to_ns - interval.from_ns;
            }
            _ => {}
        }
    }

    /// Counts calls that began since the last processed part of the cycle.
    fn count_calls(&mut self) {
        for mark in self.marks.get(self.counted..).unwrap_or_default() {
            self.open.call(mark.activity, |sum| sum.count += 1);
        }
        self.counted = self.marks.len();
    }

    /// Keeps the last mark, because the following time continues its activity.
    fn forget_marks(&mut self) {
        let past = self.marks.len().saturating_sub(1);
        self.marks.drain(..past);
        self.counted = self.marks.len();
        self.releases.clear();
    }
}

impl Open {
    /// Updates the sum of a call; ignores other activities, and `KVM_RUN`.
    fn call(&mut self, activity: Activity, change: impl FnOnce(&mut CallSum)) {
        let Activity::Call(call) = activity else { return };
        if call.kind == CallKind::Run {
            return;
        }
        let key = CallKey { number: call.number, asks: call.asks };
        let has_room = self.calls.len() < MAX_CALLS;
        match self.calls.iter_mut().find(|(other, _)| *other == key) {
            Some((_, sum)) => change(sum),
            None if !has_room => {}
            None => {
                let mut sum = CallSum::default();
                change(&mut sum);
                self.calls.push((key, sum));
            }
        }
    }
}
