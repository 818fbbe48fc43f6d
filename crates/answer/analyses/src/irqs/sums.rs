//! Sums over handlers by machine and handler, and optionally by CPU or interrupted thread.

use std::collections::BTreeMap;

use super::By;
use crate::distribution::Distribution;

/// One run of a handler, on its recording's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handler {
    /// See [`super::sources::Sources`].
    pub(super) source: u8,
    /// Number of the interrupt or soft interrupt.
    pub(super) number: u64,
    /// The CPU, and its current thread.
    pub(super) cpu: u16,
    pub(super) thread: u32,
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    /// Time of nested handlers.
    pub(super) within_ns: u64,
    /// Time in which the vCPU was not in the guest, and the part of it during nested handlers.
    pub(super) away_ns: u64,
    pub(super) away_within_ns: u64,
    /// Whether the vCPU's states are known up to its end.
    pub(super) is_placed: bool,
    /// Delay from raising a soft interrupt to its handler.
    pub(super) due_ns: Option<u64>,
}

impl Handler {
    pub(super) const fn duration_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// Sums over runs of handlers.
#[derive(Clone, Debug, Default)]
pub struct HandlerSums {
    /// Number of runs that started.
    pub run_count: u64,
    /// Durations of runs with an end, including nested handlers.
    pub durations: Distribution,
    /// Time without nested handlers.
    pub own_ns: u64,
    /// Runs with known vCPU states, from the host's recording.
    pub placed: u64,
    /// Part of those runs' own time in which the vCPU was not in the guest: the host handled exits, or had
    /// preempted it.
    pub own_away_ns: u64,
    /// The longest such time of one run, including nested handlers.
    pub longest_away_ns: u64,
    /// Delays of soft interrupts, from raising to start.
    pub delays: Distribution,
}

impl HandlerSums {
    fn add(&mut self, handler: &Handler) {
        let duration_ns = handler.duration_ns();
        self.durations.add(duration_ns);
        self.own_ns = self.own_ns.saturating_add(duration_ns.saturating_sub(handler.within_ns));
        if handler.is_placed {
            let own_ns = handler.away_ns.saturating_sub(handler.away_within_ns);
            self.placed = self.placed.saturating_add(1);
            self.own_away_ns = self.own_away_ns.saturating_add(own_ns);
            self.longest_away_ns = self.longest_away_ns.max(handler.away_ns);
        }
        handler.due_ns.into_iter().for_each(|due_ns| self.delays.add(due_ns));
    }
}

/// Identity of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) recording: u16,
    pub(super) source: u8,
    pub(super) number: u64,
    /// The CPU or the thread, depending on the grouping.
    pub(super) part: Option<u32>,
}

/// Max rows, which also limits memory for invalid recordings.
const MAX_ROWS: usize = 1 << 13;

#[derive(Debug)]
pub(super) struct AllSums {
    pub(super) by: By,
    pub(super) rows: BTreeMap<Key, HandlerSums>,
    /// Runs without a row, beyond [`MAX_ROWS`].
    pub(super) left_out: u64,
}

impl AllSums {
    pub(super) fn new(by: By) -> Self {
        Self { by, rows: BTreeMap::new(), left_out: 0 }
    }

    /// A run started.
    pub(super) fn begin(&mut self, recording: u16, handler: &Handler) {
        match self.row(recording, handler) {
            Some(row) => row.run_count = row.run_count.saturating_add(1),
            None => self.left_out = self.left_out.saturating_add(1),
        }
    }

    /// A run ended.
    pub(super) fn add(&mut self, recording: u16, handler: &Handler) {
        if let Some(row) = self.row(recording, handler) {
            row.add(handler);
        }
    }

    fn row(&mut self, recording: u16, handler: &Handler) -> Option<&mut HandlerSums> {
        let part = match self.by {
            By::Handler => None,
            By::Cpu => Some(handler.cpu.into()),
            By::Thread => Some(handler.thread),
        };
        let key = Key { recording, source: handler.source, number: handler.number, part };
        let has_room = self.rows.len() < MAX_ROWS || self.rows.contains_key(&key);
        has_room.then(|| self.rows.entry(key).or_default())
    }
}
