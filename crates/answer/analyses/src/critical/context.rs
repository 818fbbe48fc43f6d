//! The context in which a CPU wakes threads: a specific interrupt, or the current thread.

use super::cause::{Cause, InterruptKind};
use crate::path::in_hardirq;

/// `TRACE_FLAG_SOFTIRQ` (include/linux/trace_events.h).
const SOFTIRQ: u64 = 0x10;

/// `TIMER_SOFTIRQ` and `HRTIMER_SOFTIRQ` (include/linux/interrupt.h).
const TIMER_SOFTIRQS: [u64; 2] = [1, 8];

/// Whether an event happened in an interrupt, by its `common_flags`.
pub(super) fn in_interrupt(flags: u64) -> bool {
    in_hardirq(flags) || flags & SOFTIRQ != 0
}

/// State of a CPU's interrupts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuContext {
    /// The interrupt that is being handled, and its start.
    irq: Option<(InterruptKind, u64)>,
    /// The last device interrupt since the CPU's last switch.
    last_irq: Option<(InterruptKind, u64)>,
    softirq: Option<(u64, u64)>,
    /// Start of the running timer function.
    timer_since_ns: Option<u64>,
    /// The disk with a completed request in the current interrupt.
    disk: Option<u32>,
}

impl CpuContext {
    pub(super) fn irq(&mut self, number: u32, now_ns: u64) {
        (self.irq, self.disk) = (Some((InterruptKind::Irq(number), now_ns)), None);
        self.last_irq = self.irq;
    }

    pub(super) fn vector(&mut self, at: u8, now_ns: u64) {
        (self.irq, self.disk) = (Some((InterruptKind::Vector(at), now_ns)), None);
    }

    pub(super) fn irq_ends(&mut self) {
        (self.irq, self.disk) = (None, None);
    }

    pub(super) fn softirq(&mut self, number: u64, now_ns: u64) {
        (self.softirq, self.disk) = (Some((number, now_ns)), None);
    }

    pub(super) fn softirq_ends(&mut self) {
        (self.softirq, self.disk) = (None, None);
    }

    pub(super) fn timer(&mut self, now_ns: u64) {
        // Timers of some architectures use device interrupts.
        let since_ns = self.irq.take().map_or(now_ns, |(_, since_ns)| since_ns);
        if self.last_irq.is_some_and(|(_, at_ns)| at_ns == since_ns) {
            self.last_irq = None;
        }
        self.timer_since_ns.get_or_insert(since_ns);
    }

    pub(super) fn timer_ends(&mut self) {
        (self.timer_since_ns, self.disk) = (None, None);
    }

    /// A disk request completes. The interrupt is only known if its start was recorded.
    pub(super) fn disk(&mut self, dev: u32, flags: u64) {
        let is_known = self.interrupt_since_ns().is_some();
        self.disk = Some(dev).filter(|_| is_known && in_interrupt(flags));
    }

    fn interrupt_since_ns(&self) -> Option<u64> {
        let irq = self.irq.map(|(_, since_ns)| since_ns);
        self.timer_since_ns.or(irq).or(self.softirq.map(|(_, since_ns)| since_ns))
    }

    /// The CPU switches threads, so it handles no interrupt.
    pub(super) fn switched(&mut self) {
        *self = Self::default();
    }

    /// The cause of a wake-up on this CPU: `flags` are the event's `common_flags`, `thread` is the current thread.
    pub(super) fn cause(&self, cpu: u16, thread: u32, flags: u64, now_ns: u64) -> Cause {
        let interrupt = |kind, since_ns| Cause::Interrupt { cpu, kind, since_ns };
        let is_soft = flags & SOFTIRQ != 0 && !in_hardirq(flags);
        let irq = |(kind, since_ns)| interrupt(kind, since_ns);
        if let Some((dev, since_ns)) = self.disk.zip(self.interrupt_since_ns())
            && in_interrupt(flags)
        {
            return interrupt(InterruptKind::Disk(dev), since_ns);
        }
        if in_interrupt(flags)
            && let Some(since_ns) = self.timer_since_ns
        {
            return interrupt(InterruptKind::Timer, since_ns);
        }
        if in_hardirq(flags) {
            return self.irq.map_or(interrupt(InterruptKind::Unknown, now_ns), irq);
        }
        let softirq = self.softirq.filter(|_| is_soft);
        match softirq {
            Some((number, since_ns)) if TIMER_SOFTIRQS.contains(&number) => {
                interrupt(InterruptKind::Timer, since_ns)
            }
            // A thread that sends data may run the receiving softirq itself.
            _ if is_soft && self.last_irq.is_some() => {
                self.last_irq.map_or(Cause::Thread(thread), irq)
            }
            _ if thread != 0 => Cause::Thread(thread),
            Some((number, since_ns)) => {
                interrupt(InterruptKind::Softirq(u8::try_from(number).unwrap_or(u8::MAX)), since_ns)
            }
            None => interrupt(InterruptKind::Unknown, now_ns),
        }
    }
}
