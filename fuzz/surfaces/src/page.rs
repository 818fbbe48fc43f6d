//! A ring-buffer page in every layout, read in every way.

use ftrace::ringbuf::{Missed, Page, PageLayout, RecordDamage};
use raw_bytes::{Abi, ByteOrder, LongSize};
use testkit::{ExpectedRecord, MissedEvents, naive};

/// Reads `bytes` as one page.
pub fn run(bytes: &[u8]) {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for long in [LongSize::Four, LongSize::Eight] {
            check(Abi { order, long }, bytes);
        }
    }
}

/// The reader, its two loops and the naive decoder must agree.
fn check(abi: Abi, bytes: &[u8]) {
    let layout = PageLayout { order: abi.order, commit: abi.long, page_size: bytes.len() };
    let expected = naive::decode(abi, bytes);
    let Ok(page) = Page::parse(bytes, &layout) else {
        assert!(expected.is_none(), "only the naive decoder reads this page");
        return;
    };
    let Some(expected) = expected else { panic!("the naive decoder refuses this page") };
    assert!(page.data_len() <= bytes.len());
    assert_eq!(page.stamp, expected.start);
    let missed = match page.missed {
        Missed::Nothing => None,
        Missed::Unknown => Some(MissedEvents::Uncounted),
        Missed::Events(count) => Some(MissedEvents::Counted(count)),
    };
    assert_eq!(missed, expected.missed);

    let (visited, result) = visit(&page);
    assert_eq!(visited, expected.records);
    assert_eq!(result.is_err(), expected.damaged);

    let mut records = page.records();
    let iterated: Vec<ExpectedRecord> = records.by_ref().map(owned).collect();
    assert_eq!(iterated, visited);
    assert_eq!(records.damage(), result.err());
    assert!(records.next().is_none(), "an iterator that has ended begins again");
}

fn visit(page: &Page<'_>) -> (Vec<ExpectedRecord>, Result<(), RecordDamage>) {
    let mut records = Vec::new();
    let result = page.for_each(|record| records.push(owned(record)));
    match result {
        Err(RecordDamage::TooLong { at, wanted, have }) => {
            assert!(at <= page.data_len() && have < wanted, "a record that fits");
        }
        Err(RecordDamage::RunsBack(step)) => assert!(step.to < step.from, "{step}"),
        Ok(()) => {
            let stamps = records.iter().map(|record| record.stamp);
            assert!(stamps.is_sorted(), "the clock runs back, and nothing reports it");
        }
    }
    (records, result)
}

fn owned(record: ftrace::ringbuf::Record<'_>) -> ExpectedRecord {
    ExpectedRecord { stamp: record.stamp, payload: record.payload.to_vec() }
}
