//! Spans of vCPUs that a host publishes, in memory that other writers can change between any two
//! steps of either side.
//!
//! Four bytes are a step: the host adds a span, publishes, or lays the ring out again; a guest
//! reads; or another writer corrupts the area.

use std::sync::Arc;

use shmring::SharedMap;
use shmring::spans::{Activity, By, Coverage, Span, SpanReader, SpanWriter, spans_part};
use steal_viewer::Follower;

/// Size of the smallest memory that has an area.
const MEMORY_BYTES: usize = 512 << 10;
/// Maximum steps; more find nothing new.
const MAX_STEPS: usize = 4096;
const VCPUS: [u32; 2] = [0, 7];

/// Runs the story.
pub fn run(bytes: &[u8]) {
    let Ok(map) = SharedMap::of_bytes(&vec![0; MEMORY_BYTES]) else { panic!("no memory") };
    let map = Arc::new(map);
    let mut story = Story { writer: lay_out(&map), map, reader: None, now: 1 };
    for step in bytes.chunks_exact(4).take(MAX_STEPS) {
        let &[what, low, high, value] = step else { continue };
        let place = usize::from(u16::from_le_bytes([low, high]));
        match what % 8 {
            0 | 1 => story.push(place, value),
            2 => story.announce(value),
            3 | 4 => story.read(),
            5 => story.start(value),
            _ => story.scribble(place, value),
        }
    }
    story.read();
}

fn lay_out(map: &Arc<SharedMap>) -> Option<SpanWriter> {
    SpanWriter::lay_out(Arc::clone(map), &VCPUS, 1_000_000_000, 1).ok()
}

struct Story {
    map: Arc<SharedMap>,
    writer: Option<SpanWriter>,
    reader: Option<(SpanReader, Follower)>,
    now: u64,
}

impl Story {
    fn push(&mut self, ticks: usize, value: u8) {
        let pick = |count: usize| usize::from(value) % count;
        let activity =
            Activity::ALL.get(pick(Activity::ALL.len())).copied().unwrap_or(Activity::Unknown);
        let by = By::ALL.get(pick(By::ALL.len())).copied().unwrap_or_default();
        let span = Span {
            start_tsc: self.now,
            ticks: ticks as u64,
            activity,
            by,
            begins_exit: value & 8 != 0,
            code: (value & 16 != 0).then_some(value.into()),
            isa: value & 3,
            level: value >> 6,
        };
        self.now += ticks as u64 + u64::from(value);
        if let Some(writer) = &mut self.writer {
            writer.push(usize::from(value >> 7), &span);
            writer.name(span.isa, value.into(), "hlt");
        }
    }

    fn announce(&mut self, lost: u8) {
        let coverage = Coverage { from_tsc: 1, to_tsc: self.now, lost_events: lost.into() };
        if let Some(writer) = &mut self.writer {
            (0..VCPUS.len()).for_each(|index| writer.announce(index, coverage));
            let _ = writer.beat();
        }
    }

    fn read(&mut self) {
        if self.reader.as_ref().is_none_or(|(reader, _)| reader.is_replaced()) {
            self.reader = SpanReader::attach(Arc::clone(&self.map), false).ok().map(|reader| {
                let follower = Follower::new(&reader);
                (reader, follower)
            });
        }
        let Some((reader, follower)) = &mut self.reader else { return };
        let mut last = [0; 4096];
        follower.look(reader, &mut |index, span| {
            let last = last.get_mut(index).map(|last| std::mem::replace(last, span.end_tsc()));
            assert!(last <= Some(span.start_tsc), "spans go back");
        });
        for shares in follower.interval().vcpus {
            assert_eq!(
                shares.running() + shares.away.total(),
                shares.ticks(),
                "parts do not add up"
            );
        }
        for (_, name) in reader.names() {
            assert!(name.len() <= 40 && !name.contains(['"', '\\', '\u{1b}', '\n']));
        }
        let _ = (reader.beats(), reader.ticks_per_second(), reader.interval_ns());
    }

    fn start(&mut self, value: u8) {
        if value & 1 == 0 {
            self.writer = lay_out(&self.map);
        } else {
            self.reader = None;
        }
    }

    /// Another writer stores a word in the area, most often near its headers.
    fn scribble(&mut self, place: usize, value: u8) {
        let Some((begin, bytes)) = spans_part(MEMORY_BYTES) else { return };
        let word = match value {
            0xf0.. => u64::MAX - u64::from(value & 3),
            0xe0.. => self.now.wrapping_mul(2),
            _ => value.into(),
        };
        let at = begin + place % bytes;
        self.map.store(at & !7, word);
    }
}
