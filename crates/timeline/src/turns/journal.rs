//! What one vCPU did since its turn began.

use super::{Stretch, Turn, TurnEnd, TurnSink, doing};
use crate::exit_span::ExitSpan;
use crate::vcpu::{Doing, VcpuThread};

/// A turn with more stretches than this is told in pieces.
const MOST_STRETCHES: usize = 1 << 16;

/// The stretches of one vCPU that are yet to be told.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// The vCPU's.
    pub(super) index: usize,
    stretches: Vec<Stretch>,
    /// All before is told or written down; `None` before the vCPU's first event.
    last_ns: Option<u64>,
    /// Where its thread ran last.
    pub(super) cpu: u16,
    /// Stretches from here on belong to the exit.
    exit_at: Option<usize>,
    /// Stretches before this are not cut any more by what they tell of polling.
    poll_at: usize,
    halted: bool,
}

impl Journal {
    /// The vCPU's first event, or the first after its thread was another vCPU's.
    pub(super) fn begin(&mut self, now_ns: u64) {
        if self.last_ns.is_some_and(|last_ns| last_ns < now_ns) && self.stretches.is_empty() {
            self.push(now_ns, Doing::Unknown, false);
        }
        self.last_ns.get_or_insert(now_ns);
    }

    /// The vCPU went on as it did up to a moment.
    pub(super) fn goes_on(&mut self, vcpu: &VcpuThread, now_ns: u64) {
        self.push(now_ns, vcpu.doing(), vcpu.is_in_user_space());
    }

    fn push(&mut self, to_ns: u64, doing: Doing, in_vmm: bool) {
        let from_ns = self.last_ns.unwrap_or(to_ns);
        if to_ns <= from_ns {
            return;
        }
        self.last_ns = Some(to_ns);
        let (in_exit, cpu) = (self.exit_at.is_some(), self.cpu);
        let next = Stretch { from_ns, to_ns, doing, in_vmm, in_exit, cpu };
        let fresh = self.stretches.len() > self.poll_at.max(self.exit_at.unwrap_or(0));
        match self.stretches.last_mut().filter(|_| fresh) {
            Some(last)
                if Stretch { from_ns: last.from_ns, to_ns, ..*last } == joined(last, &next) =>
            {
                last.to_ns = to_ns;
            }
            _ => self.stretches.push(next),
        }
    }

    /// The vCPU has left its guest. What is written down happened before that.
    pub(super) fn exits(&mut self, window_lost: bool) {
        if window_lost {
            self.forget_all();
        }
        self.exit_at = Some(self.stretches.len());
        self.poll_at = self.stretches.len();
    }

    /// Nothing is known of all that was written down.
    pub(super) fn forget_all(&mut self) {
        forget(&mut self.stretches);
    }

    /// Nothing is known of what was written down since the exit.
    pub(super) fn forget_exit(&mut self) {
        forget(self.stretches.get_mut(self.exit_at.unwrap_or(0)..).unwrap_or_default());
    }

    /// Nothing is known since the last entry or exit.
    pub(super) fn forget_last(&mut self) {
        match self.exit_at {
            Some(_) => self.forget_exit(),
            None => self.forget_all(),
        }
    }

    /// Of what was written down, the kernel's part between two moments was spent polling.
    pub(super) fn woke_up(&mut self, polled_ns: Option<(u64, u64)>, waited: bool) {
        self.halted |= waited;
        if let Some((from_ns, to_ns)) = polled_ns {
            for one in self.stretches.split_off(self.poll_at.min(self.stretches.len())) {
                let polls =
                    one.doing == Doing::Kernel && one.to_ns > from_ns && one.from_ns < to_ns;
                if !polls {
                    self.stretches.push(one);
                    continue;
                }
                let (begin_ns, end_ns) = (one.from_ns.max(from_ns), one.to_ns.min(to_ns));
                let pieces = [
                    Stretch { to_ns: begin_ns, ..one },
                    Stretch { from_ns: begin_ns, to_ns: end_ns, doing: Doing::HaltPoll, ..one },
                    Stretch { from_ns: end_ns, ..one },
                ];
                self.stretches.extend(pieces.iter().filter(|piece| piece.from_ns < piece.to_ns));
            }
        }
        self.poll_at = self.stretches.len();
    }

    pub(super) fn is_long(&self) -> bool {
        self.stretches.len() > MOST_STRETCHES
    }

    /// Tells a turn that is not at its end.
    pub(super) fn tell_part(&mut self, vcpu: &VcpuThread, thread: u32, sink: &mut impl TurnSink) {
        if doing(vcpu) == Doing::Unknown {
            self.forget_last();
        }
        let in_exit = self.exit_at.is_some();
        self.tell(thread, vcpu.level(), vcpu.open_exit(), TurnEnd::GoesOn, sink);
        self.exit_at = in_exit.then_some(0);
    }

    /// Tells the turn, and begins anew.
    pub(super) fn tell(
        &mut self,
        thread: u32,
        level: u8,
        exit: Option<&ExitSpan>,
        end: TurnEnd,
        sink: &mut impl TurnSink,
    ) {
        let (vcpu, halted) = (self.index, self.halted);
        if !self.stretches.is_empty() {
            let stretches = self.stretches.as_slice();
            sink.turn(&Turn { vcpu, thread, level, stretches, exit, halted, end });
        }
        self.stretches.clear();
        (self.exit_at, self.poll_at, self.halted) = (None, 0, false);
    }
}

/// The second of two stretches, made to begin with the first one.
fn joined(first: &Stretch, second: &Stretch) -> Stretch {
    Stretch { from_ns: first.from_ns, ..*second }
}

fn forget(stretches: &mut [Stretch]) {
    for one in stretches {
        (one.doing, one.in_vmm) = (Doing::Unknown, false);
    }
}
