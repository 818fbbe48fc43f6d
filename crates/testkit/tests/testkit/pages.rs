//! The page builder and the naive decoder, written apart from each other, agree on every page.

use proptest::prelude::*;
use raw_bytes::{Abi, ByteOrder, LongSize};
use testkit::{MAX_DELTA, MissedEvents, PageBuilder, StreamBuilder, naive};

#[derive(Clone, Debug)]
enum Step {
    Event(u32, Vec<u8>),
    LongEvent(u32, Vec<u8>),
    Extend(u64),
    Stamp(u64),
    Discarded(u32, usize),
    TailPadding,
    NullPadding,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let delta = 0..=MAX_DELTA;
    let payload = || prop::collection::vec(any::<u8>(), 0..200);
    let step = prop_oneof![
        8 => (delta.clone(), payload()).prop_map(|(delta, bytes)| Step::Event(delta, bytes)),
        2 => (delta, payload()).prop_map(|(delta, bytes)| Step::LongEvent(delta, bytes)),
        2 => (0..1u64 << 58).prop_map(Step::Extend),
        2 => (0..1u64 << 59).prop_map(Step::Stamp),
        2 => (1..=MAX_DELTA, 0usize..64).prop_map(|(delta, len)| Step::Discarded(delta, len)),
        1 => Just(Step::TailPadding),
        1 => Just(Step::NullPadding),
    ];
    prop::collection::vec(step, 0..80)
}

fn abis() -> impl Strategy<Value = Abi> {
    let order = prop_oneof![Just(ByteOrder::Little), Just(ByteOrder::Big)];
    let long = prop_oneof![Just(LongSize::Four), Just(LongSize::Eight)];
    (order, long).prop_map(|(order, long)| Abi { order, long })
}

fn losses() -> impl Strategy<Value = Option<MissedEvents>> {
    prop_oneof![
        Just(None),
        Just(Some(MissedEvents::Uncounted)),
        any::<u32>().prop_map(|count| Some(MissedEvents::Counted(u64::from(count)))),
    ]
}

/// Adds the steps that fit, leaving `reserve` bytes free.
fn add(page: &mut PageBuilder, steps: &[Step], reserve: usize) {
    for step in steps {
        let room = page.room().saturating_sub(reserve);
        match step {
            Step::Event(delta, payload) if PageBuilder::event_size(payload.len()) <= room => {
                page.event(*delta, payload);
            }
            Step::LongEvent(delta, payload) if payload.len() + 12 <= room => {
                page.long_event(*delta, payload);
            }
            Step::Extend(delta) if room >= 8 => {
                page.time_extend(*delta);
            }
            Step::Stamp(low) if room >= 8 => {
                page.absolute_stamp(page.now() >> 59 << 59 | low);
            }
            Step::Discarded(delta, len) if len + 12 <= room => {
                page.discarded(*delta, *len);
            }
            Step::TailPadding if reserve == 0 => {
                page.tail_padding();
            }
            Step::NullPadding if reserve == 0 && room >= 4 => {
                page.null_padding();
            }
            _ => {}
        }
    }
}

proptest! {
    #[test]
    fn every_built_page_decodes_to_what_went_in(
        abi in abis(),
        page_size in prop_oneof![Just(256usize), Just(4096), Just(16384)],
        start in any::<u64>(),
        missed in losses(),
        steps in steps(),
    ) {
        let mut page = PageBuilder::new(abi, page_size, start);
        if let Some(missed) = missed {
            page.missed(missed);
        }
        // The count of lost events takes room after the data.
        add(&mut page, &steps, if matches!(missed, Some(MissedEvents::Counted(_))) { 8 } else { 0 });
        let page = page.build();
        prop_assert_eq!(page.bytes.len(), page_size);

        let naive = naive::decode(abi, &page.bytes).unwrap();
        prop_assert_eq!(naive.damaged, page.runs_back);
        prop_assert_eq!(naive.start, page.start);
        prop_assert_eq!(naive.missed, page.missed);
        prop_assert_eq!(naive.records, page.records);
        prop_assert_eq!(naive.end, page.end);
    }

    #[test]
    fn no_bytes_make_the_naive_decoder_panic(
        abi in abis(),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        commit in 0u64..300,
    ) {
        let mut bytes = bytes;
        let size = if abi.long == LongSize::Four { 4 } else { 8 };
        if bytes.len() >= 8 + size {
            let commit = match abi.order {
                ByteOrder::Little => commit.to_le_bytes()[..size].to_vec(),
                ByteOrder::Big => commit.to_be_bytes()[8 - size..].to_vec(),
            };
            bytes[8..8 + size].copy_from_slice(&commit);
        }
        let _ = naive::decode(abi, &bytes);
    }

    #[test]
    fn a_stream_spreads_its_events_over_pages(
        abi in abis(),
        events in prop::collection::vec((0u64..1 << 40, 0usize..150), 1..200),
    ) {
        let mut stream = StreamBuilder::new(abi, 512);
        let mut now = 1_000;
        let mut stamps = Vec::new();
        for (delta, len) in events {
            now += delta;
            stamps.push(now);
            stream.event(now, &vec![7; len]);
        }
        let bytes = stream.bytes();
        let found: Vec<u64> = bytes
            .chunks(512)
            .flat_map(|page| naive::decode(abi, page).unwrap().records)
            .map(|record| record.stamp)
            .collect();
        prop_assert_eq!(found, stamps);
    }
}

const LITTLE_64: Abi = Abi { order: ByteOrder::Little, long: LongSize::Eight };
const BIG_32: Abi = Abi { order: ByteOrder::Big, long: LongSize::Four };

/// Bytes worked out by hand from the kernel's definitions.
#[test]
fn a_small_page_has_the_bytes_the_kernel_would_write() {
    let mut page = PageBuilder::new(LITTLE_64, 48, 0x0102);
    page.event(3, &[1, 2, 3, 4, 5]).time_extend(1 << 27 | 5);
    let page = page.build();
    let head = [2, 1, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(page.bytes[..16], head);
    // type_len 2, delta 3: 3 << 5 | 2.
    assert_eq!(page.bytes[16..28], [98, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0]);
    // type_len 30, delta 5: 5 << 5 | 30; then the upper part, 1.
    assert_eq!(page.bytes[28..36], [190, 0, 0, 0, 1, 0, 0, 0]);

    let mut page = PageBuilder::new(BIG_32, 48, 0x0102);
    page.event(3, &[1, 2, 3, 4, 5]).missed(MissedEvents::Counted(9));
    let page = page.build();
    assert_eq!(page.bytes[..12], [0, 0, 0, 0, 0, 0, 1, 2, 0xc0, 0, 0, 12]);
    // type_len 2, delta 3: 2 << 27 | 3.
    assert_eq!(page.bytes[12..24], [0x10, 0, 0, 3, 1, 2, 3, 4, 5, 0, 0, 0]);
    assert_eq!(page.bytes[24..28], [0, 0, 0, 9]);
}
