//! Sums over system calls and locks.

use std::collections::BTreeSet;

/// A system call by its number and request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CallKey {
    pub(super) number: u32,
    pub(super) asks: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallSum {
    /// Number of calls that began.
    pub count: u64,
    /// CPU time in the calls.
    pub running_ns: u64,
    /// Sleep in the calls.
    pub waited_ns: u64,
}

impl CallSum {
    pub(super) fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.running_ns = self.running_ns.saturating_add(other.running_ns);
        self.waited_ns = self.waited_ns.saturating_add(other.waited_ns);
    }
}

/// A futex, and the thread that released the waiting thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct LockKey {
    pub(super) futex: u64,
    pub(super) holder: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Waiter {
    /// A vCPU, by its index, during an exit.
    Vcpu(usize),
    Thread(u32),
}

/// Max distinct waiters of one futex.
const MAX_WAITERS: usize = 1024;

#[derive(Clone, Debug, Default)]
pub(super) struct LockSum {
    pub(super) waits: u64,
    pub(super) exits_waited_ns: u64,
    pub(super) threads_waited_ns: u64,
    pub(super) longest_ns: u64,
    pub(super) waiters: BTreeSet<Waiter>,
}

impl LockSum {
    pub(super) fn wait(&mut self, by: Waiter, ns: u64) {
        self.waits += 1;
        self.longest_ns = self.longest_ns.max(ns);
        let sum = match by {
            Waiter::Vcpu(_) => &mut self.exits_waited_ns,
            Waiter::Thread(_) => &mut self.threads_waited_ns,
        };
        *sum = sum.saturating_add(ns);
        if self.waiters.len() < MAX_WAITERS {
            self.waiters.insert(by);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.waits += other.waits;
        self.exits_waited_ns = self.exits_waited_ns.saturating_add(other.exits_waited_ns);
        self.threads_waited_ns = self.threads_waited_ns.saturating_add(other.threads_waited_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.waiters.extend(other.waiters);
    }
}
