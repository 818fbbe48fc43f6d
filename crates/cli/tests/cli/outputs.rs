//! Destinations of reports, and their form.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::tool::{command, hyperscope, output_of, recordings};

const SMALL: &str = "fixtures/x86-vmx/vmm.dat";

#[test]
fn a_file_holds_what_standard_output_shows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let path = path.to_str().unwrap();
    for args in [
        &["exits", "--format", "table"][..],
        &["exits", "--format", "json"],
        &["exits", "--format", "csv"],
        &["nested", "--format", "csv"],
        &["cpu", "--format", "csv"],
        &["info", "--format", "json"],
        &["events"],
        &["events", "--format", "jsonl"],
    ] {
        let shown = output_of(&[args, &[SMALL]].concat());
        assert!(shown.ends_with('\n'), "{args:?}");
        assert_eq!(output_of(&[args, &["-o", path, SMALL]].concat()), "");
        assert!(fs::read_to_string(path).unwrap() == shown, "{args:?}");
    }
}

#[test]
fn tables_fit_the_columns_asked_for() {
    for path in recordings() {
        for columns in [60, 100, 140] {
            let output = command()
                .args(["exits", &path])
                .env("COLUMNS", columns.to_string())
                .output()
                .unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let tables = text.lines().filter(|line| line.contains("  "));
            for line in tables.filter(|line| !line.starts_with("  trace-cmd")) {
                assert!(line.chars().count() <= columns, "{path} at {columns}: {line}");
            }
            let narrow = columns == 60 && text.contains("who pays");
            assert!(!narrow || text.contains("hidden to fit the width"), "{path}: {text}");
        }
    }
}

/// Tables adapt to the width, and sentences break at words.
#[test]
fn nothing_spills_at_80_columns() {
    let (off, on) = ("fixtures/arm64/B-vhost-off.dat", "fixtures/arm64/B-vhost-on.dat");
    let guests = ["fixtures/x86-svm/boot.dat", "fixtures/x86-svm/boot.guest.dat"];
    for args in [
        &["exits", "fixtures/x86-vmx/smp.dat"][..],
        &["exits", "--by", "vcpu,detail", "fixtures/x86-vmx/smp.dat"],
        &["cpu", "fixtures/x86-vmx/smp.dat"],
        &["cpu", "--by", "thread", on],
        &["path", on],
        &["nested", on],
        &["info", guests[1]],
        &["boot", guests[0], guests[1]],
        &["align", guests[0], guests[1]],
        &["calls", "fixtures/x86-svm/calls.dat"],
        &["diff", off, on],
        &["diff", "path", off, on],
        &["diff", "cpu", off, on],
    ] {
        let text = text_of(command().args(args).env("COLUMNS", "80"));
        for line in text.lines() {
            let words = line.split_whitespace().count();
            assert!(line.chars().count() <= 80 || words == 1, "{args:?}: {line}");
        }
    }
}

fn text_of(command: &mut std::process::Command) -> String {
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn csv_has_as_many_cells_in_every_line() {
    let paths = recordings();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    for verb in ["exits", "nested", "info"] {
        let text = output_of(&[&[verb, "--format", "csv"], paths.as_slice()].concat());
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let columns = reader.headers().unwrap().len();
        assert!(columns >= 3, "{verb}");
        // The reader fails at a line with a different number of cells.
        let rows = reader.records().map(Result::unwrap).count();
        assert!(rows > 0, "{verb}");
    }
}

#[test]
fn no_colour_reaches_a_pipe() {
    for args in [&["exits", SMALL][..], &["info", SMALL], &["--help"]] {
        assert!(!output_of(args).contains('\u{1b}'), "{args:?}");
    }
    assert!(!hyperscope(&["bogus"]).err.contains('\u{1b}'));
}

/// Waits until the file exists: a program that has just started has not created it yet.
fn await_file(path: &Path) {
    let end = Instant::now() + Duration::from_secs(60);
    while !path.exists() {
        assert!(Instant::now() < end, "{} does not come", path.display());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// `hyperscope` with the default action for interrupts.
fn with_default_interrupts() -> Command {
    let mut env = Command::new("env");
    env.arg("--default-signal=INT").arg(command().get_program());
    env.current_dir(crate::tool::repository());
    env
}

#[test]
fn an_interrupted_run_leaves_the_file_that_was_there() {
    let folder = tempfile::tempdir().unwrap();
    // A pipe without a writer: the reader waits until it is interrupted.
    let elsewhere = tempfile::tempdir().unwrap();
    let pipe = elsewhere.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let at = |name: &str| folder.path().join(name);
    for signal in [Signal::INT, Signal::KILL] {
        fs::write(at("out"), "from before").unwrap();
        // A shell starts background jobs with SIGINT ignored, and children inherit that.
        let mut child = with_default_interrupts()
            .args(["report", SMALL, "--baseline"])
            .arg(&pipe)
            .arg("-o")
            .arg(at("out"))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        await_file(&at(".out.hyperscope.tmp"));
        rustix::process::kill_process(Pid::from_child(&child), signal).unwrap();
        let ended = child.wait().unwrap();
        assert_eq!(ended.signal(), Some(signal.as_raw()), "{ended}");
        assert_eq!(fs::read_to_string(at("out")).unwrap(), "from before", "{signal:?}");
    }
    // The next run takes over the file of the killed one.
    let (from, to) = (SMALL, at("out"));
    output_of(&["exits", "-o", to.to_str().unwrap(), from]);
    assert_eq!(fs::read_to_string(&to).unwrap(), output_of(&["exits", from]));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_run_that_fails_leaves_the_file_that_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    fs::write(&path, "from before").unwrap();
    let run = hyperscope(&[
        "diff",
        "exits",
        "-o",
        path.to_str().unwrap(),
        SMALL,
        "--fail-if",
        "bogus>1%",
        SMALL,
    ]);
    assert_ne!(run.code, 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), "from before");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn links_permissions_and_what_is_no_file_stay() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = output_of(&["info", SMALL]);
    let write = |to: &Path| output_of(&["info", "-o", to.to_str().unwrap(), SMALL]);
    fs::write(at("file"), "before").unwrap();
    fs::set_permissions(at("file"), fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("file", at("link")).unwrap();
    write(&at("link"));
    assert!(at("link").is_symlink());
    assert_eq!(fs::read_to_string(at("file")).unwrap(), text);
    assert_eq!(fs::metadata(at("file")).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(write(Path::new("/dev/null")), "");
    assert!(!Path::new("/dev/null").is_file());
    assert_eq!(write(Path::new("/dev/stdout")), text);
    let fifo = at("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || fs::read_to_string(fifo).unwrap()
    });
    write(&fifo);
    assert_eq!(reader.join().unwrap(), text);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}
