//! Whether the clock of a stream runs back: within a block, and from one block to the next.
//!
//! In the kernel it never does. Where it does in a file, the times after the step can't be put in
//! order with those before: their events count, but nothing is timed by them ([`ftrace::ringbuf::StampOrder`]
//! says which pages are meant).

use ftrace::ringbuf::{PageTime, RecordDamage, StampOrder, StepBack};
use sources::Damage;

/// The stamps of one block as recorded, before any correction.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockStamps {
    order: StampOrder,
    /// The first page: its stamp, and where it lies.
    first: Option<(u64, u64)>,
    /// Where the last page ended, in order or not.
    ended: Option<u64>,
}

impl BlockStamps {
    /// Judges the block's next page, at `offset`: it goes from `begin` to `end`, `read` is how reading
    /// its records ended, and `next` the stamp of the page after it.
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
    /// Takes the next block. `Some` if it begins before what the stream has reached; with the damage
    /// to be counted, if the clock ran back between this block and the one before.
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

/// The damage that a step back is.
#[must_use]
pub fn step(cpu: u32, offset: u64, step: StepBack) -> Damage {
    Damage::on_cpu(cpu, offset, step.to_string())
}
