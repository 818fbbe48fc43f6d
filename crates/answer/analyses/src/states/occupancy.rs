//! The current thread of each CPU, by thread switches.

use timeline::cycles::SWITCH_TAG;
use timeline::trace_events::{Gap, TraceEvent};

use super::span::OccupantSpan;

#[derive(Clone, Copy, Debug)]
struct Cpu {
    from_ns: u64,
    thread: Option<u32>,
    /// Switches are recorded: only then do two events of the same thread prove that it had the CPU in between.
    switches: bool,
}

#[derive(Debug, Default)]
pub(super) struct Occupancy {
    /// By number; `None` if the CPU has no events.
    cpus: Vec<Option<Cpu>>,
}

impl Occupancy {
    /// Handles the next event; `emit` receives completed spans of its CPU.
    #[inline]
    pub(super) fn event(&mut self, event: &TraceEvent, emit: impl FnMut(u16, &OccupantSpan)) {
        let (thread, now_ns) = (Some(event.thread), event.stamp_ns);
        let number = usize::from(event.cpu);
        if number >= self.cpus.len() {
            self.cpus.resize(number + 1, None);
        }
        let Some(cpu) = self.cpus.get_mut(number) else { return };
        let cpu = cpu.get_or_insert(Cpu { from_ns: now_ns, thread, switches: false });
        let is_switch = event.tag == SWITCH_TAG;
        if !is_switch && cpu.thread == thread {
            return;
        }
        // If the current thread differs from the last one switched in, a switch was lost.
        let had = cpu.thread.filter(|_| cpu.thread == thread && (is_switch || cpu.switches));
        let next = if is_switch { event.thread_value(2) } else { thread };
        cpu.change(event.cpu, now_ns, had, next, emit);
        cpu.switches |= is_switch;
    }

    /// Handles a loss on a CPU.
    pub(super) fn gap(&mut self, gap: &Gap, emit: impl FnMut(u16, &OccupantSpan)) {
        if let Some(Some(cpu)) = self.cpus.get_mut(usize::from(gap.cpu)) {
            cpu.change(gap.cpu, gap.from_ns, cpu.thread.filter(|_| cpu.switches), None, emit);
        }
    }

    /// Ends the recording. A CPU without further events keeps its thread.
    pub(super) fn finish(self, end_ns: u64, mut emit: impl FnMut(u16, &OccupantSpan)) {
        for (number, cpu) in self.cpus.into_iter().enumerate() {
            let (Some(mut cpu), Ok(number)) = (cpu, u16::try_from(number)) else { continue };
            cpu.change(number, end_ns, cpu.thread.filter(|_| cpu.switches), None, &mut emit);
        }
    }
}

impl Cpu {
    fn change(
        &mut self,
        number: u16,
        now_ns: u64,
        had: Option<u32>,
        next: Option<u32>,
        mut emit: impl FnMut(u16, &OccupantSpan),
    ) {
        if now_ns > self.from_ns {
            emit(number, &OccupantSpan { from_ns: self.from_ns, to_ns: now_ns, thread: had });
            self.from_ns = now_ns;
        }
        self.thread = next;
    }
}
