//! Recordings that can't belong together, misspelt names, compressed recordings.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::tool::{command, hyperscope, output_of, repository};

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
        fails(&[verb, HOST, again], 2, &[again, "given twice"]);
    }
    fails(&["diff", HOST, again], 2, &[again, "given twice"]);
    fails(&["diff", "cpu", HOST, "--", GUEST, again], 2, &[again, "given twice"]);
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
    // The guest's file does not name its host here, so it may be this one.
    assert_eq!(hyperscope(&["cpu", HOST, GUEST]).code, 0);
}

/// The contents of a guest's recording are shown; for missing parts, the output says where they
/// are.
#[test]
fn a_guest_alone_is_said_to_lack_its_host() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    for args in [&["report", "-o", page.to_str().unwrap(), GUEST][..], &["path", GUEST]] {
        let run = hyperscope(args);
        assert!(run.code == 0 && run.err.contains("add the recording of its host"), "{}", run.err);
        let both = hyperscope(&[args, &[HOST]].concat());
        assert!(both.code == 0 && !both.err.contains("recording of its host"), "{}", both.err);
    }
}

/// An export of a guest alone is allowed; with another guest's host there is no common clock.
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
    fails(&["cpu", "--by", "task", HOST], 2, &["--by task", "guest recording"]);
    assert!(output_of(&["cpu", "--by", "task", HOST, GUEST]).contains("Guest threads"));
}

#[test]
fn names_like_a_misspelt_one_are_named() {
    fails(&["events", "-e", "kvm_exti", HOST], 1, &["kvm_exti", "did you mean kvm_exit"]);
    fails(&["path", "--start", "kvm:kvm_exti", HOST], 1, &["did you mean kvm:kvm_exit"]);
    fails(&["events", "-e", "zzzzzz", HOST], 1, &["no event matches zzzzzz; hyperscope info"]);
}

/// A compressed recording; its name's suffix selects the compression.
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
        fails(&["exits", cut.to_str().unwrap()], 1, &["cut short", cut.to_str().unwrap()]);
    }
    let other = folder.path().join("trace.dat.xz");
    fs::write(&other, b"\xfd7zXZ\0 and more").unwrap();
    fails(&["exits", other.to_str().unwrap()], 1, &["xz -dc", "hyperscope VERB -"]);
}

/// Addresses of one guest must not be resolved with another guest's functions.
#[test]
fn functions_of_another_hosts_guest_are_code_2() {
    fails(&["exits", "--by", "symbol", HOST, FOREIGN], 2, &[FOREIGN, "another host"]);
    let run = hyperscope(&["exits", "--by", "symbol", HOST, GUEST]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
}

#[test]
fn a_guest_of_another_host_or_architecture_is_not_aligned() {
    fails(&["align", HOST, FOREIGN], 2, &[FOREIGN, "another host"]);
    // It names no host, but has another architecture.
    let arm = "fixtures/arm64/D.dat";
    let guest = "fixtures/x86-svm/virtio.guest.dat";
    for verb in ["align", "cpu", "path", "events"] {
        fails(&[verb, arm, guest], 2, &[guest, "x86", arm, "arm64"]);
    }
    fails(&["exits", "--by", "symbol", arm, guest], 2, &["x86", "arm64"]);
}

#[test]
fn recordings_of_different_architectures_are_not_compared() {
    let arm = "fixtures/arm64/A.dat";
    for report in ["exits", "nested", "path", "cpu", "profile", "boot"] {
        fails(&["diff", report, HOST, arm], 2, &[HOST, "x86", arm, "arm64", "cannot be compared"]);
    }
    // Intel and AMD have different names for exits, but are one architecture.
    assert_eq!(hyperscope(&["diff", HOST, "fixtures/x86-vmx/smp.dat"]).code, 0);
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let args = ["report", "-o", page.to_str().unwrap(), "--baseline", arm, HOST];
    fails(&args, 2, &["x86", "arm64"]);
    assert!(!page.exists());
}

/// The root of a file system is not searched as a session.
#[test]
fn folders_are_not_searched_without_end() {
    let start = Instant::now();
    fails(&["exits", "/"], 1, &["/: no recording", "host.dat"]);
    assert!(start.elapsed() < Duration::from_secs(10));
    let folder = tempfile::tempdir().unwrap();
    for trace in ["ust/uid/1000/64-bit", "ust/uid/0/64-bit"] {
        let trace = folder.path().join(trace);
        fs::create_dir_all(&trace).unwrap();
        fs::write(trace.join("metadata"), "").unwrap();
    }
    let path = folder.path().to_str().unwrap();
    fails(&["exits", path], 1, &[path, "name one of them: ust/uid/0/64-bit, ust/uid/1000/64-bit"]);
}

/// Help that can't be written is a failure, as for any other output.
#[test]
fn help_that_cannot_be_written_is_code_1() {
    for args in [&["--help"][..], &["exits", "--help"], &["--version"], &["help", "exits"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let run = command().args(args).stdout(full).output().unwrap();
        let err = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(1), "{args:?}: {err}");
        assert!(err.contains("cannot write the help: No space left on device\n"), "{err}");
    }
}

/// A program can't detect later that its output was closed at its start.
#[test]
fn a_closed_output_is_code_1() {
    let tool = env!("CARGO_BIN_EXE_hyperscope");
    for args in ["--help", "--version", "man", "completions bash", &format!("exits {HOST}")] {
        let script = format!("exec {tool} {args} >&-");
        let run = Command::new("sh").args(["-c", &script]).current_dir(repository()).output();
        let run = run.unwrap();
        let err = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(1), "{args}: {err}");
        assert!(err.contains("standard output is closed"), "{args}: {err}");
    }
    // Python and others open /dev/null to read and write.
    let null = File::options().read(true).write(true).open("/dev/null").unwrap();
    assert!(command().args(["exits", HOST]).stdout(null).status().unwrap().success());
}

#[test]
fn a_negative_time_is_a_wrong_time_and_no_option() {
    for verb in ["exits", "events", "boot", "cpu"] {
        let run = hyperscope(&[verb, "--from", "-5", HOST]);
        assert_eq!(run.code, 2, "{}", run.err);
        let is_understood = run.err.contains("'-5' for '--from <TIME>'");
        assert!(is_understood && run.err.contains("seconds"), "{}", run.err);
    }
}

#[test]
fn errors_of_the_system_are_words() {
    let run = hyperscope(&["exits", "/nowhere/trace.dat"]);
    let expected = "hyperscope: cannot read /nowhere/trace.dat: No such file or directory\n";
    assert_eq!((run.code, run.err.as_str()), (1, expected));
}

#[test]
fn a_refusal_names_the_kinds_of_recordings_there_are() {
    let kinds = ["is not a recording", "trace.dat", "perf.data", "text of", "CTF", "session"];
    fails(&["exits", "/bin/sh"], 1, &kinds);
}
