//! The file that a BPF collector writes next to a host's recording.

use hypertrace::collected::{Begin, ClockPair, Counts, Entries, Entry, Hypercall, VERSION, Words};
use sources::Collected;

/// Reads `bytes` as a collector's file.
pub fn run(bytes: &[u8]) {
    let mut entries = Entries::new(bytes);
    let (mut entry_bytes, mut hypercalls) = (0_u64, 0_u64);
    for entry in entries.by_ref() {
        let rewritten = entry.to_bytes();
        // Entries with more fields than this version knows, and of unknown types, are truncated.
        let mut again = Entries::new(&rewritten);
        assert_eq!(again.next().as_ref(), Some(&entry), "an entry is another one when written");
        assert_eq!(again.damaged_bytes(), 0, "an entry is damaged when written");
        entry_bytes += rewritten.len() as u64;
        hypercalls += u64::from(matches!(entry, Entry::Hypercall(_)));
    }
    let all = bytes.len() as u64;
    assert!(entry_bytes + entries.damaged_bytes() <= all, "more entries than bytes");
    let Ok(file) = Collected::of_bytes("fuzz".as_ref(), bytes.to_vec()) else { return };
    assert_eq!(file.len(), hypercalls, "hypercalls are counted otherwise");
    let clock = file.conversion();
    for mono_ns in [0, 1 << 40, u64::MAX] {
        let time = clock.trace(mono_ns);
        assert!(time.is_none() || clock.pairs() > 0, "a time without a reading");
    }
}

/// A file with an entry of each type, and the same file with a damaged entry.
#[must_use]
pub fn files() -> Vec<(String, Vec<u8>)> {
    let begin = Begin { version: VERSION, words: 13, clock: "x86-tsc".into(), ..Begin::default() };
    let pair = |at: u64| {
        let (mono_before_ns, mono_after_ns) = (at, at + 80);
        Entry::Pair(ClockPair { mono_before_ns, trace: 3 * at, mono_after_ns })
    };
    let hypercall = |at: u64| {
        let words = Words::new(&[0x13c_e850_0000_4700, 0x3c80_1900_0e01_8428, at]);
        let (number, guest_rip) = (0x4853_0000, Some(0xffff_ffff_c04f_ddc2));
        let known =
            Hypercall { exit_mono_ns: 1000 * at, number, guest_rip, ..Hypercall::default() };
        Entry::Hypercall(Hypercall { thread: 110, words, ..known })
    };
    let counts = Counts { hypercalls: 3, ring_full: 1, ..Counts::default() };
    let all = [
        Entry::Begin(begin),
        pair(1000),
        hypercall(1),
        Entry::Unknown(77),
        hypercall(2),
        pair(9000),
        Entry::Counts(counts),
    ];
    let file: Vec<u8> = all.iter().flat_map(Entry::to_bytes).collect();
    let mut damaged = file.clone();
    if let Some(byte) = damaged.get_mut(120) {
        *byte ^= 4;
    }
    vec![("made".to_owned(), file), ("made-damaged".to_owned(), damaged)]
}
