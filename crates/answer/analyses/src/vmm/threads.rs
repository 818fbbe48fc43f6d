//! Activity of threads that are not vCPUs: polling for work, dispatching it, submitting it, waiting for locks.

use rustc_hash::FxHashMap;

use super::activity::{Activity, Call, Progress};
use super::calls::CallKind;
use super::split::ThreadSplit;
use super::sums::{CallKey, CallSum, LockKey, LockSum, Waiter};
use crate::loss_log::LossLog;

/// Max kinds of calls per thread.
const MAX_CALLS: usize = 256;
/// Max futexes per thread.
const MAX_LOCKS: usize = 1024;

/// CPU state of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cpu {
    /// No event shows it.
    #[default]
    Unknown,
    Running,
    /// Runnable, without a CPU.
    Queued,
    Asleep,
    /// It has exited.
    Gone,
}

/// State of a thread during the pass.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadClock {
    pub(super) progress: Progress,
    cpu: Cpu,
    /// The CPU of its last event.
    on: u16,
    /// End of the time that is already accounted for.
    since_ns: u64,
    /// Start of its last sleep.
    asleep_since_ns: u64,
    /// Number of losses that were already applied.
    losses_seen: usize,
    pub(super) split: ThreadSplit,
    pub(super) calls: FxHashMap<CallKey, CallSum>,
    pub(super) locks: FxHashMap<LockKey, LockSum>,
}

impl ThreadClock {
    /// A thread that is first seen after `losses` losses.
    pub(super) fn new(now_ns: u64, losses: usize) -> Self {
        Self { since_ns: now_ns, losses_seen: losses, ..Self::default() }
    }

    /// An event on a CPU shows that the thread runs.
    pub(super) fn runs(&mut self, now_ns: u64, cpu: u16) {
        self.account(now_ns);
        (self.cpu, self.on) = (Cpu::Running, cpu);
    }

    pub(super) fn leaves_cpu(&mut self, now_ns: u64, cpu: u16, sleeps: bool) {
        self.runs(now_ns, cpu);
        self.cpu = if sleeps { Cpu::Asleep } else { Cpu::Queued };
        self.asleep_since_ns = now_ns;
    }

    pub(super) fn gets_cpu(&mut self, thread: u32, now_ns: u64, cpu: u16) {
        // The wake-up was not recorded.
        self.wake(thread, now_ns, None);
        self.runs(now_ns, cpu);
    }

    /// The thread is woken, by the holder of a lock if it is known.
    pub(super) fn wake(&mut self, thread: u32, now_ns: u64, holder: Option<u32>) {
        self.account(now_ns);
        if self.cpu != Cpu::Asleep {
            return;
        }
        self.cpu = Cpu::Queued;
        if let Some(call) = self.progress.futex() {
            let waited_ns = now_ns.saturating_sub(self.asleep_since_ns);
            let key = LockKey { futex: call.futex, holder };
            if self.locks.len() < MAX_LOCKS || self.locks.contains_key(&key) {
                self.locks.entry(key).or_default().wait(Waiter::Thread(thread), waited_ns);
            }
        }
    }

    pub(super) fn enters(&mut self, call: Call) {
        self.progress.enters(call);
        self.call(|sum| sum.count += 1);
    }

    pub(super) fn ends(&mut self, now_ns: u64) {
        self.account(now_ns);
        self.cpu = Cpu::Gone;
        self.progress.forget();
    }

    /// Applies losses since the thread's last event: its activity is unknown from the first loss on its CPU, or on
    /// any CPU if it was not running.
    pub(super) fn catch_up(&mut self, losses: &LossLog) {
        let seen = std::mem::replace(&mut self.losses_seen, losses.count());
        if seen == self.losses_seen || self.cpu == Cpu::Gone {
            return;
        }
        let cpu = (self.cpu == Cpu::Running).then_some(self.on);
        let Some(from_ns) = losses.first_after(seen, cpu) else { return };
        self.account(from_ns);
        self.cpu = Cpu::Unknown;
        self.progress.forget();
    }

    pub(super) fn account(&mut self, now_ns: u64) {
        let ns = now_ns.saturating_sub(self.since_ns);
        self.since_ns = self.since_ns.max(now_ns);
        if ns == 0 {
            return;
        }
        match self.cpu {
            Cpu::Unknown => self.split.unknown_ns += ns,
            Cpu::Running => {
                self.split.runs(self.progress.activity, ns);
                self.call(|sum| sum.running_ns += ns);
            }
            Cpu::Queued => self.split.run_queue_ns += ns,
            Cpu::Asleep => {
                self.split.sleeps(self.progress.activity, ns);
                self.call(|sum| sum.waited_ns += ns);
            }
            Cpu::Gone => {}
        }
    }

    fn call(&mut self, change: impl FnOnce(&mut CallSum)) {
        let Activity::Call(call) = self.progress.activity else { return };
        if call.kind == CallKind::Run {
            return;
        }
        let key = CallKey { number: call.number, asks: call.asks };
        if self.calls.len() < MAX_CALLS || self.calls.contains_key(&key) {
            change(self.calls.entry(key).or_default());
        }
    }
}
