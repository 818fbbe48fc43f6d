//! Names from recordings, as they are printed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::inputs::write_raw_pages;
use crate::tool::hyperscope;

const HOST: &str = "fixtures/x86-svm/host-guest.dat";
const COMM: &[u8; 15] = b"qemu-system-x86";
/// A thread's name of the same length: formula, line break, clearing a terminal, right-to-left.
const HOSTILE: &[u8; 15] = b"=a\nb\x1b[2J\xe2\x80\xaec9!?";

/// A recording in which QEMU's threads have a hostile name, in the kernel's list of names or in
/// events.
fn hostile(folder: &Path) -> PathBuf {
    let folder = folder.join("pages");
    fs::create_dir(&folder).unwrap();
    write_raw_pages(HOST, &folder, |cpu| format!("cpu{cpu}"));
    let mut changed = 0;
    for file in fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
    {
        let mut bytes = fs::read(&file).unwrap();
        // The list has one line per name.
        let is_list = file.ends_with("saved_cmdlines");
        let name = if is_list {
            HOSTILE.map(|byte| if byte == b'\n' { b' ' } else { byte })
        } else {
            *HOSTILE
        };
        let found: Vec<usize> =
            bytes.windows(15).enumerate().filter(|(_, at)| at == COMM).map(|hit| hit.0).collect();
        changed += found.len();
        found.iter().for_each(|at| bytes[*at..at + 15].copy_from_slice(&name));
        fs::write(&file, bytes).unwrap();
    }
    assert!(changed > 10, "{changed}");
    folder
}

/// Asserts that no character controls a terminal; line breaks are those of its lines.
#[track_caller]
fn is_visible(text: &str) {
    let bad = |c: char| c.is_control() && !"\n\t".contains(c) || c == '\u{202e}';
    let line = text.lines().find(|line| line.contains(bad));
    assert_eq!(line, None);
}

#[test]
fn no_name_in_a_recording_moves_a_terminals_cursor_or_adds_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let pages = hostile(folder.path());
    let pages = pages.to_str().unwrap();
    for args in [
        &["events"][..],
        &["events", "--raw"],
        &["events", "--numeric"],
        &["events", "-e", "kvm_exit", "-B", "2"],
        &["exits", "--by", "task,reason"],
        &["info"],
        &["cpu"],
        &["cpu", "--by", "thread", "--idle"],
        &["path"],
        &["nested"],
        &["calls"],
    ] {
        let run = hyperscope(&[args, &[pages]].concat());
        assert_eq!(run.code, 0, "{args:?}: {}", run.err);
        is_visible(&run.out);
        is_visible(&run.err);
    }
    let lines = hyperscope(&["events", pages]).out;
    let original = hyperscope(&["events", HOST]).out;
    assert_eq!(lines.lines().count(), original.lines().count());
    assert!(lines.contains("==> =a\\nb\\x1b[2J\\u{202e}c9!?:"), "{}", &lines[..2000]);
    let lines = hyperscope(&["events", "--numeric", pages]).out;
    assert!(lines.contains("next_comm==a\\nb\\x1b[2J\\u{202e}c9!?"), "{}", &lines[..2000]);
}

#[test]
fn json_has_names_as_they_were_and_csv_starts_no_formula() {
    let folder = tempfile::tempdir().unwrap();
    let pages = hostile(folder.path());
    let pages = pages.to_str().unwrap();
    let name = str::from_utf8(HOSTILE).unwrap();
    let jsonl = hyperscope(&["events", "--format", "jsonl", "-e", "sched_switch", pages]).out;
    is_visible(&jsonl);
    let has_name = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["fields"]["next_comm"] == name
    };
    assert!(jsonl.lines().any(has_name));
    let csv = hyperscope(&[
        "export",
        "--to",
        "csv",
        "-e",
        "sched_switch",
        "--columns",
        "next_comm,next_prio",
        pages,
    ]);
    assert_eq!(csv.code, 0, "{}", csv.err);
    let mut reader = csv::Reader::from_reader(csv.out.as_bytes());
    let names: Vec<String> = reader.records().map(|record| record.unwrap()[7].to_owned()).collect();
    assert!(names.contains(&format!("'{name}")) && !names.iter().any(|cell| cell.starts_with('=')));
}

#[test]
fn csv_on_a_terminal_shows_what_hides_in_names() {
    let folder = tempfile::tempdir().unwrap();
    let pages = hostile(folder.path());
    for verb in
        ["export --to csv -e sched_switch --columns next_comm", "exits --by task --format csv"]
    {
        let line = format!("{} {verb} {}", env!("CARGO_BIN_EXE_hyperscope"), pages.display());
        let shown = Command::new("script").args(["-qec", &line, "/dev/null"]).output();
        let Ok(shown) = shown else {
            testkit::skip!("there is no script(1) here");
            return;
        };
        // A terminal ends lines this way.
        let shown = String::from_utf8_lossy(&shown.stdout).replace("\r\n", "\n");
        assert!(shown.contains("\\x1b[2J\\u{202e}c9!?"), "{verb}: {}", &shown[..500]);
        is_visible(&shown);
    }
}

/// A browser recognizes a page by its file name, and executes names of threads and files in it.
#[test]
fn no_text_is_written_under_the_name_of_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let verbs = [
        "info",
        "exits",
        "nested",
        "cpu",
        "path",
        "events",
        "irqs",
        "virtio",
        "critical --task 1",
        "advice",
        "why",
        "profile",
        "calls",
        "boot",
        "hypertrace",
        "export --to csv",
        "export --to jsonl",
        "export --to chrome",
        "diff",
        "align",
        "vmm --format json",
        "vmm --format csv",
    ];
    for (verb, name) in
        verbs.iter().flat_map(|verb| ["a.html", "b.HTM", "c.xhtml"].map(|name| (verb, name)))
    {
        let to = path(name);
        let mut args: Vec<&str> = verb.split(' ').chain([HOST, "-o", &to]).collect();
        let copy = path("copy.dat");
        if matches!(*verb, "diff" | "align") {
            let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            fs::copy(fixtures.join(HOST), &copy).unwrap();
            args.push(&copy);
        }
        let run = hyperscope(&args);
        assert_eq!(run.code, 2, "{verb}: {}", run.err);
        assert!(run.err.contains("would read .html as a page"), "{verb}: {}", run.err);
        assert!(!folder.path().join(name).exists(), "{verb}");
    }
    for verb in ["vmm", "report"] {
        let to = path("page.html");
        let run = hyperscope(&[verb, HOST, "-o", &to]);
        assert_eq!(run.code, 0, "{verb}: {}", run.err);
        assert!(fs::read_to_string(&to).unwrap().starts_with("<!"), "{verb}");
    }
}
