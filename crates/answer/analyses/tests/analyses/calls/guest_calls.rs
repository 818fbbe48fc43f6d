//! Calls reported by a guest's kernel module, encoded here as in `docs/formats/hypertrace.md`.

use analyses::calls::{CallQuestion, CallTracer, RecordedCalls, guest_calls};
use analyses::hypertrace::HypertraceFiles;
use hypertrace::NUMBER;

use crate::machinery::Machinery;

/// Encodes a frame.
#[derive(Default)]
struct Frame {
    words: [u64; 4],
    at: usize,
    has_event: bool,
}

impl Frame {
    fn new(number: u64) -> Self {
        let mut frame = Self::default();
        frame.put(number, 8);
        frame
    }

    fn put(&mut self, value: u64, bits: usize) {
        for bit in 0..bits {
            self.words[self.at / 64] |= (value >> bit & 1) << (self.at % 64);
            self.at += 1;
        }
    }

    /// A stream of version 2 on CPU 0 at 1 GHz, in units of 16 cycles; task 1 runs.
    fn begin() -> Self {
        let mut frame = Self::new(0);
        for (value, bits) in [
            (7, 3),
            (0, 3),
            (2, 4),
            (0, 1),
            (0, 16),
            (1_000_000, 32),
            (4, 5),
            (4, 4),
            (8, 4),
            (32, 8),
        ] {
            frame.put(value, bits);
        }
        // TASK 1: pid 70, priority 120, "init".
        for (value, bits) in [(6, 3), (1, 6), (70, 22), (121, 8), (4, 4)] {
            frame.put(value, bits);
        }
        b"init".iter().for_each(|&byte| frame.put(byte.into(), 8));
        frame.runs(1);
        frame
    }

    fn runs(&mut self, task: u64) {
        [(7, 3), (1, 3), (task, 6)].iter().for_each(|&(value, bits)| self.put(value, bits));
    }

    fn function(&mut self, slot: u64, address: u64) {
        for (value, bits) in [(7, 3), (3, 3), (slot, 7), (address, 48)] {
            self.put(value, bits);
        }
    }

    /// A call or a return, `units` after the previous one.
    fn call(&mut self, exit: bool, slot: u64, units: u64) {
        [(5, 3), (exit.into(), 1), (slot, 7)]
            .iter()
            .for_each(|&(value, bits)| self.put(value, bits));
        if std::mem::replace(&mut self.has_event, true) {
            self.put(0, 2);
            self.put(units, 6);
        }
    }

    /// Ends the frame, `age` units after the last event.
    fn end(mut self, age: u64) -> [u64; 4] {
        [(0, 3), (0, 1), (age, 12)].iter().for_each(|&(value, bits)| self.put(value, bits));
        self.words
    }
}

fn calls_in(frames: &[[u64; 4]]) -> Vec<RecordedCalls> {
    let mut host = Machinery::new("local");
    for (at, [a0, a1, a2, a3]) in (1_u64..).zip(frames) {
        let fields = [("nr", NUMBER), ("a0", *a0), ("a1", *a1), ("a2", *a2), ("a3", *a3)];
        host.event(0, at * 1_000_000, 100, "kvm_hypercall", &fields);
    }
    let recordings = [host.recording()];
    let (files, question) = (HypertraceFiles::default(), CallQuestion::default());
    let guest_of = |_| "web".to_owned();
    let all = guest_calls(&recordings, files, NUMBER, &guest_of, &question, &|_| ());
    all.into_iter().map(|guest| guest.calls).collect()
}

const OUTER: u64 = 0xffff_8000_0000;
const INNER: u64 = 0xffff_8000_1000;

/// Frame 1: defines both functions, and has a call of the outer one, which calls the inner one.
fn nested() -> Frame {
    let mut frame = Frame::new(1);
    frame.function(0, OUTER);
    frame.function(1, INNER);
    frame.call(false, 0, 0);
    frame.call(false, 1, 10);
    frame.call(true, 1, 20);
    frame.call(true, 0, 5);
    frame
}

#[test]
fn calls_and_returns_nest_and_add_up() {
    let all = calls_in(&[Frame::begin().end(0), nested().end(3)]);
    let calls = &all[0];
    assert_eq!(calls.tracer, Some(CallTracer::Module { returns: true }));
    let times = |at: usize| {
        let function: &analyses::calls::Function = &calls.functions[at];
        (
            function.address & 0xffff_ffff_ffff,
            function.count,
            function.total_ns,
            function.self_ns,
            function.without_return,
        )
    };
    // A unit is 16 cycles, which are 16 ns at 1 GHz.
    assert_eq!([times(0), times(1)], [(OUTER, 1, 35 * 16, 15 * 16, 0), (INNER, 1, 320, 320, 0)]);
    let thread = &calls.threads[0];
    assert_eq!((thread.title().as_str(), thread.count, thread.traced_ns), ("init-70", 2, 560));
    assert_eq!((calls.losses.events_lost, calls.losses.uncounted_losses), (0, 0));
}

#[test]
fn what_was_under_way_at_a_missing_frame_is_not_guessed() {
    let mut earlier = Frame::new(1);
    earlier.function(0, OUTER);
    earlier.call(false, 0, 0);
    // Frame 2 is missing; the tables are sent again, and the function returns.
    let mut later = Frame::new(3);
    for (value, bits) in [(6, 3), (1, 6), (70, 22), (121, 8), (0, 4)] {
        later.put(value, bits);
    }
    later.runs(1);
    later.function(0, OUTER);
    later.call(true, 0, 0);
    let all = calls_in(&[Frame::begin().end(0), earlier.end(0), later.end(0)]);
    let function = &all[0].functions[0];
    assert_eq!((function.count, function.without_return, function.without_call), (0, 1, 1));
    assert_eq!((all[0].interrupted, all[0].losses.uncounted_losses), (1, 1));
}

#[test]
fn entries_alone_are_counted() {
    let mut frame = Frame::new(1);
    frame.function(0, OUTER);
    frame.function(1, INNER);
    for slot in [0, 1, 1, 0, 1] {
        frame.call(false, slot, 1);
    }
    let calls = &calls_in(&[Frame::begin().end(0), frame.end(0)])[0];
    assert_eq!(calls.tracer, Some(CallTracer::Module { returns: false }));
    let counts: Vec<_> =
        calls.functions.iter().map(|function| (function.count, function.without_return)).collect();
    assert_eq!(counts, [(2, 0), (3, 0)]);
    assert_eq!(calls.sum(|function| function.total_ns), 0);
}

#[test]
fn a_host_without_such_guests_has_none() {
    assert!(calls_in(&[]).is_empty());
    assert!(calls_in(&[Frame::begin().end(0)]).is_empty());
}
