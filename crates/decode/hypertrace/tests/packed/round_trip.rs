//! Events in, events out, at their times.

use hypertrace::{Decoder, Kind, Losses};
use proptest::prelude::*;

use crate::expected::{assert_name, history};
use crate::packer::{UNIT_NS, decode, pack};

/// Between the event that fills a frame and its hypercall.
const CPU: u16 = 3;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever happens, and however many words a frame has: it comes back, in its order, at its
    /// time to the unit.
    #[test]
    fn what_is_packed_comes_back(
        history in history(400),
        words in 4..=13_usize,
        flushes in proptest::collection::vec(0..40_usize, 0..5),
        begin in 0..1_u64 << 40,
    ) {
        let mut lines = Vec::new();
        let mut units = Vec::new();
        let mut unit = begin;
        for (at, expected) in history.iter().enumerate() {
            unit += expected.after;
            units.push(unit);
            lines.push(expected.line(unit));
            if flushes.contains(&at) {
                unit += 5_000_000;
                lines.push(format!("flush {unit}"));
            }
        }
        lines.push(format!("finish {}", unit + 7));
        let sent = pack(words, CPU, &lines);
        let (events, losses) = decode(&sent);
        prop_assert_eq!(losses.frames_damaged, 0);
        prop_assert_eq!(events.len(), history.len());
        for ((expected, event), unit) in history.iter().zip(&events).zip(&units) {
            expected.assert_is(event);
            prop_assert_eq!(event.cpu, CPU);
            // Ages are sent up to four seconds.
            if !event.at_latest {
                prop_assert_eq!(event.stamp_ns, unit * UNIT_NS);
            }
        }
        prop_assert!(events.is_sorted_by_key(|event| event.stamp_ns));
        prop_assert_eq!(Losses { stamps_at_latest: 0, ..losses }, Losses::default());
        if !sent.is_empty() {
            prop_assert!(sent.iter().all(|frame| frame.words.len() == words));
        }
    }
}

/// Every third hypercall is stamped late, by up to 300 ms; the first is not.
#[test]
fn events_of_hypercalls_that_were_stamped_late_have_their_own_times() {
    let unit_of = |at: u64| 1 << 30 | (at * 7_000 + at % 13 * 311);
    let line = |at: u64| format!("irq_exit {} 7 121 x {} 1", unit_of(at), at % 50);
    let lines: Vec<String> = (0..4000).map(line).chain(["finish 1200000000".into()]).collect();
    for words in [4, 13] {
        let sent = pack(words, 0, &lines);
        let late_ns = |at: usize| if at % 3 == 2 { at as u64 * 7919 % 300_000_000 } else { 0 };
        let (mut decoder, mut events) = (Decoder::default(), Vec::new());
        for (at, frame) in sent.iter().enumerate() {
            let first_new = events.len();
            decoder.frame(&frame.words, frame.unit * UNIT_NS + late_ns(at), &mut events);
            for event in &events[first_new..] {
                let found = event.late_ns.unwrap();
                // A clock may have been slewed since a hypercall that was not late.
                let slewed = 2 * 200 * 7_000 * UNIT_NS / 2_000;
                let at_least = late_ns(at).saturating_sub(slewed);
                assert!((at_least..=late_ns(at)).contains(&found), "frame {at}: {found}");
            }
        }
        assert_eq!((events.len(), decoder.losses()), (4000, Losses::default()));
        for (event, at) in events.iter().zip(0..) {
            let off_ns = event.stamp_ns - unit_of(at) * UNIT_NS;
            assert!(off_ns < 25_000, "event {at}: {off_ns}");
        }
    }
}

#[test]
fn names_of_functions_come_with_their_first_call_and_once() {
    let addresses: Vec<u64> = (0..9).map(|at| 0xffff_ffff_8100_0000 + at * 0x130).collect();
    let call = |at: usize| format!("call {} 7 121 x 0 {}", at * 9, addresses[at % 9]);
    let lines: Vec<String> = (0..90).map(call).chain(["finish 900".into()]).collect();
    for words in [4, 13] {
        let sent = pack(words, 0, &lines);
        let (events, losses) = decode(&sent);
        assert_eq!(losses, Losses::default());
        let mut unnamed = 0;
        for (event, address) in events.iter().zip(addresses.iter().cycle()) {
            let Kind::Call { name, .. } = &event.kind else { panic!("{event:?}") };
            assert_name(*address, name.as_deref());
            unnamed += usize::from(name.is_none());
        }
        let without = addresses.iter().filter(|&&at| at % 1_000_000_007 % 3 == 0).count();
        assert_eq!((events.len(), unnamed), (90, without * 10));
        // Nine names of some 60 bytes, and 90 calls of 13 to 30 bits.
        let max = 9 * 64 * 8 + 90 * 30;
        let bits: usize = sent.iter().map(|frame| 64 * frame.words.len() - 8 - 16).sum();
        assert!(bits < 2 * max, "{bits} bits");
    }
}

#[test]
fn what_the_guest_dropped_is_counted() {
    let lines = ["lost 5 0 3", "lost 6 1 4000000000", "finish 7"].map(str::to_owned);
    let (events, losses) = decode(&pack(4, 0, &lines));
    assert!(events.is_empty());
    assert_eq!(losses, Losses { events_dropped: 4_000_000_003, ..Losses::default() });
}
