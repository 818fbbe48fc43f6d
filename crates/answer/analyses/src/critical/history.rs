//! What threads, CPUs and vCPUs did, as far back as a walk may go.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::context::InterruptKind;
use super::disks::{Disk, Issued};
use crate::path::Thread;

/// States kept in all logs together before unneeded ones are discarded.
const FEW: usize = 1 << 16;

/// States that are kept at most: of 40 bytes and less each.
pub(super) const MAX_KEPT: usize = 1 << 21;

/// What makes a thread go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Another thread of its machine.
    Thread(u32),
    /// An interrupt on a CPU of its machine.
    Interrupt {
        cpu: u16,
        /// What it was about.
        kind: InterruptKind,
        /// When its handler began, as far as events show.
        since_ns: u64,
    },
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    Runs {
        cpu: u16,
    },
    /// It was taken off its CPU though it could have run on.
    Preempted,
    /// It was woken, and waits for a CPU.
    Woken(Cause),
    Sleeps,
    /// Events were lost.
    Lost,
    /// It is no more.
    Gone,
}

/// What a vCPU's thread does while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Its guest runs.
    Guest,
    /// The kernel handles an exit.
    Kernel { isa: u8, code: u64 },
    /// The VMM does.
    User { isa: u8, code: u64 },
    /// Events were lost.
    Lost,
}

/// An interrupt that was raised for a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Raised {
    /// The host's thread that did it.
    pub(super) by: Thread,
    /// It did so in an interrupt.
    pub(super) in_interrupt: bool,
    /// The interrupt's vector, where the event has it.
    pub(super) vector: Option<u8>,
}

/// States one after another, each from its time to that of the next.
#[derive(Debug)]
pub(super) struct Log<S>(VecDeque<(u64, S)>);

impl<S> Default for Log<S> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

/// A state of a log, since when, and the one after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct At<S> {
    pub(super) from_ns: u64,
    pub(super) state: S,
    pub(super) next: Option<(u64, S)>,
}

impl<S: Copy> Log<S> {
    /// A state from a moment on. Times never run back.
    fn push(&mut self, now_ns: u64, state: S) {
        let last_ns = self.0.back().map_or(0, |(from_ns, _)| *from_ns);
        self.0.push_back((now_ns.max(last_ns), state));
    }

    /// The latest state.
    pub(super) fn last(&self) -> Option<(u64, S)> {
        self.0.back().copied()
    }

    /// The state just before a moment.
    pub(super) fn before(&self, now_ns: u64) -> Option<At<S>> {
        let after = self.0.partition_point(|(from_ns, _)| *from_ns < now_ns);
        let &(from_ns, state) = self.0.get(after.checked_sub(1)?)?;
        Some(At { from_ns, state, next: self.0.get(after).copied() })
    }

    /// The states before a moment, the latest first.
    pub(super) fn backwards(&self, now_ns: u64) -> impl Iterator<Item = (u64, S)> {
        let after = self.0.partition_point(|(from_ns, _)| *from_ns < now_ns);
        self.0.range(..after).rev().copied()
    }

    /// Lets go of states that end before a moment; says of how many.
    fn forget(&mut self, before_ns: u64) -> usize {
        let after = self.0.partition_point(|(from_ns, _)| *from_ns <= before_ns);
        let gone = after.saturating_sub(1);
        self.0.drain(..gone);
        gone
    }
}

#[derive(Debug, Default)]
pub(super) struct History {
    threads: FxHashMap<Thread, Log<Activity>>,
    /// By recording and CPU, the thread that has it; `None`: not known.
    cpus: FxHashMap<(u16, u16), Log<Option<u32>>>,
    /// By vCPU.
    modes: Vec<Log<Mode>>,
    raised: Vec<Log<Raised>>,
    /// By vCPU, vectors of the interrupts that its guest was given.
    injected: Vec<Log<u8>>,
    /// By disk, where the requests began that completed.
    completed: FxHashMap<Disk, Log<Option<Issued>>>,
    entry_count: usize,
    /// How many may be kept before old ones are looked for.
    room: usize,
    /// All before may have been let go though it was needed.
    pub(super) forgotten_ns: u64,
}

impl History {
    pub(super) fn new(vcpus: usize) -> Self {
        let modes = (0..vcpus).map(|_| Log::default()).collect();
        let raised = (0..vcpus).map(|_| Log::default()).collect();
        let injected = (0..vcpus).map(|_| Log::default()).collect();
        Self { modes, raised, injected, room: FEW, ..Self::default() }
    }

    pub(super) fn thread(&self, thread: Thread) -> Option<&Log<Activity>> {
        self.threads.get(&thread)
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

    /// The last request of a disk that completed up to a moment.
    pub(super) fn completed(&self, disk: Disk, now_ns: u64) -> Option<Issued> {
        self.completed.get(&disk)?.before(now_ns.saturating_add(1))?.state
    }

    pub(super) fn set_thread(&mut self, thread: Thread, now_ns: u64, activity: Activity) {
        self.threads.entry(thread).or_default().push(now_ns, activity);
        self.entry_count += 1;
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

    /// Events of a CPU were lost: what any thread of its machine did that was not on another CPU is not
    /// known from then on.
    pub(super) fn lose(&mut self, (recording, cpu): (u16, u16), now_ns: u64) {
        let of_it = self
            .threads
            .iter_mut()
            .filter(|((thread_recording, _), _)| *thread_recording == recording);
        for (_, log) in of_it {
            match log.last() {
                Some((_, Activity::Runs { cpu: other })) if other != cpu => {}
                Some((_, Activity::Lost | Activity::Gone)) | None => {}
                Some(_) => {
                    log.push(now_ns, Activity::Lost);
                    self.entry_count += 1;
                }
            }
        }
        self.set_cpu((recording, cpu), now_ns, None);
    }

    /// Lets go of what lies before a moment, once there is much; of more where there is too much.
    pub(super) fn tidy(&mut self, needed_from_ns: u64, now_ns: u64) {
        if self.entry_count < self.room {
            return;
        }
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
        self.threads.values_mut().for_each(|log| gone += log.forget(before_ns));
        self.cpus.values_mut().for_each(|log| gone += log.forget(before_ns));
        self.modes.iter_mut().for_each(|log| gone += log.forget(before_ns));
        self.raised.iter_mut().for_each(|log| gone += log.forget(before_ns));
        self.injected.iter_mut().for_each(|log| gone += log.forget(before_ns));
        self.completed.values_mut().for_each(|log| gone += log.forget(before_ns));
        self.threads.retain(|_, log| {
            let is_over = matches!(log.last(), Some((at_ns, Activity::Gone)) if at_ns <= before_ns);
            gone += usize::from(is_over);
            !is_over
        });
        self.entry_count = self.entry_count.saturating_sub(gone);
    }
}
