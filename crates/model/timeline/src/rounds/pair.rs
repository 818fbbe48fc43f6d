//! Two decoders over the same blocks, which are read and unpacked once.

use std::ops::ControlFlow;

use sources::{Block, Damage};

use super::{Batch, Consume, Decode, Input};

impl<A: Decode, B: Decode> Decode for (&A, &B) {
    const DECODERS: u64 = A::DECODERS + B::DECODERS;

    type Batch = (A::Batch, B::Batch);

    fn decode(&self, index: usize, input: Input<'_>, block: &Block<'_>, batch: &mut Self::Batch) {
        self.0.decode(index, input, block, &mut batch.0);
        self.1.decode(index, input, block, &mut batch.1);
    }
}

impl<A: Batch, B: Batch> Batch for (A, B) {
    fn clear(&mut self) {
        self.0.clear();
        self.1.clear();
    }

    fn last_stamp_ns(&self) -> Option<u64> {
        self.0.last_stamp_ns().max(self.1.last_stamp_ns())
    }

    fn set_unreadable(&mut self, damage: Damage) {
        self.0.set_unreadable(damage.clone());
        self.1.set_unreadable(damage);
    }
}

/// Puts spent batches of two kinds together again, with empty ones where one has more.
pub(crate) fn pair_up<A: Default, B: Default>(
    mut first: Vec<A>,
    mut second: Vec<B>,
    spent: &mut Vec<(A, B)>,
) {
    let pairs = first.len().max(second.len());
    first.resize_with(pairs, A::default);
    second.resize_with(pairs, B::default);
    spent.extend(first.into_iter().zip(second));
}

/// The two take what was decoded at the same time, on a thread each.
impl<A: Batch, B: Batch, C: Consume<A>, D: Consume<B>> Consume<(A, B)> for (&mut C, &mut D) {
    fn take(&mut self, input: usize, batch: (A, B)) {
        self.0.take(input, batch.0);
        self.1.take(input, batch.1);
    }

    /// Goes on while either wants more.
    fn advance(&mut self, horizon_ns: u64, spent: &mut Vec<(A, B)>) -> ControlFlow<()> {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let flows: [_; 2] = rayon::join(
            || self.0.advance(horizon_ns, &mut first),
            || self.1.advance(horizon_ns, &mut second),
        )
        .into();
        pair_up(first, second, spent);
        if flows.iter().all(ControlFlow::is_break) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}
