//! A guest that sends the max amount of text: the memory that its host and a reader need.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use channel::wire::{Text, TextKind};

use crate::mutated_files::anonymous_kib;
use crate::played_agent::play;
use crate::tool::lock_tracing;

/// Nearly the max size of a guest's text.
const TEXT_BYTES: usize = 46 << 20;
const PART_BYTES: usize = 29 << 10;
/// Max memory of a recorder with this text: the text once, and half as much for everything else.
const MAX_KIB: u64 = (TEXT_BYTES as u64 * 3 / 2) >> 10;
const PATIENCE: Duration = Duration::from_secs(120);

/// Symbols that don't compress well.
fn part(at: usize) -> Vec<u8> {
    let line = |line: usize| {
        let number = (at * 1000 + line).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        format!("{number:016x} t symbol_{}\n", number >> 40)
    };
    let mut bytes: Vec<u8> = (0..).flat_map(|at| line(at).into_bytes()).take(PART_BYTES).collect();
    bytes[PART_BYTES - 1] = b'\n';
    bytes
}

/// Waits for its end; returns its peak memory, in KiB.
fn peak_of(mut child: Child) -> u64 {
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let (start, mut peak_kib) = (Instant::now(), 0);
    while child.try_wait().unwrap().is_none() {
        peak_kib = peak_kib.max(anonymous_kib(&status));
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
        }
        thread::sleep(Duration::from_millis(1));
    }
    assert!(child.wait().unwrap().success());
    peak_kib
}

fn hyperscope() -> Command {
    let other = std::env::var_os("HYPERSCOPE_UNDER_TEST");
    Command::new(other.unwrap_or_else(|| env!("CARGO_BIN_EXE_hyperscope").into()))
}

#[test]
fn texts_of_a_guest_are_in_memory_once() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (socket, session) = (folder.path().join("agent"), folder.path().join("s"));
    play(&socket, |mut agent| {
        let _pages = agent.begin_with(|agent| {
            let parts = TEXT_BYTES / PART_BYTES;
            for at in 0..parts {
                let (kind, last) = (TextKind::Kallsyms, at + 1 == parts);
                let text = Text { kind, last, bytes: part(at) };
                agent.say(&channel::wire::Message::Text(text)).unwrap();
            }
        });
        agent.wait_for_stop();
        agent.end();
        agent.ignore();
    });
    let recorder = hyperscope()
        .args(["record", "--for", "100ms", "-e", "sched_process_exec", "--guest"])
        .arg(format!("g=unix:{}", socket.display()))
        .args(["--guest-event", "sched_process_exec", "-o"])
        .arg(&session)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let recorder_kib = peak_of(recorder);
    let guest = session.join("guest-g.dat");
    let file_bytes = fs::metadata(&guest).unwrap().len();
    let reader_kib = peak_of(read(&guest));
    eprintln!(
        "{} MiB of text: recorder {} MiB, file {} MiB, info {} MiB",
        TEXT_BYTES >> 20,
        recorder_kib >> 10,
        file_bytes >> 20,
        reader_kib >> 10
    );
    assert!(file_bytes > 1 << 20, "the text is not there");
    assert!(recorder_kib < MAX_KIB, "{} MiB", recorder_kib >> 10);
    assert!(reader_kib < 256 << 10, "{} MiB", reader_kib >> 10);
}

fn read(file: &Path) -> Child {
    hyperscope().arg("info").arg(file).stdout(Stdio::null()).spawn().unwrap()
}
