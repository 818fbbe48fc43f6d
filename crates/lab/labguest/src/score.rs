//! A fixed mix of work on integers, strings and records; the passes per second are the score.
//!
//! The mix is similar to Dhrystone: assignments, branches, calls, array accesses, comparisons and copies of short
//! strings. But it is not Dhrystone, and its scores can only be compared with each other.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

/// Passes between two checks of the end.
const PASSES: u64 = 500;
/// Records used per pass.
const RECORDS: usize = 16;
/// Size of the table.
const NUMBERS: usize = 64;

#[derive(Clone, Copy)]
enum Kind {
    Whole,
    Letter,
    Text,
}

#[derive(Clone, Copy)]
struct Record {
    kind: Kind,
    number: i64,
    letter: u8,
    text: [u8; 32],
    next: usize,
}

struct State {
    records: [Record; RECORDS],
    numbers: [i64; NUMBERS],
    sum: i64,
}

/// Runs passes until the end; returns their number.
pub(crate) fn run(over: &AtomicBool) -> u64 {
    let mut state = State::new();
    let mut passes = 0;
    while !over.load(Ordering::Relaxed) {
        for _ in 0..PASSES {
            pass(black_box(&mut state));
        }
        passes += PASSES;
    }
    black_box(state.sum);
    passes
}

impl State {
    fn new() -> Self {
        let record = |at: usize| Record {
            kind: [Kind::Whole, Kind::Letter, Kind::Text][at % 3],
            number: i64::try_from(at).unwrap_or(0),
            letter: b'A',
            text: *b"some text of two and thirty chars"[..32].first_chunk().unwrap_or(&[b'.'; 32]),
            next: (at + 5) % RECORDS,
        };
        Self { records: std::array::from_fn(record), numbers: [1; NUMBERS], sum: 0 }
    }
}

fn pass(state: &mut State) {
    let mut at = 0;
    for step in 0..RECORDS {
        let Some(record) = state.records.get(at).copied() else { return };
        let changed = match record.kind {
            Kind::Whole => whole_number(record, step, &mut state.numbers),
            Kind::Letter => letter(record),
            Kind::Text => text(record, step),
        };
        state.sum = state.sum.wrapping_add(changed.number);
        if let Some(place) = state.records.get_mut(at) {
            *place = changed;
        }
        at = black_box(changed.next);
    }
}

#[inline(never)]
fn whole_number(mut record: Record, step: usize, numbers: &mut [i64; NUMBERS]) -> Record {
    let place = step.wrapping_mul(7) % NUMBERS;
    let before = numbers.get(place).copied().unwrap_or(0);
    let divisor = (before & 15) + 3;
    record.number = record.number.wrapping_mul(5).wrapping_add(before) / divisor;
    if let Some(number) = numbers.get_mut((place + 1) % NUMBERS) {
        *number = record.number ^ before;
    }
    record
}

#[inline(never)]
fn letter(mut record: Record) -> Record {
    record.letter = if record.letter == b'Z' { b'A' } else { record.letter + 1 };
    record.number = record.number.wrapping_add(record.letter.into());
    record
}

#[inline(never)]
fn text(mut record: Record, step: usize) -> Record {
    let mut other = record.text;
    if let Some(byte) = other.get_mut(step * 2 % 32) {
        *byte = b'a' + u8::try_from(step % 26).unwrap_or(0);
    }
    record.number = match black_box(&other).cmp(black_box(&record.text)) {
        std::cmp::Ordering::Less => record.number.wrapping_sub(1),
        std::cmp::Ordering::Equal => record.number,
        std::cmp::Ordering::Greater => record.number.wrapping_add(1),
    };
    record.text = other;
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_change_the_state_the_same_way_every_time() {
        let sum_of = |passes: usize| {
            let mut state = State::new();
            (0..passes).for_each(|_| pass(&mut state));
            state.sum
        };
        assert_eq!(sum_of(100), sum_of(100));
        assert_ne!(sum_of(100), sum_of(101));
    }

    #[test]
    fn it_ends_when_it_is_over() {
        assert_eq!(run(&AtomicBool::new(true)), 0);
    }
}
