//! Memory of batches: what two consumers give back at different times does not pile up.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use sources::{Block, Damage};
use timeline::reading::{BlockTask, Reading};
use timeline::rounds::{self, Batch, Consume, Decode, Input};

static ALIVE: AtomicUsize = AtomicUsize::new(0);

/// Knows how many of its kind there are.
struct Counted;

impl Default for Counted {
    fn default() -> Self {
        ALIVE.fetch_add(1, Relaxed);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Relaxed);
    }
}

impl Batch for Counted {
    fn clear(&mut self) {}

    fn last_stamp_ns(&self) -> Option<u64> {
        None
    }

    fn set_unreadable(&mut self, _: Damage) {}
}

struct Nothing;

impl Decode for Nothing {
    type Batch = Counted;

    fn decode(&self, _: usize, _: Input<'_>, _: &Block<'_>, _: &mut Counted) {}
}

/// Gives back what it has in every round, or in every other one.
#[derive(Default)]
struct Holds {
    waits: bool,
    rounds: usize,
    most_alive: usize,
    held: Vec<Counted>,
    largest: usize,
    batches_taken: usize,
}

impl Consume<Counted> for Holds {
    fn take(&mut self, _: usize, batch: Counted) {
        self.held.push(batch);
        self.batches_taken += 1;
    }

    fn advance(&mut self, _: u64, spent: &mut Vec<Counted>) -> ControlFlow<()> {
        self.rounds += 1;
        self.largest = self.largest.max(std::mem::take(&mut self.batches_taken));
        self.most_alive = self.most_alive.max(ALIVE.load(Relaxed));
        if !self.waits || self.rounds.is_multiple_of(2) {
            spent.append(&mut self.held);
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn batches_that_two_consumers_give_back_at_different_times_are_bounded() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/x86-svm/host-guest.dat");
    let recording = sources::open(&path).unwrap();
    rounds::fit_into_memory(0);
    let (first, second) = (Holds::default(), Holds { waits: true, ..Holds::default() });
    let mut first = BlockTask { decoder: Nothing, consumer: first };
    let mut second = BlockTask { decoder: Nothing, consumer: second };
    Reading::of_all_streams(&recording).run(&mut [&mut first, &mut second], &|_| ());
    let first = first.consumer;
    assert!(first.rounds > 8, "{} rounds", first.rounds);
    // Of each kind: one round is decoded, one is consumed, one is held, and as many wait to be used again.
    let max = 2 * 4 * first.largest;
    assert!(first.most_alive <= max, "{} batches, {max} at most", first.most_alive);
}
