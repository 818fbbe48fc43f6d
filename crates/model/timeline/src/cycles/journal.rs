//! The activity of one vCPU since its cycle began.

use super::{CycleEnd, CycleSink, Interval, VcpuCycle, activity};
use crate::exit_span::ExitSpan;
use crate::vcpu::{VcpuActivity, VcpuThread};

/// A cycle with more intervals is emitted in parts.
const MAX_INTERVALS: usize = 1 << 16;

/// The intervals of one vCPU that have not been emitted.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// Index of the vCPU.
    pub(super) index: usize,
    intervals: Vec<Interval>,
    /// All time before this is recorded; `None` before the vCPU's first event.
    last_ns: Option<u64>,
    /// The CPU on which its thread ran last.
    pub(super) cpu: u16,
    /// Intervals from here on belong to the exit.
    exit_at: Option<usize>,
    /// Later reports of halt polling do not change intervals before this.
    poll_at: usize,
    halted: bool,
}

impl Journal {
    /// The vCPU's first event, or the first after its thread ran another vCPU.
    pub(super) fn begin(&mut self, now_ns: u64) {
        if self.last_ns.is_some_and(|last_ns| last_ns < now_ns) && self.intervals.is_empty() {
            self.push(now_ns, VcpuActivity::Unknown, false);
        }
        self.last_ns.get_or_insert(now_ns);
    }

    /// The vCPU's activity did not change up to `now_ns`.
    pub(super) fn continue_to(&mut self, vcpu: &VcpuThread, now_ns: u64) {
        self.push(now_ns, vcpu.activity(), vcpu.is_in_user_space());
    }

    fn push(&mut self, to_ns: u64, activity: VcpuActivity, in_vmm: bool) {
        let from_ns = self.last_ns.unwrap_or(to_ns);
        if to_ns <= from_ns {
            return;
        }
        self.last_ns = Some(to_ns);
        let (in_exit, cpu) = (self.exit_at.is_some(), self.cpu);
        let next = Interval { from_ns, to_ns, activity, in_vmm, in_exit, cpu };
        let fresh = self.intervals.len() > self.poll_at.max(self.exit_at.unwrap_or(0));
        match self.intervals.last_mut().filter(|_| fresh) {
            Some(last)
                if Interval { from_ns: last.from_ns, to_ns, ..*last } == joined(last, &next) =>
            {
                last.to_ns = to_ns;
            }
            _ => self.intervals.push(next),
        }
    }

    /// The vCPU has exited its guest. All intervals so far were before the exit.
    pub(super) fn exits(&mut self, window_lost: bool) {
        if window_lost {
            self.forget_all();
        }
        self.exit_at = Some(self.intervals.len());
        self.poll_at = self.intervals.len();
    }

    /// Marks all intervals as unknown.
    pub(super) fn forget_all(&mut self) {
        forget(&mut self.intervals);
    }

    /// Marks the intervals since the exit as unknown.
    pub(super) fn forget_exit(&mut self) {
        forget(self.intervals.get_mut(self.exit_at.unwrap_or(0)..).unwrap_or_default());
    }

    /// Marks the time since the last entry or exit as unknown.
    pub(super) fn forget_last(&mut self) {
        match self.exit_at {
            Some(_) => self.forget_exit(),
            None => self.forget_all(),
        }
    }

    /// Marks the kernel's part between two times as halt polling.
    pub(super) fn woke_up(&mut self, polled_ns: Option<(u64, u64)>, waited: bool) {
        self.halted |= waited;
        if let Some((from_ns, to_ns)) = polled_ns {
            for interval in self.intervals.split_off(self.poll_at.min(self.intervals.len())) {
                let polls = interval.activity == VcpuActivity::Kernel
                    && interval.to_ns > from_ns
                    && interval.from_ns < to_ns;
                if !polls {
                    self.intervals.push(interval);
                    continue;
                }
                let (begin_ns, end_ns) = (interval.from_ns.max(from_ns), interval.to_ns.min(to_ns));
                let pieces = [
                    Interval { to_ns: begin_ns, ..interval },
                    Interval {
                        from_ns: begin_ns,
                        to_ns: end_ns,
                        activity: VcpuActivity::HaltPoll,
                        ..interval
                    },
                    Interval { from_ns: end_ns, ..interval },
                ];
                self.intervals.extend(pieces.iter().filter(|piece| piece.from_ns < piece.to_ns));
            }
        }
        self.poll_at = self.intervals.len();
    }

    pub(super) fn is_long(&self) -> bool {
        self.intervals.len() > MAX_INTERVALS
    }

    /// Emits a part of an unfinished cycle.
    pub(super) fn emit_part(&mut self, vcpu: &VcpuThread, thread: u32, sink: &mut impl CycleSink) {
        if activity(vcpu) == VcpuActivity::Unknown {
            self.forget_last();
        }
        let in_exit = self.exit_at.is_some();
        self.emit(thread, vcpu.level(), vcpu.open_exit(), CycleEnd::Partial, sink);
        self.exit_at = in_exit.then_some(0);
    }

    /// Emits the cycle, and starts the next one.
    pub(super) fn emit(
        &mut self,
        thread: u32,
        level: u8,
        exit: Option<&ExitSpan>,
        end: CycleEnd,
        sink: &mut impl CycleSink,
    ) {
        let (vcpu, halted) = (self.index, self.halted);
        if !self.intervals.is_empty() {
            let intervals = self.intervals.as_slice();
            sink.cycle(&VcpuCycle { vcpu, thread, level, intervals, exit, halted, end });
        }
        self.intervals.clear();
        (self.exit_at, self.poll_at, self.halted) = (None, 0, false);
    }
}

/// The second of two adjacent intervals, extended to the start of the first.
fn joined(first: &Interval, second: &Interval) -> Interval {
    Interval { from_ns: first.from_ns, ..*second }
}

fn forget(intervals: &mut [Interval]) {
    for interval in intervals {
        (interval.activity, interval.in_vmm) = (VcpuActivity::Unknown, false);
    }
}
