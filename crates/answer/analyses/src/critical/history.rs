//! History of threads, CPUs and vCPUs, as far back as walks need it.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::cause::Cause;
use super::disks::{Disk, Issued};
use crate::loss_log::LossLog;
use crate::path::Thread;

/// Number of entries below which old entries are not discarded.
const FEW: usize = 1 << 16;

/// Max entries of at most 40 bytes.
pub(super) const MAX_KEPT: usize = 1 << 21;

/// Activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    Runs {
        cpu: u16,
    },
    /// Switched out while it could have continued.
    Preempted,
    /// Woken, and waiting for a CPU.
    Woken(Cause),
    Sleeps,
    /// Unknown after a loss.
    Lost,
    /// Exited.
    Gone,
}

/// Mode of a running vCPU thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// In the guest.
    Guest,
    /// The kernel handles an exit.
    Kernel { isa: u8, code: u64 },
    /// The VMM handles an exit.
    User { isa: u8, code: u64 },
    /// Unknown after a loss.
    Lost,
}

/// A raised interrupt of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Raised {
    /// The host thread that raised it.
    pub(super) by: Thread,
    /// Whether it was raised in an interrupt.
    pub(super) in_interrupt: bool,
    /// Interrupt vector, if the event has it.
    pub(super) vector: Option<u8>,
}

/// A sequence of states with their start times.
#[derive(Debug)]
pub(super) struct Log<S>(VecDeque<(u64, S)>);

impl<S> Default for Log<S> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

/// A state of a log with its start, and the next state.
#[derive(Clone, Copy, Debug)]
pub(super) struct At<S> {
    pub(super) from_ns: u64,
    pub(super) state: S,
    pub(super) next: Option<(u64, S)>,
}

impl<S: Copy> Log<S> {
    /// Appends a state; times are monotonic.
    fn push(&mut self, now_ns: u64, state: S) {
        let last_ns = self.0.back().map_or(0, |(from_ns, _)| *from_ns);
        self.0.push_back((now_ns.max(last_ns), state));
    }

    pub(super) fn last(&self) -> Option<(u64, S)> {
        self.0.back().copied()
    }

    /// The state just before `now_ns`.
    pub(super) fn before(&self, now_ns: u64) -> Option<At<S>> {
        let after = self.0.partition_point(|(from_ns, _)| *from_ns < now_ns);
        let &(from_ns, state) = self.0.get(after.checked_sub(1)?)?;
        Some(At { from_ns, state, next: self.0.get(after).copied() })
    }

    /// The states before `now_ns`, the latest first.
    pub(super) fn backwards(&self, now_ns: u64) -> impl Iterator<Item = (u64, S)> {
        let after = self.0.partition_point(|(from_ns, _)| *from_ns < now_ns);
        self.0.range(..after).rev().copied()
    }

    /// Drops states that end before `before_ns`; returns their number.
    fn forget(&mut self, before_ns: u64) -> usize {
        let after = self.0.partition_point(|(from_ns, _)| *from_ns <= before_ns);
        let gone = after.saturating_sub(1);
        self.0.drain(..gone);
        gone
    }
}

/// A thread's states, and the number of losses that they include.
#[derive(Debug)]
struct ThreadLog {
    log: Log<Activity>,
    losses_seen: usize,
}

impl ThreadLog {
    /// Start of the first unseen loss that may affect the thread: on its CPU, or on any CPU while it has none.
    fn unseen_loss(&self, losses: Option<&LossLog>) -> Option<u64> {
        let losses = losses.filter(|losses| losses.count() != self.losses_seen)?;
        let cpu = match self.log.last()? {
            (_, Activity::Gone) => return None,
            (_, Activity::Runs { cpu }) => Some(cpu),
            _ => None,
        };
        losses.first_after(self.losses_seen, cpu)
    }

    fn is_lost(&self) -> bool {
        matches!(self.log.last(), Some((_, Activity::Lost)))
    }
}

/// A thread's states, with a loss that its log does not include yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadHistory<'h> {
    log: &'h Log<Activity>,
    lost: Option<(u64, Activity)>,
}

impl<'h> ThreadHistory<'h> {
    pub(super) fn last(self) -> Option<(u64, Activity)> {
        self.lost.or_else(|| self.log.last())
    }

    /// The state just before `now_ns`.
    pub(super) fn before(self, now_ns: u64) -> Option<At<Activity>> {
        match self.lost {
            Some((from_ns, state)) if from_ns < now_ns => Some(At { from_ns, state, next: None }),
            lost => self.log.before(now_ns).map(|at| At { next: at.next.or(lost), ..at }),
        }
    }

    /// The states before `now_ns`, the latest first.
    pub(super) fn backwards(self, now_ns: u64) -> impl Iterator<Item = (u64, Activity)> + 'h {
        let lost = self.lost.filter(|(from_ns, _)| *from_ns < now_ns);
        lost.into_iter().chain(self.log.backwards(now_ns))
    }
}

/// Histories of all threads, CPUs and vCPUs.
#[derive(Debug, Default)]
pub(super) struct History {
    threads: FxHashMap<Thread, ThreadLog>,
    /// Losses by recording. Threads process them lazily, at their next event, because a recording can have as many
    /// of both as lines.
    losses: Vec<LossLog>,
    /// By recording and CPU: the current thread; `None` if unknown.
    cpus: FxHashMap<(u16, u16), Log<Option<u32>>>,
    /// By vCPU.
    modes: Vec<Log<Mode>>,
    raised: Vec<Log<Raised>>,
    /// By vCPU: vectors of injected interrupts.
    injected: Vec<Log<u8>>,
    /// By disk: the issues of completed requests.
    completed: FxHashMap<Disk, Log<Option<Issued>>>,
    entry_count: usize,
    /// Number of entries that triggers [`Self::tidy`].
    room: usize,
    /// Needed entries before this time may have been dropped.
    pub(super) forgotten_ns: u64,
}

impl History {
    pub(super) fn new(vcpus: usize) -> Self {
        let modes = (0..vcpus).map(|_| Log::default()).collect();
        let raised = (0..vcpus).map(|_| Log::default()).collect();
        let injected = (0..vcpus).map(|_| Log::default()).collect();
        Self { modes, raised, injected, room: FEW, ..Self::default() }
    }

    pub(super) fn thread(&self, thread: Thread) -> Option<ThreadHistory<'_>> {
        let known = self.threads.get(&thread)?;
        let unseen_ns = known.unseen_loss(self.losses(thread.0)).filter(|_| !known.is_lost());
        let (last_ns, _) = known.log.last()?;
        let lost = unseen_ns.map(|from_ns| (from_ns.max(last_ns), Activity::Lost));
        Some(ThreadHistory { log: &known.log, lost })
    }

    fn losses(&self, recording: u16) -> Option<&LossLog> {
        self.losses.get(usize::from(recording))
    }

    pub(super) fn cpu(&self, recording: u16, cpu: u16) -> Option<&Log<Option<u32>>> {
        self.cpus.get(&(recording, cpu))
    }

    pub(super) fn mode(&self, vcpu: usize) -> Option<&Log<Mode>> {
        self.modes.get(vcpu)
    }

    pub(super) fn raised(&self, vcpu: usize) -> Option<&Log<Raised>> {
        self.raised.get(vcpu)
    }

    pub(super) fn injected(&self, vcpu: usize) -> Option<&Log<u8>> {
        self.injected.get(vcpu)
    }

    /// Issue of the disk's last request that completed until `now_ns`.
    pub(super) fn completed(&self, disk: Disk, now_ns: u64) -> Option<Issued> {
        self.completed.get(&disk)?.before(now_ns.saturating_add(1))?.state
    }

    pub(super) fn set_thread(&mut self, thread: Thread, now_ns: u64, activity: Activity) {
        let losses_seen = self.losses(thread.0).map_or(0, LossLog::count);
        let new = || ThreadLog { log: Log::default(), losses_seen };
        self.threads.entry(thread).or_insert_with(new).log.push(now_ns, activity);
        self.entry_count += 1;
    }

    /// Applies unseen losses to a thread; must be called before its next event. Returns the time since when its
    /// events may be missing.
    pub(super) fn catch_up(&mut self, thread: Thread) -> Option<u64> {
        let losses = self.losses.get(usize::from(thread.0))?;
        let known = self.threads.get_mut(&thread)?;
        let lost_ns = known.unseen_loss(Some(losses));
        known.losses_seen = losses.count();
        if let Some(from_ns) = lost_ns.filter(|_| !known.is_lost()) {
            known.log.push(from_ns, Activity::Lost);
            self.entry_count += 1;
        }
        lost_ns
    }

    pub(super) fn set_cpu(&mut self, cpu: (u16, u16), now_ns: u64, thread: Option<u32>) {
        let log = self.cpus.entry(cpu).or_default();
        if log.last().is_none_or(|(_, known)| known != thread) {
            log.push(now_ns, thread);
            self.entry_count += 1;
        }
    }

    pub(super) fn set_mode(&mut self, vcpu: usize, now_ns: u64, mode: Mode) {
        if let Some(log) = self.modes.get_mut(vcpu) {
            log.push(now_ns, mode);
            self.entry_count += 1;
        }
    }

    pub(super) fn raise(&mut self, vcpu: usize, now_ns: u64, raised: Raised) {
        if let Some(log) = self.raised.get_mut(vcpu) {
            log.push(now_ns, raised);
            self.entry_count += 1;
        }
    }

    pub(super) fn inject(&mut self, vcpu: usize, now_ns: u64, vector: u8) {
        if let Some(log) = self.injected.get_mut(vcpu) {
            log.push(now_ns, vector);
            self.entry_count += 1;
        }
    }

    pub(super) fn complete(&mut self, disk: Disk, now_ns: u64, issued: Option<Issued>) {
        self.completed.entry(disk).or_default().push(now_ns, issued);
        self.entry_count += 1;
    }

    /// Records a loss on a CPU: afterwards, the state of each thread of the machine is unknown unless it was on
    /// another CPU.
    pub(super) fn lose(&mut self, (recording, cpu): (u16, u16), now_ns: u64) {
        let at = usize::from(recording);
        if self.losses.len() <= at {
            self.losses.resize_with(at + 1, LossLog::default);
        }
        if let Some(losses) = self.losses.get_mut(at) {
            losses.add(cpu, now_ns);
        }
        self.set_cpu((recording, cpu), now_ns, None);
    }

    /// Whether there are enough entries to [drop old ones](Self::tidy).
    pub(super) fn is_full(&self) -> bool {
        self.entry_count >= self.room
    }

    /// Drops entries before `needed_from_ns`, and needed ones if there are too many.
    pub(super) fn tidy(&mut self, needed_from_ns: u64, now_ns: u64) {
        self.forget(needed_from_ns);
        let mut from_ns = needed_from_ns;
        while self.entry_count > MAX_KEPT / 2 && from_ns < now_ns {
            from_ns += (now_ns - from_ns).div_ceil(2);
            self.forget(from_ns);
            self.forgotten_ns = from_ns;
        }
        self.room = (2 * self.entry_count).clamp(FEW, MAX_KEPT);
    }

    fn forget(&mut self, before_ns: u64) {
        let mut gone = 0;
        self.threads.values_mut().for_each(|known| gone += known.log.forget(before_ns));
        self.cpus.values_mut().for_each(|log| gone += log.forget(before_ns));
        self.modes.iter_mut().for_each(|log| gone += log.forget(before_ns));
        self.raised.iter_mut().for_each(|log| gone += log.forget(before_ns));
        self.injected.iter_mut().for_each(|log| gone += log.forget(before_ns));
        self.completed.values_mut().for_each(|log| gone += log.forget(before_ns));
        self.threads.retain(|_, known| {
            let is_over =
                matches!(known.log.last(), Some((at_ns, Activity::Gone)) if at_ns <= before_ns);
            gone += usize::from(is_over);
            !is_over
        });
        self.entry_count = self.entry_count.saturating_sub(gone);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// A reference model: each loss is applied to all threads immediately.
    #[derive(Debug, Default)]
    struct AtOnce(BTreeMap<Thread, Vec<(u64, Activity)>>);

    impl AtOnce {
        fn set(&mut self, thread: Thread, now_ns: u64, activity: Activity) {
            let states = self.0.entry(thread).or_default();
            let last_ns = states.last().map_or(0, |(last_ns, _)| *last_ns);
            states.push((now_ns.max(last_ns), activity));
        }

        fn lose(&mut self, recording: u16, cpu: u16, now_ns: u64) {
            let of_recording = self.0.keys().filter(|thread| thread.0 == recording);
            for thread in of_recording.copied().collect::<Vec<Thread>>() {
                let last = self.0[&thread].last().map(|(_, activity)| *activity);
                let is_kept = match last {
                    Some(Activity::Runs { cpu: other }) => other != cpu,
                    last => matches!(last, Some(Activity::Lost | Activity::Gone)),
                };
                if !is_kept {
                    self.set(thread, now_ns, Activity::Lost);
                }
            }
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Set(Thread, Activity),
        Lose(u16, u16),
        CatchUp(Thread),
    }

    fn step() -> impl Strategy<Value = Step> {
        let thread = || (0..2_u16, 1..4_u32);
        let activity = prop_oneof![
            (0..2_u16).prop_map(|cpu| Activity::Runs { cpu }),
            Just(Activity::Sleeps),
            Just(Activity::Lost),
            Just(Activity::Gone),
        ];
        prop_oneof![
            (thread(), activity).prop_map(|(thread, activity)| Step::Set(thread, activity)),
            (0..2_u16, 0..2_u16).prop_map(|(recording, cpu)| Step::Lose(recording, cpu)),
            thread().prop_map(Step::CatchUp),
        ]
    }

    proptest! {
        #[test]
        fn threads_that_learn_of_losses_later_did_the_same(steps in prop::collection::vec((0..3_u64, step()), 1..40)) {
            let (mut history, mut at_once) = (History::new(0), AtOnce::default());
            let mut now_ns = 0;
            for (after_ns, step) in steps {
                now_ns += after_ns;
                match step {
                    Step::Set(thread, activity) => {
                        history.catch_up(thread);
                        history.set_thread(thread, now_ns, activity);
                        at_once.set(thread, now_ns, activity);
                    }
                    Step::Lose(recording, cpu) => {
                        history.lose((recording, cpu), now_ns);
                        at_once.lose(recording, cpu, now_ns);
                    }
                    Step::CatchUp(thread) => _ = history.catch_up(thread),
                }
                for (thread, states) in &at_once.0 {
                    let known = history.thread(*thread).unwrap();
                    let backwards: Vec<_> = known.backwards(u64::MAX).collect();
                    prop_assert_eq!(&backwards, &states.iter().rev().copied().collect::<Vec<_>>());
                    prop_assert_eq!(known.last(), states.last().copied());
                    for at_ns in 0..=now_ns + 1 {
                        let next = states.partition_point(|(from_ns, _)| *from_ns < at_ns);
                        let state = next.checked_sub(1).map(|at| (states[at], states.get(next).copied()));
                        let found = known.before(at_ns).map(|at| ((at.from_ns, at.state), at.next));
                        prop_assert_eq!(found, state);
                    }
                }
            }
        }
    }
}
