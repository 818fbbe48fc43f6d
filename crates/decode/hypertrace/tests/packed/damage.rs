//! Frames that are missing, changed, or made up.

use hypertrace::{Decoder, Kind, Losses};
use proptest::prelude::*;

use crate::expected::{ExpectedEvent, history};
use crate::packer::{Sent, UNIT_NS, decode, pack};

/// Frames of a history, and the event numbers at which each begins.
fn frames(history: &[ExpectedEvent]) -> Vec<Sent> {
    let mut unit = 0;
    let mut lines = Vec::new();
    for expected in history {
        unit += expected.after;
        lines.push(expected.line(unit));
    }
    lines.push(format!("finish {unit}"));
    pack(4, 3, &lines)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// What comes in spite of missing frames is what was, and what is missing is counted.
    #[test]
    fn nothing_is_guessed_across_missing_frames(
        history in history(200),
        drop in proptest::collection::vec(1..100_usize, 1..6),
    ) {
        let sent = frames(&history);
        let (all_events, _) = decode(&sent);
        // The first says how to read, the last that it ends.
        let survives = |at: usize| at == 0 || at + 1 >= sent.len() || !drop.contains(&at);
        let rest: Vec<&Sent> =
            sent.iter().enumerate().filter(|(at, _)| survives(*at)).map(|(_, frame)| frame).collect();
        let (events, losses) = decode(rest.iter().copied());
        prop_assert_eq!(losses.frames_lost, (sent.len() - rest.len()) as u64);
        prop_assert_eq!(losses.events_missing, (all_events.len() - events.len()) as u64);
        let mut remaining = all_events.iter();
        for event in &events {
            // In the order of the whole, with nothing in it that is otherwise.
            let found = remaining.find(|candidate| {
                let same_running = event.running.is_none() || event.running == candidate.running;
                candidate.stamp_ns == event.stamp_ns && same_running && agrees(&event.kind, &candidate.kind)
            });
            prop_assert!(found.is_some(), "{:?} never was", event);
        }
    }

    /// Frames with bits turned over: no panic, and once a sound stream begins, all is right.
    #[test]
    fn a_sound_stream_is_read_behind_a_damaged_one(
        history in history(60),
        flips in proptest::collection::vec((0..4_usize, 0..64_u32), 1..4),
    ) {
        let sent = frames(&history);
        let (mut decoder, mut events) = (Decoder::default(), Vec::new());
        for frame in &sent {
            let mut words = frame.words.clone();
            for (word, bit) in &flips {
                words[*word] ^= 1 << bit;
            }
            decoder.frame(&words, frame.unit * UNIT_NS, &mut events);
        }
        events.clear();
        for frame in &sent {
            decoder.frame(&frame.words, frame.unit * UNIT_NS, &mut events);
        }
        prop_assert_eq!(events.len(), history.len());
        for (expected, event) in history.iter().zip(&events) {
            expected.assert_is(event);
        }
    }

    /// Whatever a guest puts in: no panic, and no more events than bits have room for.
    #[test]
    fn anything_can_be_read(
        frames in proptest::collection::vec(proptest::collection::vec(any::<u64>(), 0..15), 0..50),
        stamps in proptest::collection::vec(any::<u64>(), 50),
    ) {
        let (mut decoder, mut events) = (Decoder::default(), Vec::new());
        for (words, stamp) in frames.iter().zip(&stamps) {
            let before = events.len();
            decoder.frame(words, *stamp, &mut events);
            prop_assert!(events.len() - before <= words.len() * 64 / 10);
        }
    }
}

/// Whether what is known of one is so in the other.
fn agrees(some: &Kind, all: &Kind) -> bool {
    match (some, all) {
        (Kind::Switch { state, next }, Kind::Switch { state: other, next: full_next }) => {
            state == other && (next.is_none() || next == full_next)
        }
        (
            Kind::Wake { wake, task, target_cpu },
            Kind::Wake { wake: other, task: full_task, target_cpu: cpu },
        ) => wake == other && (task.is_none() || task == full_task) && target_cpu == cpu,
        (
            Kind::Call { address, name, what },
            Kind::Call { address: full_address, name: whole_name, what: other },
        ) => {
            let same_name = name.is_none() || name == whole_name;
            what == other && (address.is_none() || address == full_address) && same_name
        }
        // Names of interrupts are sent once.
        (Kind::Interrupt { irq, .. }, Kind::Interrupt { irq: other, .. }) => irq == other,
        (some, all) => some == all,
    }
}

#[test]
fn frames_with_more_words_than_were_seen_are_counted_as_such() {
    let line = |at: u64| format!("call {} 7 121 x 0 {}", at * 20, at * 4096);
    let lines: Vec<String> = (0..100).map(line).chain(["finish 2001".into()]).collect();
    let sent = pack(9, 0, &lines);
    let (mut decoder, mut events) = (Decoder::default(), Vec::new());
    for frame in &sent {
        decoder.frame(&frame.words[..4], 0, &mut events);
    }
    let losses = Losses { frames_cut: sent.len() as u64, ..Losses::default() };
    assert_eq!((events.len(), decoder.losses()), (0, losses));
    for frame in &sent {
        decoder.frame(&frame.words, frame.unit * UNIT_NS, &mut events);
    }
    assert_eq!((events.len(), decoder.losses()), (100, losses));
}

#[test]
fn a_recording_that_begins_in_between_waits_for_the_next_beginning() {
    let line = |at: u64| format!("sys_enter {} 7 121 x {}", at * 1_000_000, at % 300);
    let mut lines: Vec<String> = (0..100).map(line).collect();
    lines.push("finish 100000000".into());
    let sent = pack(4, 0, &lines);
    let (events, losses) = decode(&sent[2..]);
    assert!(losses.frames_early > 0);
    // One begins each second, which is 62.5 million units.
    assert_eq!(events.len(), (63..100).count());
}
