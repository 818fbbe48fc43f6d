//! Threads on the CPUs that vCPU threads wait for in the run queue.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use super::spread::Spread;
use crate::recorders::is_recorder;
use crate::states::{GuestCpu, OccupantSpan, StateSpan, VcpuRef, VcpuState};

/// A thread that ran on a CPU while vCPUs of a VM waited for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenCpu {
    /// Index of the recording.
    pub recording: usize,
    /// The waiting VM.
    pub vm: String,
    /// When the VM was first seen, relative to the start of the recordings.
    pub vm_begins_ns: u64,
    /// Total run-queue wait of the VM's vCPUs.
    pub vm_waited_ns: u64,
    /// The running thread; 0 if the CPU was idle until the vCPU got it.
    pub thread: u32,
    pub name: Option<String>,
    /// Its running time during the waits.
    pub ns: u64,
    /// Part of `ns`: the vCPU was preempted, not woken.
    pub preempted_ns: u64,
    pub spread: Spread,
}

impl TakenCpu {
    /// Whether the thread belongs to the recorder.
    #[must_use]
    pub fn is_recorder(&self) -> bool {
        self.name.as_deref().is_some_and(is_recorder)
    }
}

/// Running time of a thread during a vCPU's waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Had {
    pub(super) ns: u64,
    /// Part of `ns` in which the vCPU had been preempted.
    pub(super) preempted_ns: u64,
    pub(super) spread: Spread,
}

/// By waiting vCPU and running thread.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) all: BTreeMap<(VcpuRef, u32), Had>,
    /// Start of the recordings.
    begun_ns: u64,
}

impl Sums {
    fn add(&mut self, thread: u32, wait: &Wait, from_ns: u64, ns: u64) {
        let after_ns = self.after_beginning_ns(from_ns);
        let had = self.all.entry((wait.vcpu, thread)).or_default();
        had.ns = had.ns.saturating_add(ns);
        if wait.is_preempted {
            had.preempted_ns = had.preempted_ns.saturating_add(ns);
        }
        had.spread.add(after_ns, ns);
    }

    fn after_beginning_ns(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.begun_ns)
    }
}

/// Max stored spans per CPU for pending waits.
const MAX_KEPT: usize = 1 << 14;

/// Matches vCPUs' waits with the threads that ran on their CPUs.
#[derive(Debug, Default)]
pub(super) struct Takers {
    cpus: BTreeMap<GuestCpu, Cpu>,
    /// By waiting vCPU and running thread.
    pub(super) sums: Sums,
}

#[derive(Debug, Default)]
struct Cpu {
    ran: VecDeque<OccupantSpan>,
    /// Waits that end after the last known span; the earliest end is first.
    waits: BinaryHeap<Reverse<Wait>>,
}

/// A wait of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wait {
    to_ns: u64,
    from_ns: u64,
    vcpu: VcpuRef,
    is_preempted: bool,
}

impl Takers {
    /// `begun_ns` is the start of the recordings.
    pub(super) fn new(begun_ns: u64) -> Self {
        Self { sums: Sums { begun_ns, ..Sums::default() }, ..Self::default() }
    }

    /// A time relative to the start of the recordings.
    pub(super) fn after_beginning_ns(&self, at_ns: u64) -> u64 {
        self.sums.after_beginning_ns(at_ns)
    }

    pub(super) fn wait(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        let at = GuestCpu { recording: vcpu.recording, cpu: span.cpu };
        let cpu = self.cpus.entry(at).or_default();
        let is_preempted = span.state == VcpuState::Preempted;
        let wait = Wait { to_ns: span.to_ns, from_ns: span.from_ns, vcpu, is_preempted };
        if cpu.ran.back().is_some_and(|last| last.to_ns >= wait.to_ns) {
            cpu.settle(wait, &mut self.sums);
        } else {
            cpu.waits.push(Reverse(wait));
        }
    }

    /// A thread ran on a CPU.
    pub(super) fn ran(&mut self, at: GuestCpu, span: &OccupantSpan) {
        let cpu = self.cpus.entry(at).or_default();
        cpu.ran.push_back(*span);
        if cpu.ran.len() > MAX_KEPT {
            cpu.ran.pop_front();
        }
        cpu.settle_until(span.to_ns, &mut self.sums);
    }

    /// Settles all pending waits.
    pub(super) fn finish(&mut self) {
        for cpu in self.cpus.values_mut() {
            cpu.settle_until(u64::MAX, &mut self.sums);
        }
    }
}

impl Cpu {
    /// Settles the waits that end before `reached_ns`.
    fn settle_until(&mut self, reached_ns: u64, sums: &mut Sums) {
        while self.waits.peek().is_some_and(|wait| wait.0.to_ns <= reached_ns) {
            if let Some(Reverse(wait)) = self.waits.pop() {
                self.settle(wait, sums);
            }
        }
    }

    fn settle(&self, wait: Wait, sums: &mut Sums) {
        let Wait { to_ns, from_ns, .. } = wait;
        for span in self.ran.iter().rev().take_while(|span| span.to_ns > from_ns) {
            let begun_ns = span.from_ns.max(from_ns);
            let ns = span.to_ns.min(to_ns).saturating_sub(begun_ns);
            if let Some(thread) = span.thread.filter(|_| ns > 0) {
                sums.add(thread, &wait, begun_ns, ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: GuestCpu = GuestCpu { recording: 0, cpu: 3 };
    const VCPU: VcpuRef = VcpuRef { recording: 0, index: 1 };

    fn ran(thread: u32, from_ns: u64, to_ns: u64) -> OccupantSpan {
        OccupantSpan { from_ns, to_ns, thread: Some(thread) }
    }

    fn waited(from_ns: u64, to_ns: u64) -> StateSpan {
        let (level, state) = (1, VcpuState::Preempted);
        StateSpan { from_ns, to_ns, state, level, cpu: CPU.cpu, exit: None, task: None }
    }

    fn sums(takers: &Takers) -> Vec<(u32, u64)> {
        takers.sums.all.iter().map(|((_, thread), had)| (*thread, had.ns)).collect()
    }

    #[test]
    fn a_wait_is_of_those_that_ran_meanwhile_whichever_is_known_first() {
        let spans = [ran(7, 0, 100), ran(8, 100, 130), ran(0, 130, 150), ran(9, 150, 400)];
        let mut before = Takers::default();
        before.wait(VCPU, &waited(90, 150));
        spans.iter().for_each(|span| before.ran(CPU, span));
        let mut after = Takers::default();
        spans.iter().for_each(|span| after.ran(CPU, span));
        after.wait(VCPU, &waited(90, 150));
        let expected = [(0, 20), (7, 10), (8, 30)];
        assert_eq!((sums(&before), sums(&after)), (expected.to_vec(), expected.to_vec()));
    }

    #[test]
    fn what_is_not_known_is_nobodys() {
        let mut takers = Takers::default();
        takers.ran(CPU, &OccupantSpan { thread: None, ..ran(0, 0, 50) });
        takers.ran(CPU, &ran(7, 50, 80));
        takers.wait(VCPU, &waited(20, 200));
        takers.finish();
        assert_eq!(sums(&takers), [(7, 30)]);
    }
}
