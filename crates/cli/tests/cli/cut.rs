//! Recordings that are truncated while they are read.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::inputs::write_raw_pages;
use crate::tool::{command, repository};

const LARGE: &str = "fixtures/x86-svm/nested.dat";
const SMALL: &str = "fixtures/x86-svm/hypertrace.dat";

/// Runs with an output pipe that is not read at first, so that the program stops in the middle of its
/// input; then truncates the file, and lets the program continue.
#[track_caller]
fn cut_amid(args: &[&str], input: &Path, cut: &Path, to_bytes: u64) -> (Option<i32>, String) {
    let mut child: Child = command()
        .args(args)
        .arg(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0; 4096]).unwrap();
    File::options().write(true).open(cut).unwrap().set_len(to_bytes).unwrap();
    std::io::copy(&mut out, &mut std::io::sink()).unwrap();
    let ended = child.wait_with_output().unwrap();
    (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
}

/// A named pipe; a reader waits until a writer opens it.
fn named_pipe(folder: &Path) -> PathBuf {
    let path = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// Passes a second input through a pipe: when that is opened, `input` is mapped, and only its header
/// has been read. Then `input` is truncated.
#[track_caller]
fn cut_once_mapped(
    verb: &str,
    (input, cut): (&Path, &Path),
    to_bytes: u64,
) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, out) = (named_pipe(folder.path()), folder.path().join("out"));
    let mut child = command()
        .args([verb, "-o", out.to_str().unwrap()])
        .args([input, &pipe])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Opening for writing waits for a reader; if the program has ended instead, the test must not hang.
    let start = Instant::now();
    let mut to = loop {
        let nonblocking = 0o4000;
        if let Ok(to) = File::options().write(true).custom_flags(nonblocking).open(&pipe) {
            break to;
        }
        assert!(child.try_wait().unwrap().is_none(), "{verb} did not read the pipe");
        assert!(start.elapsed() < Duration::from_secs(60), "{verb} does not open the pipe");
        std::thread::sleep(Duration::from_millis(2));
    };
    File::options().write(true).open(cut).unwrap().set_len(to_bytes).unwrap();
    let bytes = fs::read(repository().join(SMALL)).unwrap();
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        match to.write(rest) {
            Ok(count) => rest = rest.get(count..).unwrap(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(error) => panic!("{verb}: {error}"),
        }
    }
    drop(to);
    let ended = child.wait_with_output().unwrap();
    assert!(!out.exists(), "{verb} left what it had written");
    (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
}

#[track_caller]
fn assert_reported((code, err): (Option<i32>, String), file: &Path, offset: u64) {
    assert_eq!(code, Some(1), "{err}");
    let (name, offset) = (file.to_str().unwrap(), format!("offset {offset} "));
    assert!(err.contains(name) && err.contains(&offset), "{err}");
    assert_eq!(err.matches("was truncated").count(), 1, "{err}");
}

#[test]
fn a_recording_that_is_cut_while_it_is_read_is_an_error_that_names_file_and_offset() {
    let folder = tempfile::tempdir().unwrap();
    // Compressed chunks are read, bare pages are mapped.
    let chunks = folder.path().join("chunks.dat");
    fs::copy(repository().join(LARGE), &chunks).unwrap();
    assert_reported(cut_amid(&["events"], &chunks, &chunks, 5000), &chunks, 5000);
    let pages = folder.path().join("pages");
    fs::create_dir(&pages).unwrap();
    write_raw_pages(LARGE, &pages, |cpu| format!("cpu{cpu}"));
    let largest = largest_of(&pages);
    assert_reported(cut_amid(&["events"], &pages, &largest, 8192), &largest, 8192);
}

/// The file with the most pages.
fn largest_of(pages: &Path) -> PathBuf {
    fs::read_dir(pages)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("cpu"))
        .max_by_key(|path| fs::metadata(path).unwrap().len())
        .unwrap()
}

/// Bare pages are read from mapped memory: missing pages raise SIGBUS.
#[test]
fn reports_on_a_recording_that_is_cut_once_it_is_open_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let (chunks, pages) = (folder.path().join("chunks.dat"), folder.path().join("pages"));
    for verb in ["exits", "report", "cpu"] {
        fs::copy(repository().join(LARGE), &chunks).unwrap();
        assert_reported(cut_once_mapped(verb, (&chunks, &chunks), 5000), &chunks, 5000);
        let _ = fs::remove_dir_all(&pages);
        fs::create_dir(&pages).unwrap();
        write_raw_pages(LARGE, &pages, |cpu| format!("cpu{cpu}"));
        let largest = largest_of(&pages);
        assert_reported(cut_once_mapped(verb, (&pages, &largest), 8192), &largest, 8192);
    }
}
