//! Runs the packer, which is written in C.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use hypertrace::{Decoder, Event, Losses};

/// At 2 GHz and 32 cycles per unit, a unit is 16 ns.
pub(crate) const UNIT_NS: u64 = 16;

/// A frame and the time at which it was sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) unit: u64,
    pub(crate) words: Vec<u64>,
}

/// Packs lines of events in a stream of frames with `words` words.
pub(crate) fn pack(words: usize, cpu: u16, lines: &[String]) -> Vec<Sent> {
    let mut child =
        Command::new(program()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = format!("start {words} 5 2000000 {cpu}\n{}\n", lines.join("\n"));
    // Frames are read only afterwards; without a thread, both sides would block on full pipes.
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let frame = |line: &str| {
        let mut numbers = line.split(' ');
        let unit = numbers.next().unwrap().parse().unwrap();
        let words = numbers.map(|word| u64::from_str_radix(word, 16).unwrap()).collect();
        Sent { unit, words }
    };
    String::from_utf8(output.stdout).unwrap().lines().map(frame).collect()
}

/// Decodes frames, each at the time at which it was sent.
pub(crate) fn decode<'s>(frames: impl IntoIterator<Item = &'s Sent>) -> (Vec<Event>, Losses) {
    let (mut decoder, mut events) = (Decoder::default(), Vec::new());
    for frame in frames {
        decoder.frame(&frame.words, frame.unit * UNIT_NS, &mut events);
    }
    (events, decoder.losses())
}

/// The compiled program.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let make = || {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("pack_lines");
        let made = Command::new("cc")
            .args(["-O2", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined"])
            .args(["-fno-sanitize-recover", "-fno-strict-aliasing", "-o"])
            .arg(&program)
            .arg("-I")
            .arg(here.join("../../../kmod/hyperscope_guest"))
            .arg(here.join("tests/packed/pack_lines.c"))
            .status();
        assert!(made.unwrap().success(), "the packing code doesn't compile");
        (folder, program)
    };
    &PROGRAM.get_or_init(make).1
}
