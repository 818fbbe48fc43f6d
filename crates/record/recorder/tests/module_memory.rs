//! What the module's own code stores in memory is what is taken out, also from one who died.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use channel::{Access, NoFrames, SharedMap, TakeFrom, frame_rings};
use hypertrace::{Decoder, Event, FrameWords, Kind, Losses, Stored, StoredWriter, ToHost};
use proptest::prelude::*;

/// Of the memory: what QEMU's least ivshmem device for this has.
const BYTES: usize = 256 << 10;
/// Slots of a CPU, of two, in a quarter of that.
const SLOTS: u64 = 128;
/// The module's header.
const HEADER: u64 = BYTES as u64 / 4 * 3;

fn program() -> &'static Path {
    static PROGRAM: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let make = || {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("ring_switches");
        let made = Command::new("cc")
            .args(["-O2", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined"])
            .args(["-fno-sanitize-recover", "-fno-strict-aliasing", "-o"])
            .arg(&program)
            .arg("-I")
            .arg(here.join("../../../kmod/hyperscope_guest"))
            .arg(here.join("tests/ring_switches.c"))
            .status();
        assert!(made.unwrap().success(), "the module's code doesn't compile");
        (folder, program)
    };
    &PROGRAM.get_or_init(make).1
}

/// A memory that a guest with two CPUs has.
struct Memory(tempfile::NamedTempFile);

impl Memory {
    fn new() -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(BYTES as u64).unwrap();
        Self(file)
    }

    /// CPU 1 switches `count` times.
    fn store(&self, first: u64, count: u64, end: &str) {
        let output = Command::new(program())
            .arg(self.0.path())
            .args([BYTES, 2, 1].map(|number| number.to_string()))
            .args([first, count].map(|number| number.to_string()))
            .arg(end)
            .output()
            .unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), SLOTS.to_string());
    }

    fn map(&self) -> Arc<SharedMap> {
        Arc::new(SharedMap::open(self.0.path(), Access::Read).unwrap())
    }

    fn file(&self) -> &File {
        self.0.as_file()
    }

    /// What CPU 1 stored, read back through a file as a recorder writes it; and frames missed.
    fn read_back(&self) -> (Vec<Event>, Losses, u64) {
        let mut rings = frame_rings(&self.map(), TakeFrom::Oldest).unwrap();
        assert_eq!((rings.len(), rings[0].take()), (2, None));
        let mut writer = StoredWriter::new();
        let relation = ToHost { scaling: 1, fraction: 0, offset: 7000 };
        writer.relation(1, relation);
        while let Some(frame) = rings[1].take().or_else(|| rings[1].take_open()) {
            let words = FrameWords::new(frame.filled, frame.words, frame.is_whole);
            writer.frame(1, frame.position, &words);
        }
        assert_eq!(rings[1].damage(), 0);
        let bytes = writer.take();
        let stored = Stored::read(&bytes).unwrap();
        assert_eq!((stored.damaged, stored.cpus[&1].relation), (0, Some(relation)));
        let (mut decoder, mut events) = (Decoder::default(), Vec::new());
        for frame in &stored.cpus[&1].frames {
            decoder.stored(&frame.words(), Some(&|tsc| relation.host_tsc(tsc)), &mut events);
        }
        (events, decoder.losses(), rings[1].missed())
    }
}

/// The switch with a number, as the program makes it.
fn assert_switch(event: &Event, number: u64) {
    let pid = |number: u64| u32::try_from(1 + number % 50).unwrap();
    let Kind::Switch { next: Some(next), .. } = event.kind else { panic!("{event:?}") };
    assert_eq!((event.running.unwrap().pid, next.pid), (pid(number), pid(number + 1)));
    // Cycles of the host's, which stand for its nanoseconds here.
    assert_eq!(event.stamp_ns, 32_000 * (number + 1) + 7000);
}

#[test]
fn every_event_is_there_at_once_at_its_time() {
    for end in ["end", "killed"] {
        for count in [1, 2, 30, 40, 1000] {
            let memory = Memory::new();
            memory.store(0, count, end);
            let (events, losses, missed) = memory.read_back();
            assert_eq!((losses, missed), (Losses::default(), 0), "{count} {end}");
            assert_eq!(events.len() as u64, count, "{end}");
            (0..).zip(&events).for_each(|(number, event)| assert_switch(event, number));
        }
    }
}

#[test]
fn a_module_that_starts_again_leaves_what_was_there() {
    let memory = Memory::new();
    memory.store(0, 45, "killed");
    memory.store(45, 45, "end");
    memory.store(90, 10, "killed");
    let (events, losses, missed) = memory.read_back();
    assert_eq!((events.len(), losses, missed), (100, Losses::default(), 0));
    (0..).zip(&events).for_each(|(number, event)| assert_switch(event, number));
}

#[test]
fn a_full_ring_holds_the_last_and_counts_the_rest() {
    let memory = Memory::new();
    let mut early = {
        memory.store(0, 1, "end");
        frame_rings(&memory.map(), TakeFrom::Oldest).unwrap().remove(1)
    };
    memory.store(1, 9999, "killed");
    let (events, losses, _) = memory.read_back();
    // How they are to be read stands in one of those that are gone: it comes again after 1024.
    assert_eq!((events.len(), losses.frames_early), (0, SLOTS));
    let frames = std::iter::from_fn(|| early.take()).collect::<Vec<_>>();
    // The one that is not ended took the oldest one's slot.
    assert_eq!(frames.len() as u64, SLOTS - 1);
    assert_eq!(early.missed() + SLOTS - 1, frames.last().unwrap().position + 1);
    assert!(frames.windows(2).all(|pair| pair[0].position + 1 == pair[1].position));
}

#[test]
fn memory_without_a_module_differs_from_one_that_is_not_understood() {
    let memory = Memory::new();
    let none = |memory: &Memory| frame_rings(&memory.map(), TakeFrom::Oldest).unwrap_err();
    assert_eq!(none(&memory), NoFrames::NotReady);
    memory.store(0, 1, "end");
    let put = |at: u64, word: u64| {
        memory.file().write_all_at(&word.to_le_bytes(), HEADER + at).unwrap();
    };
    put(8, 9);
    assert_eq!(none(&memory), NoFrames::Version(9));
    put(8, 1);
    for (at, wrong, right) in [(16, 1 << 40, BYTES as u64 / 4), (24, 1 << 50, 2), (32, 96, SLOTS)] {
        put(at, wrong);
        assert!(matches!(none(&memory), NoFrames::Sizes { .. }), "{at}");
        put(at, right);
    }
    assert!(frame_rings(&memory.map(), TakeFrom::Oldest).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A guest that scribbles over its memory makes its own events wrong or missing, and no look
    /// take longer than the ring is long.
    #[test]
    fn whatever_is_in_the_memory_is_bounded(
        words in proptest::collection::vec((0..8000_u64, any::<u64>()), 1..60),
        heads in proptest::collection::vec(prop_oneof![any::<u64>(), 0..2000_u64], 1..6),
    ) {
        let memory = Memory::new();
        memory.store(0, 2000, "killed");
        let mut ring = frame_rings(&memory.map(), TakeFrom::Oldest).unwrap().remove(1);
        for (word, value) in words {
            let at = HEADER + 4096 + 8 * (word % ((BYTES as u64 / 4 - 4096) / 8));
            memory.file().write_all_at(&value.to_le_bytes(), at).unwrap();
        }
        for head in heads {
            let at = HEADER + 4096 + 128 * (SLOTS + 1);
            memory.file().write_all_at(&head.to_le_bytes(), at).unwrap();
            let (mut decoder, mut events) = (Decoder::default(), Vec::new());
            let mut count = 0;
            while let Some(frame) = ring.take().or_else(|| ring.take_open()) {
                count += 1;
                let words = FrameWords::new(frame.filled, frame.words, frame.is_whole);
                decoder.stored(&words, None, &mut events);
            }
            prop_assert!(count <= 2 * SLOTS, "{count}");
        }
    }
}
