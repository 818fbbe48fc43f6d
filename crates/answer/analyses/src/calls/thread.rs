//! State of a thread: first and last event, CPU, and open calls.

use super::stack::{Returned, Stack};

/// Calls of one thread. The traced time is `self_ns`, `off_cpu_ns` and `unaccounted_ns` together.
#[derive(Clone, Debug, Default)]
pub struct ThreadCalls {
    pub thread: u32,
    /// The CPU of an idle thread, because all idle threads have id 0.
    pub idle_cpu: Option<u16>,
    /// Name, if known.
    pub name: Option<String>,
    /// Calls that returned; for the function tracer, all calls.
    pub count: u64,
    /// Time from its first event, or from the kernel's first clock reading before it, to its last.
    pub traced_ns: u64,
    /// CPU time in traced functions.
    pub self_ns: u64,
    /// Off-CPU time, inside and outside traced functions.
    pub off_cpu_ns: u64,
    /// Calls that the kernel could not follow because its return stack was full.
    pub overrun: u64,
}

impl ThreadCalls {
    /// Display name: `CPU 0/KVM-108`, `idle of CPU 1`.
    #[must_use]
    pub fn title(&self) -> String {
        match (self.idle_cpu, &self.name) {
            (Some(cpu), _) => format!("idle of CPU {cpu}"),
            (None, Some(name)) => format!("{name}-{}", self.thread),
            (None, None) => format!("thread {}", self.thread),
        }
    }

    /// Time outside of recorded calls: in untraced functions, and in calls without a return.
    #[must_use]
    pub const fn unaccounted_ns(&self) -> u64 {
        self.traced_ns.saturating_sub(self.self_ns.saturating_add(self.off_cpu_ns))
    }
}

/// A thread during the pass.
#[derive(Debug)]
pub(super) struct Thread {
    pub calls: ThreadCalls,
    pub stack: Stack,
    /// Its node in the tree, which is also the parent of unseen callers.
    pub root: u32,
    first_ns: u64,
    last_ns: u64,
    cpu: u16,
    /// When it left the CPU; `None` while it is on a CPU.
    off_since_ns: Option<u64>,
    /// Whether its switches are recorded.
    switches: bool,
    overrun: Option<u64>,
    /// Time of the earliest call, on the kernel's measuring clock.
    first_call_ns: Option<u64>,
    /// Difference between the clock of events and the measuring clock, including the min delay from a clock
    /// reading to its event.
    ahead_ns: i128,
}

impl Thread {
    pub(super) fn new(thread: u32, cpu: u16, stamp_ns: u64, root: u32) -> Self {
        let idle_cpu = (thread == 0).then_some(cpu);
        Self {
            calls: ThreadCalls { thread, idle_cpu, ..ThreadCalls::default() },
            stack: Stack::default(),
            root,
            first_ns: stamp_ns,
            last_ns: stamp_ns,
            cpu,
            off_since_ns: None,
            switches: false,
            overrun: None,
            first_call_ns: None,
            ahead_ns: i128::MAX,
        }
    }

    pub(super) const fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// The CPU where it must have been since its last event: it stays there until a switch. `None` if it is off
    /// CPU, or its switches are not recorded.
    pub(super) fn last_cpu(&self) -> Option<u16> {
        (self.switches && self.off_since_ns.is_none()).then_some(self.cpu)
    }

    pub(super) fn seen(&mut self, cpu: u16, stamp_ns: u64) {
        self.cpu = cpu;
        self.last_ns = self.last_ns.max(stamp_ns);
    }

    /// A call returned, with an event at `to_ns`.
    pub(super) fn returned(&mut self, to_ns: u64, ended_call: &Returned) {
        self.calls.count += 1;
        self.calls.self_ns = self.calls.self_ns.saturating_add(ended_call.self_ns);
        let Some(measured) = ended_call.measured else { return };
        let call_ns = measured.return_ns.saturating_sub(ended_call.total_ns);
        self.first_call_ns = Some(self.first_call_ns.map_or(call_ns, |first| first.min(call_ns)));
        self.ahead_ns = self.ahead_ns.min(i128::from(to_ns) - i128::from(measured.return_ns));
    }

    /// Results of the thread. The kernel's measurement of a call starts shortly before its event, so the first
    /// call can start before all events.
    pub(super) fn calls(self) -> ThreadCalls {
        let mut calls = self.calls;
        let call_ns = self.first_call_ns.map(|call_ns| i128::from(call_ns) + self.ahead_ns);
        let call_ns = call_ns.and_then(|call_ns| u64::try_from(call_ns.max(0)).ok());
        let first_ns = call_ns.map_or(self.first_ns, |call_ns| call_ns.min(self.first_ns));
        // With different clocks, the traced time is at least the sum of the known times.
        let known_ns = calls.self_ns.saturating_add(calls.off_cpu_ns);
        calls.traced_ns = self.last_ns.saturating_sub(first_ns).max(known_ns);
        calls
    }

    pub(super) fn switched_out(&mut self, stamp_ns: u64) {
        self.off_since_ns = Some(stamp_ns);
        self.switches = true;
    }

    pub(super) fn switched_in(&mut self, stamp_ns: u64) {
        self.switches = true;
        let Some(since_ns) = self.off_since_ns.take() else { return };
        let length_ns = stamp_ns.saturating_sub(since_ns);
        self.calls.off_cpu_ns = self.calls.off_cpu_ns.saturating_add(length_ns);
        self.stack.off_cpu(length_ns);
    }

    /// Forgets the CPU after a possible loss.
    pub(super) fn forget_cpu(&mut self) {
        self.off_since_ns = None;
    }

    /// Adds the increase of the kernel's overrun counter.
    pub(super) fn overrun(&mut self, count: u64) {
        let before = self.overrun.replace(count).unwrap_or(count);
        let more = count.saturating_sub(before);
        self.calls.overrun = self.calls.overrun.saturating_add(more);
    }
}
