//! Frames and marks that a guest passes in hypercalls.

use hypertrace::{Decoder, Marks, Stored, StoredWriter};

/// Minimum bits of an event: the end of an interrupt has 14, the first event of a frame has no
/// time.
const EVENT_BITS: usize = 10;

/// Reads `bytes` as hypercalls: a byte with the number of words, then eight bytes per word.
pub fn run(bytes: &[u8]) {
    stored(bytes);
    let Some((&count, rest)) = bytes.split_first() else { return };
    let count = usize::from(count % 14).max(1);
    let (mut decoder, mut marks, mut events) = (Decoder::default(), Marks::default(), Vec::new());
    let mut sent = 0_u64;
    let mut host_ns = 0_u64;
    for frame in rest.chunks(8 * count) {
        let word = |bytes: &[u8]| {
            u64::from_le_bytes(std::array::from_fn(|at| bytes.get(at).copied().unwrap_or(0)))
        };
        let words: Vec<u64> = frame.chunks(8).map(word).collect();
        // Time mostly advances.
        host_ns = host_ns.wrapping_add(words.last().copied().unwrap_or(0) >> 20);
        let before = events.len();
        decoder.frame(&words, host_ns, &mut events);
        let new = events.get(before..).unwrap_or_default();
        assert!(new.len() <= 64 * words.len() / EVENT_BITS, "{} events", new.len());
        assert!(new.iter().all(|event| event.stamp_ns <= host_ns), "an event after its frame");
        assert!(new.is_sorted_by_key(|event| event.stamp_ns), "events out of order");
        events.clear();
        let piece = std::array::from_fn(|at| words.get(at).copied().unwrap_or(0));
        if let Some(mark) = marks.piece(0, piece, host_ns) {
            assert!(mark.text.len() <= 3 * hypertrace::MARK_BYTES, "a long mark");
        }
        if count > 3 && sent % 7 == 6 {
            decoder.gap();
        }
        sent += 1;
    }
    let losses = decoder.losses();
    let bad = losses.frames_damaged + losses.frames_early + losses.frames_unknown;
    assert!(bad + losses.frames_cut <= sent, "more frames than were sent");
}

/// Reads `bytes` as the records of a file of frames.
fn stored(bytes: &[u8]) {
    let file = [&StoredWriter::new().take(), bytes].concat();
    let read = Stored::read(&file);
    assert!(read.is_some(), "a head that was just written");
    let stored = read.unwrap_or_default();
    for cpu in stored.cpus.values() {
        let (mut decoder, mut events) = (Decoder::default(), Vec::new());
        for frame in &cpu.frames {
            let clock = cpu.relation.map(|relation| move |tsc| relation.host_tsc(tsc));
            let clock = clock.as_ref().map(|clock| clock as &dyn Fn(u64) -> u64);
            let before = events.len();
            decoder.stored(&frame.words(), clock, &mut events);
            assert!(events.len() - before <= 64 * hypertrace::MAX_WORDS / EVENT_BITS);
            decoder.missed(frame.position() % 3);
        }
        let losses = decoder.losses();
        assert!(losses.frames_damaged <= cpu.frames.len() as u64, "more frames than there are");
    }
}
