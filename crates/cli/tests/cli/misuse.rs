//! Recordings that can't belong together, names that are misspelt, recordings that are compressed.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::tool::{hyperscope, output_of, repository};

const HOST: &str = "fixtures/x86-svm/host-guest.dat";
const GUEST: &str = "fixtures/x86-svm/host-guest.guest.dat";
const FOREIGN: &str = "fixtures/arm64/A.guest.dat";

#[track_caller]
fn fails(args: &[&str], code: i32, words: &[&str]) {
    let run = hyperscope(args);
    assert_eq!((run.code, run.out.as_str()), (code, ""), "{args:?}: {}", run.err);
    for word in words {
        assert!(run.err.contains(word), "{args:?}: no {word:?} in {}", run.err);
    }
    assert_eq!(run.err.lines().count(), 1, "{args:?}: {}", run.err);
}

#[test]
fn a_recording_that_is_named_twice_is_code_2() {
    let again = "./fixtures/arm64/../x86-svm/host-guest.dat";
    for verb in ["exits", "info", "events", "cpu", "path", "nested", "align", "calls", "boot"] {
        fails(&[verb, HOST, again], 2, &[again, "named twice"]);
    }
    fails(&["diff", HOST, again], 2, &[again, "named twice"]);
    fails(&["diff", "cpu", HOST, "--", GUEST, again], 2, &[again, "named twice"]);
}

#[test]
fn a_host_against_a_guest_is_code_2() {
    for report in ["exits", "nested", "path", "cpu"] {
        fails(&["diff", report, HOST, GUEST], 2, &["B (", GUEST, "no VM", "A has"]);
    }
    fails(&["diff", GUEST, HOST], 2, &["A (", GUEST, "guest's recording"]);
}

#[test]
fn a_guest_of_another_host_is_code_2() {
    for verb in ["cpu", "path", "events"] {
        fails(&[verb, HOST, FOREIGN], 2, &[FOREIGN, "another host"]);
    }
    // What it was measured against is not known here: it may be this host's.
    assert_eq!(hyperscope(&["cpu", HOST, GUEST]).code, 0);
}

/// What a guest's recording holds is shown; what it can't hold is said, with where it is.
#[test]
fn a_guest_alone_is_said_to_lack_its_host() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    for args in [&["report", "-o", page.to_str().unwrap(), GUEST][..], &["path", GUEST]] {
        let run = hyperscope(args);
        assert!(run.code == 0 && run.err.contains("is in the host's recording"), "{}", run.err);
        let both = hyperscope(&[args, &[HOST]].concat());
        assert!(both.code == 0 && !both.err.contains("host's recording"), "{}", both.err);
    }
}

/// An export of a guest alone is of the guest; one with another's host can't be on one clock.
#[test]
fn a_guest_is_not_exported_with_another_guests_host() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("out");
    let to = to.to_str().unwrap();
    for format in ["perfetto", "chrome", "firefox", "jsonl", "csv", "tracedat"] {
        fails(&["export", "--to", format, "-o", to, HOST, FOREIGN], 2, &[FOREIGN, "another host"]);
        assert_eq!(hyperscope(&["export", "--to", format, "-o", to, GUEST]).code, 0, "{format}");
        let _ = fs::remove_file(to);
    }
}

#[test]
fn tasks_of_guests_take_a_guests_recording() {
    fails(&["cpu", "--by", "task", HOST], 2, &["--by task", "guest's recording"]);
    assert!(output_of(&["cpu", "--by", "task", HOST, GUEST]).contains("Threads of guests"));
}

#[test]
fn names_like_a_misspelt_one_are_named() {
    fails(&["events", "-e", "kvm_exti", HOST], 1, &["kvm_exti", "did you mean kvm_exit"]);
    fails(&["path", "--start", "kvm:kvm_exti", HOST], 1, &["did you mean kvm:kvm_exit"]);
    fails(&["events", "-e", "zzzzzz", HOST], 1, &["no event matches zzzzzz; hyperscope info"]);
}

/// A recording compressed as a whole, by what ends its name.
fn packed(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    let mut file = File::create(&path).unwrap();
    if name.ends_with(".gz") {
        let mut gzip = GzEncoder::new(file, Compression::default());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap();
    } else {
        zstd::stream::copy_encode(bytes, &mut file, 1).unwrap();
    }
    path.to_str().unwrap().to_owned()
}

#[test]
fn compressed_recordings_and_texts_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let recording = fs::read(repository().join(HOST)).unwrap();
    let text = output_of(&["events", HOST]);
    let exits = |path: &str| output_of(&["exits", "--format", "csv", path]);
    fs::write(folder.path().join("plain.txt"), &text).unwrap();
    let plain = exits(folder.path().join("plain.txt").to_str().unwrap());
    for kind in ["gz", "zst"] {
        let path = packed(folder.path(), &format!("trace.dat.{kind}"), &recording);
        assert_eq!(exits(&path).replace(&path, HOST), exits(HOST), "{kind}");
        let path = packed(folder.path(), &format!("trace.txt.{kind}"), text.as_bytes());
        assert_eq!(exits(&path).lines().count(), plain.lines().count(), "{kind}");
    }
}

#[test]
fn what_unpacks_to_too_much_or_twice_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for kind in ["gz", "zst"] {
        let bomb = packed(folder.path(), &format!("bomb.{kind}"), &vec![0; 8 << 20]);
        assert!(fs::metadata(&bomb).unwrap().len() < 64 << 10);
        fails(&["exits", "--max-spool", "4M", &bomb], 1, &[&bomb, "4194304", "--max-spool"]);
        let once = fs::read(&bomb).unwrap();
        let twice = packed(folder.path(), &format!("twice.{kind}"), &once);
        fails(&["exits", &twice], 1, &[&twice, "compressed"]);
        let cut = folder.path().join(format!("cut.{kind}"));
        fs::write(&cut, &once[..once.len() / 2]).unwrap();
        fails(&["exits", cut.to_str().unwrap()], 1, &["cannot read", cut.to_str().unwrap()]);
    }
    let other = folder.path().join("trace.dat.xz");
    fs::write(&other, b"\xfd7zXZ\0 and more").unwrap();
    fails(&["exits", other.to_str().unwrap()], 1, &["xz -dc", "hyperscope VERB -"]);
}
