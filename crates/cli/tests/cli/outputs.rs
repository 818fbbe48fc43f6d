//! Where reports go and what they look like there.

use std::fs;

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
            assert!(!narrow || text.contains("left out for width"), "{path}: {text}");
        }
    }
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
        // The reader fails on a line with another number of cells.
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
