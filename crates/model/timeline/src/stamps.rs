//! Detects a stream's clock running back, within a block and between blocks.
//!
//! In the kernel this never happens. If it happens in a file, times after the step back cannot be
//! ordered with those before: events are counted, but not used for times
//! ([`ftrace::ringbuf::StampOrder`] identifies the affected pages).

use ftrace::ringbuf::{PageTime, RecordDamage, StampOrder, StepBack};
use sources::Damage;

/// The time stamps of a block as recorded, before any correction.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockStamps {
    order: StampOrder,
    /// Stamp and offset of the first page.
    first: Option<(u64, u64)>,
    /// End time of the last page, in order or not.
    ended: Option<u64>,
}

impl BlockStamps {
    /// Checks the block's next page at `offset`, which extends from `begin` to `end`; `read` is the
    /// result of reading its records, and `next` the stamp of the following page.
    pub fn page(
        &mut self,
        offset: u64,
        (begin, end): (u64, u64),
        read: Result<(), RecordDamage>,
        next: Option<u64>,
    ) -> PageTime {
        self.first.get_or_insert((begin, offset));
        self.ended = Some(end);
        let runs_back = matches!(read, Err(RecordDamage::RunsBack(_)));
        self.order.page(begin, end, runs_back, next)
    }
}

/// The blocks of one stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamStamps {
    reached: Option<u64>,
    ended: Option<u64>,
}

impl StreamStamps {
    /// Adds the next block. `Some` if it begins before the time that the stream has reached; the
    /// inner value is the damage if the clock ran back between the two blocks.
    pub fn block(&mut self, cpu: u32, block: &BlockStamps) -> Option<Option<Damage>> {
        let reached = self.reached;
        let ended = self.ended;
        self.ended = block.ended.or(ended);
        self.reached = reached.max(block.order.reached());
        let (begin, offset) = block.first?;
        let from = ended.filter(|&ended| begin < ended);
        let damage = from.map(|from| step(cpu, offset, StepBack { from, to: begin }));
        reached.is_some_and(|reached| begin < reached).then_some(damage)
    }
}

/// The damage record for a step back.
#[must_use]
pub fn step(cpu: u32, offset: u64, step: StepBack) -> Damage {
    Damage::on_cpu(cpu, offset, step.to_string())
}
