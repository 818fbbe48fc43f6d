//! Overlays the states from a guest's recording on the vCPU's states from the host.

use std::collections::VecDeque;

use timeline::VcpuActivity;
use timeline::arch::Isa;
use timeline::cycles::{CycleEnd, Interval, VcpuCycle};

use super::guest::Context;
use super::span::{ExitOf, GuestCpu, StateSink, StateSpan, VcpuRef, VcpuState};

/// Max guest changes that wait for the next entry of their vCPU.
pub(super) const MAX_WAITING: usize = 1 << 12;

/// How well a guest's events fit the times at which its vCPUs were in the guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuestFit {
    /// Changes of the guest's activity: starts and ends of threads and interrupts.
    pub changes: u64,
    /// Changes outside of the guest's time by no more than the clock's bound; they were moved to the nearest time
    /// in the guest.
    pub moved: u64,
    /// Largest distance of a moved change.
    pub most_moved_ns: u64,
    /// Changes farther outside, which are ignored.
    pub outside: u64,
}

impl GuestFit {
    /// Adds the values of another CPU.
    pub(super) fn add(&mut self, other: &Self) {
        self.changes += other.changes;
        self.moved += other.moved;
        self.most_moved_ns = self.most_moved_ns.max(other.most_moved_ns);
        self.outside += other.outside;
    }
}

/// A vCPU, with its guest CPU if the guest was recorded.
#[derive(Debug, Default)]
pub(super) struct GuestOverlay {
    /// The guest CPU, and the bound of its clock.
    pub(super) guest: Option<(GuestCpu, u64)>,
    /// End of the guest's recording; `None` after it: the last state does not continue.
    pub(super) until_ns: Option<u64>,
    /// Guest changes that still have to be overlaid on the host's times.
    waiting: VecDeque<(u64, Context)>,
    now: Option<Context>,
    /// Whether the host has events of the vCPU.
    has_begun: bool,
    /// Whether the host's recording cannot distinguish kernel, user space and waiting.
    is_unsplit: bool,
    /// Whether switches are recorded, so that unsplit time is CPU time.
    has_switches: bool,
    pub(super) placed: GuestFit,
}

/// Level of a cycle, an interval of it, the cycle's exit, and the state.
type Of<'c> = (u8, &'c Interval, Option<ExitOf>, VcpuState);

/// Output of a cycle's spans.
struct SpanOut<'s, S> {
    sink: &'s mut S,
    vcpu: VcpuRef,
    guest: Option<GuestCpu>,
    /// The pending span: the next one may continue it.
    last: Option<StateSpan>,
}

impl<S: StateSink> SpanOut<'_, S> {
    #[inline]
    fn push(&mut self, span: StateSpan) {
        if span.from_ns >= span.to_ns {
            return;
        }
        match &mut self.last {
            // Consecutive spans usually differ in their state, so that is compared first.
            Some(last)
                if last.state == span.state
                    && (StateSpan { from_ns: last.from_ns, ..span })
                        == (StateSpan { to_ns: span.to_ns, ..*last }) =>
            {
                last.to_ns = span.to_ns;
            }
            _ => {
                self.flush();
                self.last = Some(span);
            }
        }
    }

    fn flush(&mut self) {
        let Some(span) = self.last.take() else { return };
        self.sink.vcpu(self.vcpu, &span);
        if let (Some(guest), Some(task)) = (self.guest, span.task) {
            self.sink.task(guest, task, &span);
        }
    }
}

impl GuestOverlay {
    /// `can_split`: the host's recording distinguishes kernel, user space and waiting. `has_switches`: it has
    /// thread switches.
    pub(super) fn new(can_split: bool, has_switches: bool) -> Self {
        Self { is_unsplit: !can_split, has_switches, ..Self::default() }
    }

    /// The guest's activity changes at `stamp_ns`. Returns whether too many changes are waiting.
    pub(super) fn change(&mut self, stamp_ns: u64, context: Context) -> bool {
        self.waiting.push_back((stamp_ns, context));
        self.waiting.len() >= MAX_WAITING
    }

    /// Drops waiting changes: there are too many, and the vCPU is not in its guest.
    pub(super) fn give_up(&mut self) {
        while let Some((_, context)) = self.waiting.pop_front() {
            if self.has_begun {
                self.placed.changes += 1;
                self.placed.outside += 1;
                self.now = None;
            } else {
                self.now = Some(context);
            }
        }
    }

    /// Adds a cycle of the vCPU.
    pub(super) fn cycle(
        &mut self,
        cycle: &VcpuCycle<'_>,
        isa: Isa,
        vcpu: VcpuRef,
        sink: &mut impl StateSink,
    ) {
        let Some((first, last)) = cycle.intervals.first().zip(cycle.intervals.last()) else {
            return;
        };
        if !self.has_begun {
            self.has_begun = true;
            self.catch_up(first.from_ns);
        }
        if self.until_ns.is_some_and(|until_ns| until_ns < last.to_ns)
            && let Some(until_ns) = self.until_ns.take()
        {
            self.waiting.push_back((until_ns, Context::UNKNOWN));
        }
        let guest = self.guest.map(|(guest, _)| guest);
        let mut out = SpanOut { sink, vcpu, guest, last: None };
        let ends_in_entry = matches!(cycle.end, CycleEnd::Entry | CycleEnd::Lost);
        let entry_ns = ends_in_entry.then_some(last.to_ns);
        let exit = cycle.exit.map(|exit| ExitOf {
            start_ns: exit.start_ns,
            code: exit.code,
            isa: exit.isa,
            paired: cycle.end == CycleEnd::Entry,
            guest_pc: exit.guest_pc,
        });
        for (at, interval) in cycle.intervals.iter().enumerate() {
            let state = match state(cycle, interval, isa) {
                VcpuState::ExitKernel if self.is_unsplit => self.not_split(cycle, isa),
                state => state,
            };
            if may_run(interval) && !self.waiting.is_empty() {
                let later = cycle.intervals.get(at + 1..).unwrap_or_default();
                let again = later.iter().find(|next| may_run(next)).map(|next| next.from_ns);
                let source = (cycle.level, interval, exit, state);
                self.lay_over(source, again.or(entry_ns), &mut out);
            } else {
                let source = (cycle.level, interval, exit, state);
                out.push(self.span(source, (interval.from_ns, interval.to_ns)));
            }
        }
        out.flush();
    }

    /// State of an exit's unsplit time: without switches, a waiting exit counts as halted.
    fn not_split(&self, cycle: &VcpuCycle<'_>, isa: Isa) -> VcpuState {
        let waits = cycle.exit.is_some_and(|exit| isa.waits(exit.code));
        if waits && !self.has_switches { VcpuState::Halted } else { VcpuState::NotSplit }
    }

    /// Applies guest changes before the vCPU's first event.
    fn catch_up(&mut self, begin_ns: u64) {
        while self.waiting.front().is_some_and(|(stamp_ns, _)| *stamp_ns < begin_ns) {
            self.now = self.waiting.pop_front().map(|(_, context)| context);
        }
    }

    /// An interval in which the guest may have run, split at guest changes. A change after it belongs to it if it
    /// is nearer to it than to the next such interval.
    fn lay_over<S: StateSink>(
        &mut self,
        source: Of<'_>,
        again_ns: Option<u64>,
        out: &mut SpanOut<'_, S>,
    ) {
        let (_, interval, ..) = source;
        let mut from_ns = interval.from_ns;
        while let Some(&(stamp_ns, context)) = self.waiting.front() {
            let behind_ns = stamp_ns.saturating_sub(interval.to_ns);
            let before_next_ns = again_ns.map(|again_ns| again_ns.saturating_sub(stamp_ns));
            if behind_ns > 0 && before_next_ns.is_some_and(|ahead_ns| ahead_ns < behind_ns) {
                break;
            }
            self.waiting.pop_front();
            let off_ns = behind_ns.max(interval.from_ns.saturating_sub(stamp_ns));
            let at_ns = stamp_ns.clamp(from_ns, interval.to_ns);
            out.push(self.span(source, (from_ns, at_ns)));
            from_ns = at_ns;
            let counts = context == Context::UNKNOWN || self.judged(off_ns);
            self.now = Some(context).filter(|_| counts);
        }
        out.push(self.span(source, (from_ns, interval.to_ns)));
    }

    /// Whether a change at this distance counts.
    fn judged(&mut self, off_ns: u64) -> bool {
        let bound_ns = self.guest.map_or(0, |(_, bound_ns)| bound_ns);
        self.placed.changes += 1;
        if off_ns > bound_ns {
            self.placed.outside += 1;
            return false;
        }
        if off_ns > 0 {
            self.placed.moved += 1;
            self.placed.most_moved_ns = self.placed.most_moved_ns.max(off_ns);
        }
        true
    }

    #[inline]
    fn span(&self, source: Of<'_>, (from_ns, to_ns): (u64, u64)) -> StateSpan {
        let (level, interval, exit, state) = source;
        let context = self.now.unwrap_or(Context::UNKNOWN);
        // The guest kernel's events do not show the activity of a nested guest.
        let is_level1_guest = state == VcpuState::Guest && level == 1;
        StateSpan {
            from_ns,
            to_ns,
            state: if is_level1_guest { context.state } else { state },
            level,
            cpu: interval.cpu,
            exit: exit.filter(|_| interval.in_exit),
            task: context.task,
        }
    }
}

/// Whether the guest may have run in the interval.
fn may_run(interval: &Interval) -> bool {
    matches!(interval.activity, VcpuActivity::Guest | VcpuActivity::Unknown)
}

fn state(cycle: &VcpuCycle<'_>, interval: &Interval, isa: Isa) -> VcpuState {
    let halts = || cycle.halted || cycle.exit.is_some_and(|exit| isa.waits(exit.code));
    match interval.activity {
        VcpuActivity::Guest => VcpuState::Guest,
        VcpuActivity::BeforeExit => VcpuState::BeforeExit,
        VcpuActivity::Kernel => VcpuState::ExitKernel,
        VcpuActivity::User => VcpuState::ExitUser,
        VcpuActivity::HaltPoll => VcpuState::HaltPoll,
        VcpuActivity::Preempted => VcpuState::Preempted,
        VcpuActivity::Waiting => VcpuState::Waiting,
        VcpuActivity::Blocked if interval.in_exit && !interval.in_vmm && halts() => {
            VcpuState::Halted
        }
        VcpuActivity::Blocked => VcpuState::Blocked,
        VcpuActivity::Unknown => VcpuState::Unknown,
    }
}

#[cfg(test)]
mod tests;
