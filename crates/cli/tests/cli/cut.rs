//! Recordings that somebody cuts short while they are read.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::inputs::write_raw_pages;
use crate::tool::{command, repository};

const LARGE: &str = "fixtures/x86-svm/nested.dat";

/// Runs with an output that nobody reads at first, so that it stops in the middle of its input; cuts
/// the file then, and lets it go on.
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

#[track_caller]
fn is_told((code, err): (Option<i32>, String), file: &Path, offset: u64) {
    assert_eq!(code, Some(1), "{err}");
    let (name, offset) = (file.to_str().unwrap(), format!("offset {offset} "));
    assert!(err.contains(name) && err.contains(&offset), "{err}");
    assert_eq!(err.matches("was cut").count(), 1, "{err}");
}

#[test]
fn a_recording_that_is_cut_while_it_is_read_is_an_error_that_names_file_and_offset() {
    let folder = tempfile::tempdir().unwrap();
    // Compressed chunks are read, bare pages are mapped.
    let chunks = folder.path().join("chunks.dat");
    fs::copy(repository().join(LARGE), &chunks).unwrap();
    is_told(cut_amid(&["events"], &chunks, &chunks, 5000), &chunks, 5000);
    let pages = folder.path().join("pages");
    fs::create_dir(&pages).unwrap();
    write_raw_pages(LARGE, &pages, |cpu| format!("cpu{cpu}"));
    let largest: PathBuf = fs::read_dir(&pages)
        .unwrap()
        .map(|one| one.unwrap().path())
        .filter(|one| one.file_name().unwrap().to_str().unwrap().starts_with("cpu"))
        .max_by_key(|one| fs::metadata(one).unwrap().len())
        .unwrap();
    is_told(cut_amid(&["events"], &pages, &largest, 8192), &largest, 8192);
}
