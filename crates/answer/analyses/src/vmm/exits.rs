//! Splits the time that a VMM has exits in hand: what the cycles of vCPUs say of it, cut where their threads' own
//! events say that they were at something else.

use rustc_hash::FxHashMap;
use timeline::cycles::{CycleEnd, CycleSink, Interval, VcpuCycle};
use timeline::{Detail, ExitSpan, Handler, Outcome, VcpuActivity};

use super::activity::{Activity, Call, Mark, cut};
use super::calls::CallKind;
use super::split::{ExitSplit, VmmPart};
use super::sums::{CallKey, CallSum, LockKey, LockSum, Waiter};
use crate::profile::{StackNumber, ThreadSamples};

/// Marks of one thread that are kept before they are worked off.
const MAX_MARKS: usize = 1 << 14;

/// Groups of exits by address that are kept: which addresses there are, guests choose.
const MAX_GROUPS: usize = 1 << 16;

/// Kinds of calls that are kept of one exit, and of a group.
const MAX_CALLS: usize = 1024;

/// Waits that are kept of one exit, and futexes of all.
const MAX_WAITS: usize = 1 << 16;

/// How often code was sampled, by the part of the exit's time and the stack.
pub(super) type SampledCode = FxHashMap<(VmmPart, StackNumber), u64>;

/// What exits have in common whose times are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct GroupKey {
    /// Index of the vCPU.
    pub(super) vcpu: usize,
    pub(super) level: u8,
    pub(super) isa: u8,
    pub(super) code: u64,
    pub(super) about: Option<(Detail, u64)>,
}

/// Sums over exits.
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

/// An exit that is not at its end.
#[derive(Clone, Debug, Default)]
struct Open {
    split: ExitSplit,
    was_in_vmm: bool,
    calls: Vec<(CallKey, CallSum)>,
    locks: Vec<(LockKey, u64)>,
    code: Vec<(VmmPart, StackNumber)>,
}

/// A vCPU's thread: what its cycle is cut at.
#[derive(Clone, Debug, Default)]
struct Log {
    marks: Vec<Mark>,
    /// Marks before this have been counted as calls.
    counted: usize,
    releases: Vec<Release>,
    about: Option<(Detail, u64)>,
    open: Open,
}

/// Takes cycles of all vCPUs of a recording.
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

    /// The thread has left its guest.
    pub(super) fn exits(&mut self, thread: u32) {
        self.logs.entry(thread).or_default().about = None;
    }

    /// What the open exit is about, as `exits` has it.
    pub(super) fn about(&mut self, thread: u32, detail: Detail, value: u64) {
        if let Some(log) = self.logs.get_mut(&thread) {
            detail.note(&mut log.about, value);
        }
    }

    /// The thread is at something else from now on. Returns whether marks are more than are kept: then its cycle has to be
    /// worked off before it is over.
    pub(super) fn mark(&mut self, thread: u32, at_ns: u64, activity: Activity) -> bool {
        let Some(log) = self.logs.get_mut(&thread) else { return false };
        let at_ns = log.marks.last().map_or(at_ns, |last| last.at_ns.max(at_ns));
        log.marks.push(Mark { at_ns, activity });
        log.marks.len() > MAX_MARKS
    }

    /// Drops a thread's marks: its cycle up to them is done, or it has none, so nothing will be cut there.
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
        // What cycles have no interval of is not known.
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
    /// Takes an interval; `sampled` has the next sample in a span of it.
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

    /// Calls that began since the last cycle, or piece of one.
    fn count_calls(&mut self) {
        for mark in self.marks.get(self.counted..).unwrap_or_default() {
            self.open.call(mark.activity, |sum| sum.count += 1);
        }
        self.counted = self.marks.len();
    }

    /// What comes next goes on from the last mark.
    fn forget_marks(&mut self) {
        let past = self.marks.len().saturating_sub(1);
        self.marks.drain(..past);
        self.counted = self.marks.len();
        self.releases.clear();
    }
}

impl Open {
    /// Changes the sum of a call; of none, where the thread is in none, or on its way into the guest.
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
