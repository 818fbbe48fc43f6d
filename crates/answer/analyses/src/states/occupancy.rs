//! Which thread had a CPU when, by the switches of the scheduler.

use timeline::cycles::SWITCH_TAG;
use timeline::trace_events::{Gap, TraceEvent};

use super::span::OccupantSpan;

#[derive(Clone, Copy, Debug)]
struct Cpu {
    from_ns: u64,
    thread: Option<u32>,
    /// Switches are recorded: only then does the same thread in two events say that it had the CPU
    /// between them.
    switches: bool,
}

/// The CPUs of one recording.
#[derive(Debug, Default)]
pub(super) struct Occupancy {
    /// By number; `None`: it has no events.
    cpus: Vec<Option<Cpu>>,
}

impl Occupancy {
    /// Takes the next event; `emit` gets which thread had its CPU, as far as that is over.
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
        // Where another thread runs than the one that came last, a switch was not seen.
        let had = cpu.thread.filter(|_| cpu.thread == thread && (is_switch || cpu.switches));
        let next = if is_switch { event.thread_value(2) } else { thread };
        cpu.change(event.cpu, now_ns, had, next, emit);
        cpu.switches |= is_switch;
    }

    /// Events of a CPU were lost.
    pub(super) fn gap(&mut self, gap: &Gap, emit: impl FnMut(u16, &OccupantSpan)) {
        if let Some(Some(cpu)) = self.cpus.get_mut(usize::from(gap.cpu)) {
            cpu.change(gap.cpu, gap.from_ns, cpu.thread.filter(|_| cpu.switches), None, emit);
        }
    }

    /// The recording ends. A CPU without further events went on as it did.
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
