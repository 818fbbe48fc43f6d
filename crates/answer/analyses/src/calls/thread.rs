//! What is known of a thread: when it was seen, where it runs, and the calls it is in.

use super::stack::{Returned, Stack};

/// Calls of one thread. The traced time is `self_ns`, `off_cpu_ns` and `unaccounted_ns` together.
#[derive(Clone, Debug, Default)]
pub struct ThreadCalls {
    /// Its id.
    pub thread: u32,
    /// The CPU, of an idle thread: those share the id 0.
    pub idle_cpu: Option<u16>,
    /// Its name, where it is known.
    pub name: Option<String>,
    /// Calls that returned; of the function tracer: calls.
    pub count: u64,
    /// From its first event, or the kernel's first look at its clock before that, to its last.
    pub traced_ns: u64,
    /// In functions that were traced, on a CPU.
    pub self_ns: u64,
    /// Off the CPU, in such functions or outside.
    pub off_cpu_ns: u64,
    /// Calls that the kernel could not follow: its stack of return addresses was full.
    pub overrun: u64,
}

impl ThreadCalls {
    /// What people call it: `CPU 0/KVM-108`, `idle of CPU 1`.
    #[must_use]
    pub fn title(&self) -> String {
        match (self.idle_cpu, &self.name) {
            (Some(cpu), _) => format!("idle of CPU {cpu}"),
            (None, Some(name)) => format!("{name}-{}", self.thread),
            (None, None) => format!("thread {}", self.thread),
        }
    }

    /// Time in no recorded call: outside of traced functions, and in calls that did not return.
    #[must_use]
    pub const fn unaccounted_ns(&self) -> u64 {
        self.traced_ns.saturating_sub(self.self_ns.saturating_add(self.off_cpu_ns))
    }
}

/// A thread while events are read.
#[derive(Debug)]
pub(super) struct Thread {
    pub calls: ThreadCalls,
    pub stack: Stack,
    /// Its node in the tree, and that of callers which were not seen.
    pub root: u32,
    first_ns: u64,
    last_ns: u64,
    cpu: u16,
    /// When it left the CPU; `None`: it is on one.
    off_since_ns: Option<u64>,
    /// Its switches are in the recording.
    switches: bool,
    overrun: Option<u64>,
    /// The earliest call that the kernel measured, on the clock by which it measures.
    first_call_ns: Option<u64>,
    /// The events' clock is ahead of that one by this much, and by what the kernel takes at least
    /// from a look at its clock to an event.
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

    /// When it was seen last.
    pub(super) const fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// The CPU that it was on until it is seen again: it stays there until a switch says otherwise.
    /// One that is off, or whose switches are not recorded, may have been on any.
    pub(super) fn last_cpu(&self) -> Option<u16> {
        (self.switches && self.off_since_ns.is_none()).then_some(self.cpu)
    }

    pub(super) fn seen(&mut self, cpu: u16, stamp_ns: u64) {
        self.cpu = cpu;
        self.last_ns = self.last_ns.max(stamp_ns);
    }

    /// A call returned, by an event of `to_ns`.
    pub(super) fn returned(&mut self, to_ns: u64, ended_call: &Returned) {
        self.calls.count += 1;
        self.calls.self_ns = self.calls.self_ns.saturating_add(ended_call.self_ns);
        let Some(measured) = ended_call.measured else { return };
        let call_ns = measured.return_ns.saturating_sub(ended_call.total_ns);
        self.first_call_ns = Some(self.first_call_ns.map_or(call_ns, |first| first.min(call_ns)));
        self.ahead_ns = self.ahead_ns.min(i128::from(to_ns) - i128::from(measured.return_ns));
    }

    /// What is known of its calls. The kernel measures a call from a little before its event, so that
    /// the first of them may begin before all events.
    pub(super) fn calls(self) -> ThreadCalls {
        let mut calls = self.calls;
        let call_ns = self.first_call_ns.map(|call_ns| i128::from(call_ns) + self.ahead_ns);
        let call_ns = call_ns.and_then(|call_ns| u64::try_from(call_ns.max(0)).ok());
        let first_ns = call_ns.map_or(self.first_ns, |call_ns| call_ns.min(self.first_ns));
        // Where two clocks don't run alike, what is known of the time is the least that was traced.
        let known_ns = calls.self_ns.saturating_add(calls.off_cpu_ns);
        calls.traced_ns = self.last_ns.saturating_sub(first_ns).max(known_ns);
        calls
    }

    /// It leaves its CPU.
    pub(super) fn switched_out(&mut self, stamp_ns: u64) {
        self.off_since_ns = Some(stamp_ns);
        self.switches = true;
    }

    /// It is on a CPU again.
    pub(super) fn switched_in(&mut self, stamp_ns: u64) {
        self.switches = true;
        let Some(since_ns) = self.off_since_ns.take() else { return };
        let length_ns = stamp_ns.saturating_sub(since_ns);
        self.calls.off_cpu_ns = self.calls.off_cpu_ns.saturating_add(length_ns);
        self.stack.off_cpu(length_ns);
    }

    /// Something of it may be missing.
    pub(super) fn forget_cpu(&mut self) {
        self.off_since_ns = None;
    }

    /// The kernel's count of calls that it could not follow, which only grows.
    pub(super) fn overrun(&mut self, count: u64) {
        let before = self.overrun.replace(count).unwrap_or(count);
        let more = count.saturating_sub(before);
        self.calls.overrun = self.calls.overrun.saturating_add(more);
    }
}
