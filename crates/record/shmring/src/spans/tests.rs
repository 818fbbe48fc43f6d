//! Tests of both sides together, and of the reader with arbitrary memory content.

use std::sync::Arc;

use proptest::prelude::*;

use super::area::{Area, MAGIC, head, ring, slot};
use super::*;
use crate::{GuestSide, Mode, RegionPlan, SharedMap, agent_bytes};

const MEMORY: usize = 1 << 20;

fn memory() -> Arc<SharedMap> {
    Arc::new(SharedMap::of_bytes(&vec![0; MEMORY]).unwrap())
}

fn writer(map: &Arc<SharedMap>) -> SpanWriter {
    SpanWriter::lay_out(Arc::clone(map), &[0, 3], 2_000_000_000, 100_000_000).unwrap()
}

fn span(start_tsc: u64, ticks: u64) -> Span {
    Span {
        start_tsc,
        ticks,
        activity: Activity::Preempted,
        by: By::Others,
        begins_exit: start_tsc.is_multiple_of(2),
        code: Some(0x60),
        isa: 2,
        level: 1,
    }
}

fn any_span() -> impl Strategy<Value = Span> {
    let activity = prop::sample::select(&Activity::ALL[..]);
    let by = prop::sample::select(&By::ALL[..]);
    (
        any::<u32>(),
        0..1_u64 << 40,
        activity,
        by,
        any::<bool>(),
        any::<Option<u32>>(),
        0..3_u8,
        1..3_u8,
    )
        .prop_map(|(start, ticks, activity, by, begins_exit, code, isa, level)| Span {
            start_tsc: start.into(),
            ticks,
            activity,
            by,
            begins_exit,
            code,
            isa,
            level,
        })
}

#[test]
fn what_is_written_is_read_once_it_is_announced() {
    let map = memory();
    let mut writer = writer(&map);
    let mut reader = SpanReader::attach(Arc::clone(&map), false).unwrap();
    assert_eq!(reader.vcpus().collect::<Vec<_>>(), [0, 3]);
    assert_eq!(
        (reader.ticks_per_second(), reader.interval_ns()),
        (Some(2_000_000_000), 100_000_000)
    );
    writer.push(1, &span(10, 5));
    assert_eq!(reader.read(1), News::default());
    let coverage = Coverage { from_tsc: 3, to_tsc: 20, lost_events: 7 };
    writer.announce(1, coverage);
    let news = News { spans: vec![span(10, 5)], coverage, ..News::default() };
    assert_eq!(reader.read(1), news);
    assert_eq!(reader.read(1), News { coverage, ..News::default() });
    assert_eq!(reader.read(0), News::default());
    assert_eq!(reader.read(9), News::default());
    // Another reader starts after the announced spans, or with all of them.
    let mut late = SpanReader::attach(Arc::clone(&map), false).unwrap();
    assert!(late.read(1).spans.is_empty());
    let mut all = SpanReader::attach(Arc::clone(&map), true).unwrap();
    assert_eq!(all.read(1).spans, [span(10, 5)]);
}

#[test]
fn a_slow_reader_learns_what_it_missed() {
    let map = memory();
    let mut writer = writer(&map);
    let slots = Area::load(&map).unwrap().slots();
    let mut reader = SpanReader::attach(Arc::clone(&map), false).unwrap();
    for start in 0..slots + 10 {
        writer.push(0, &span(start, 1));
    }
    writer.announce(0, Coverage { to_tsc: slots + 20, ..Coverage::default() });
    let news = reader.read(0);
    assert_eq!((news.missed, news.damage), (10, 0));
    assert_eq!(news.spans.len() as u64, slots);
    assert_eq!(news.spans[0], span(10, 1));
    // The writer continues meanwhile: partially overwritten spans are skipped.
    for start in 0..slots {
        writer.push(0, &span(start, 1));
    }
    writer.announce(0, Coverage::default());
    writer.push(0, &span(0, 1));
    let news = reader.read(0);
    assert_eq!((news.missed, news.spans.len() as u64), (1, slots - 1));
}

#[test]
fn names_beats_and_ends_arrive() {
    let map = memory();
    let mut writer = writer(&map);
    writer.name(2, 0x60, "interrupt");
    writer.name(2, 0x400, "a name that is far longer than there is room for in the memory");
    writer.name(1, 5, "bad\u{1b}[2J");
    let reader = SpanReader::attach(Arc::clone(&map), false).unwrap();
    let names = reader.names();
    assert_eq!(names[0], ((2, 0x60), "interrupt".to_owned()));
    assert_eq!(names[1].1, "a name that is far longer than there is ");
    assert_eq!(names[2], ((1, 5), "bad".to_owned()));
    assert_eq!(reader.beats(), Some(0));
    assert!(writer.beat());
    assert_eq!(reader.beats(), Some(1));
    let mut other = self::writer(&map);
    assert!(reader.is_replaced() && !writer.beat() && other.beat());
    writer.end();
    let reader = SpanReader::attach(Arc::clone(&map), false).unwrap();
    assert!(reader.beats().is_some() && reader.names().is_empty());
    other.end();
    assert_eq!(reader.beats(), None);
}

#[test]
fn an_agents_region_and_the_area_do_not_meet() {
    let map = memory();
    let plan = RegionPlan {
        cpus: 2,
        page_bytes: 4096,
        slots_per_cpu: 2,
        mode: Mode::Keep,
        control_bytes: 4096,
    };
    // A region that takes all the memory, as agents did before there were spans.
    let full_plan = plan.filling(MEMORY).unwrap();
    let side = GuestSide::create(Arc::clone(&map), &full_plan, [0; 16]).unwrap();
    let refused = SpanWriter::lay_out(Arc::clone(&map), &[0], 0, 0).map(|_| ());
    assert_eq!(refused, Err(SpansError::InUse));
    drop(side);
    let fits = plan.filling(agent_bytes(MEMORY)).unwrap();
    let mut side = GuestSide::create(Arc::clone(&map), &fits, [0; 16]).unwrap();
    let mut writer = writer(&map);
    let slots = Area::load(&map).unwrap().slots();
    for start in 0..slots * 2 {
        writer.push(1, &span(start, 1));
        side.pages[1].fill(|slot| Ok(slot.copy_from(&[0xff; 4096]))).unwrap();
    }
    writer.announce(1, Coverage::default());
    assert_eq!(SpanReader::attach(map, true).unwrap().read(1).spans.len() as u64, slots);
}

#[test]
fn memory_that_is_too_small_is_refused() {
    for (bytes, vcpus) in [(4096, 1), (100 << 10, 1), (128 << 10, 4096), (1 << 20, 0)] {
        assert!(Area::for_memory(bytes, vcpus).is_err(), "{bytes} {vcpus}");
    }
    assert_eq!(Area::for_memory(8 << 20, 64).unwrap().bytes, 1 << 20);
    let small = Arc::new(SharedMap::of_bytes(&[0; 4096]).unwrap());
    assert_eq!(SpanReader::attach(small, false).err(), Some(SpansError::NotThere));
    assert_eq!(SpanReader::attach(memory(), false).err(), Some(SpansError::NotThere));
}

proptest! {
    #[test]
    fn a_span_is_three_words(span in any_span()) {
        let code = span.code;
        let words = (span.start_tsc, span.ticks, span.word());
        let back = Span::of_words(words.0, words.1, words.2);
        prop_assert_eq!(back, Some(Span { code, ..span }));
    }

    /// With any memory content, a reader ends, and returns at most one span per slot.
    #[test]
    fn garbage_is_survived(
        vcpus in prop_oneof![0..5_u64, any::<u64>()],
        words in prop::collection::vec(
            (0..MEMORY / 8, prop_oneof![0..64_u64, any::<u64>()]), 0..200),
        rings in prop::collection::vec((0..4_usize, 0..5_usize, any::<u64>()), 0..20),
    ) {
        let map = memory();
        let _writer = writer(&map);
        let area = Area::load(&map).unwrap();
        map.store(area.head(head::VCPUS), vcpus);
        let mut reader = SpanReader::attach(Arc::clone(&map), true).ok();
        for (word, value) in words {
            map.store(word * 8, value);
        }
        for (vcpu, word, value) in rings {
            let vcpu = vcpu % 2;
            map.store(area.ring(vcpu, word * 8), value);
            map.store(area.slot(vcpu, value, slot::SEQUENCE), value.wrapping_mul(2).wrapping_add(2));
        }
        if let Some(reader) = &mut reader {
            for vcpu in 0..3 {
                let news = reader.read(vcpu);
                prop_assert!(news.spans.len() as u64 <= area.slots());
            }
            prop_assert!(reader.names().len() <= 256);
            let _ = (reader.is_replaced(), reader.beats());
        }
        map.store(area.head(head::MAGIC), MAGIC);
        let _ = SpanReader::attach(Arc::clone(&map), true).map(|mut reader| reader.read(0));
        let _ = map.load(area.ring(0, ring::POSITION));
    }
}
