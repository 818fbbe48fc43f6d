//! Sums over handlers: by machine and handler, and by CPU or interrupted thread if asked.

use std::collections::BTreeMap;

use super::By;
use crate::distribution::Distribution;

/// One run of a handler, all on its recording's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handler {
    /// See [`super::sources::Sources`].
    pub(super) source: u8,
    /// Number of the interrupt, or of the soft one.
    pub(super) number: u64,
    /// The CPU, and the thread that had it.
    pub(super) cpu: u16,
    pub(super) thread: u32,
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    /// What handlers that interrupted it took.
    pub(super) within_ns: u64,
    /// For how long its vCPU was not in the guest, and of that while handlers within it were open.
    pub(super) away_ns: u64,
    pub(super) away_within_ns: u64,
    /// The vCPU's states are known up to its end.
    pub(super) is_placed: bool,
    /// For how long a soft interrupt was due.
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
    /// Runs that began.
    pub run_count: u64,
    /// From beginning to end, with what interrupted them: of each run that was seen ending.
    pub durations: Distribution,
    /// Without the handlers that interrupted them.
    pub own_ns: u64,
    /// Runs over which the states of the vCPU are known: the host's recording is there.
    pub placed: u64,
    /// Of `own_ns` of those, what the vCPU was not in the guest: the host handled exits, or had taken the CPU away.
    pub own_away_ns: u64,
    /// The most that one run lost so, with what interrupted it.
    pub longest_away_ns: u64,
    /// Of a soft interrupt: from when it became due to its beginning.
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

/// What sums are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) recording: u16,
    pub(super) source: u8,
    pub(super) number: u64,
    /// The CPU or the thread, as asked.
    pub(super) part: Option<u32>,
}

/// Rows of sums, at most: a recording that is made up has no more either.
const MAX_ROWS: usize = 1 << 13;

#[derive(Debug)]
pub(super) struct AllSums {
    pub(super) by: By,
    pub(super) rows: BTreeMap<Key, HandlerSums>,
    /// Runs that found no room for another row.
    pub(super) left_out: u64,
}

impl AllSums {
    pub(super) fn new(by: By) -> Self {
        Self { by, rows: BTreeMap::new(), left_out: 0 }
    }

    /// A run that began.
    pub(super) fn begin(&mut self, recording: u16, handler: &Handler) {
        match self.row(recording, handler) {
            Some(row) => row.run_count = row.run_count.saturating_add(1),
            None => self.left_out = self.left_out.saturating_add(1),
        }
    }

    /// One that was seen ending.
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
