//! Writes pages and reads back the same records, times and losses.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use ftrace::ringbuf::{Missed, Page, PageLayout, PageWriter};
use proptest::prelude::*;
use raw_bytes::{ByteOrder, LongSize};

/// A record and the loss before it.
type Given = (Missed, u64, Vec<u8>);

fn written(layout: PageLayout, given: &[Given]) -> Vec<u8> {
    let (mut writer, mut pages) = (PageWriter::new(layout), Vec::new());
    for (missed, stamp, payload) in given {
        writer.missed(*missed);
        writer.push(*stamp, payload, &mut pages).unwrap();
    }
    writer.flush(&mut pages);
    assert_eq!(writer.pending_loss(), Missed::Nothing);
    pages
}

fn read(layout: PageLayout, pages: &[u8]) -> Vec<Given> {
    let mut found = Vec::new();
    for bytes in pages.chunks(layout.page_size) {
        assert_eq!(bytes.len(), layout.page_size, "whole pages");
        let page = Page::parse(bytes, &layout).unwrap();
        let mut missed = page.missed;
        page.for_each(|record| {
            let missed = std::mem::replace(&mut missed, Missed::Nothing);
            found.push((missed, record.stamp, record.payload.to_vec()));
        })
        .unwrap();
        assert_eq!(missed, Missed::Nothing, "no page is empty");
    }
    found
}

fn layouts() -> impl Strategy<Value = PageLayout> {
    let orders = prop_oneof![Just(ByteOrder::Little), Just(ByteOrder::Big)];
    let longs = prop_oneof![Just(LongSize::Four), Just(LongSize::Eight)];
    let sizes = prop_oneof![Just(512_usize), Just(4096), Just(65536)];
    (orders, longs, sizes).prop_map(|(order, commit, page_size)| PageLayout {
        order,
        commit,
        page_size,
    })
}

fn given() -> impl Strategy<Value = Given> {
    let missed = prop_oneof![
        20 => Just(Missed::Nothing),
        1 => Just(Missed::Unknown),
        1 => (1_u64..1000).prop_map(Missed::Events),
    ];
    // Steps of all sizes, including negative ones.
    let step = prop_oneof![
        8 => 0_u64..5000,
        2 => (1_u64 << 26)..(1 << 28),
        1 => any::<u64>(),
    ];
    let words = prop_oneof![9 => 1_usize..40, 1 => 0_usize..=0];
    let payload =
        words.prop_flat_map(|words| proptest::collection::vec(any::<u8>(), words * 4..=words * 4));
    (missed, step, payload)
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        layout in layouts(),
        mut all in proptest::collection::vec(given(), 0..200),
    ) {
        let mut now = 0_u64;
        for (_, stamp, _) in &mut all {
            now = now.wrapping_add(*stamp);
            *stamp = now;
        }
        let found = read(layout, &written(layout, &all));
        prop_assert_eq!(found.len(), all.len());
        for (found, given) in found.iter().zip(&all) {
            prop_assert_eq!((found.1, &found.2), (given.1, &given.2));
            // If a count does not fit, the loss has no count.
            let is_reported = found.0 == given.0
                || matches!((found.0, given.0), (Missed::Unknown, Missed::Events(_)));
            prop_assert!(is_reported, "{:?} for {:?}", found.0, given.0);
        }
    }
}

#[test]
fn what_no_page_can_hold_is_refused() {
    let layout = PageLayout { order: ByteOrder::Little, commit: LongSize::Eight, page_size: 4096 };
    let (mut writer, mut pages) = (PageWriter::new(layout), Vec::new());
    assert!(writer.push(1, &[0; 4096 - 16 - 8 + 4], &mut pages).is_err());
    assert!(writer.push(1, &[0; 4096 - 16 - 8], &mut pages).is_ok());
    writer.flush(&mut pages);
    assert_eq!(read(layout, &pages).len(), 1);
    writer.missed(Missed::Events(7));
    writer.flush(&mut pages);
    assert_eq!((pages.len(), writer.pending_loss()), (4096, Missed::Events(7)));
}

#[test]
fn losses_add_up() {
    let both = Missed::Events(2).and(Missed::Events(3));
    assert_eq!(both, Missed::Events(5));
    assert_eq!(both.and(Missed::Unknown), Missed::Unknown);
    assert_eq!(Missed::Nothing.and(both), both);
}
