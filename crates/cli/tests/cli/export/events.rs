//! CSV and JSON lines: the events that `events` prints.

use serde_json::Value;

use super::{GUEST, HOST, INPUTS, SMP, export, folder, lines};
use crate::tool::{assert_golden, hyperscope};

/// The header and all rows of a CSV file.
fn rows(file: &std::path::Path) -> (Vec<String>, Vec<Vec<String>>) {
    let mut reader = csv::Reader::from_path(file).unwrap();
    let cells = |row: &csv::StringRecord| row.iter().map(str::to_owned).collect();
    let header = cells(reader.headers().unwrap());
    (header, reader.records().map(|row| cells(&row.unwrap())).collect())
}

#[test]
fn json_lines_are_those_of_events() {
    let folder = folder();
    let file = folder.path().join("out.jsonl");
    export("jsonl", &file, &[HOST, GUEST]);
    let expected = lines(&["--format", "jsonl", HOST, GUEST]);
    assert!(std::fs::read_to_string(file).unwrap() == expected);
}

#[test]
fn rows_hold_what_json_lines_hold() {
    let folder = folder();
    for inputs in INPUTS {
        let file = folder.path().join("out.csv");
        export("csv", &file, inputs);
        let (header, rows) = rows(&file);
        assert_eq!(header.join(","), "ts_ns,machine,level,cpu,pid,comm,event,fields");
        let events = lines(&[&["--format", "jsonl"], inputs].concat());
        assert!(rows.len() > 10_000 && rows.len() == events.lines().count(), "{inputs:?}");
        for (row, line) in rows.iter().zip(events.lines()) {
            let event: Value = serde_json::from_str(line).unwrap();
            for (name, cell) in header.iter().zip(row) {
                let same = match &event[name] {
                    Value::String(text) => text == cell,
                    Value::Null => cell.is_empty(),
                    other => other == &serde_json::from_str::<Value>(cell).unwrap(),
                };
                assert!(same, "{name}: {cell} for {line}");
            }
        }
    }
}

#[test]
fn fields_become_columns_if_asked_for() {
    let folder = folder();
    let file = folder.path().join("out.csv");
    let options = ["-e", "kvm_exit", "-e", "kvm_mmio", "--columns", "exit_reason,guest_rip,gpa"];
    export("csv", &file, &[&options[..], &[SMP]].concat());
    let (header, rows) = rows(&file);
    assert_eq!(header[7..], ["exit_reason", "guest_rip", "gpa"]);
    let text = lines(&["-e", "kvm_exit", "-e", "kvm_mmio", "--format", "jsonl", SMP]);
    assert_eq!(rows.len(), text.lines().count());
    for (row, line) in rows.iter().zip(text.lines()) {
        let event: Value = serde_json::from_str(line).unwrap();
        for (name, cell) in header.iter().zip(row).skip(7) {
            let expected = &event["fields"][name];
            let written = if expected.is_null() { String::new() } else { expected.to_string() };
            assert_eq!(&written, cell, "{name} of {line}");
        }
    }
    let head: String = std::fs::read_to_string(file)
        .unwrap()
        .lines()
        .take(4)
        .fold(String::new(), |head, line| head + line + "\n");
    assert_golden("export-columns.csv", &head);
}

#[test]
fn ticks_are_not_called_nanoseconds() {
    let folder = folder();
    crate::inputs::write_raw_pages(SMP, folder.path(), |cpu| format!("cpu{cpu}"));
    std::fs::write(folder.path().join("trace_clock"), "local global [x86-tsc]\n").unwrap();
    let input = folder.path().to_str().unwrap();
    let run = hyperscope(&["export", "--to", "csv", input]);
    assert!(run.code == 0 && run.out.starts_with("ts_cycles,machine,"), "{}", run.err);
    let run = hyperscope(&["export", "--to", "csv", input, SMP]);
    assert!(run.code == 1 && run.err.contains("one column can't hold both"), "{}", run.err);
    let run = hyperscope(&["export", "--to", "perfetto", input]);
    assert!(run.code == 1 && run.err.contains("ticks of unknown length"), "{}", run.err);
}
