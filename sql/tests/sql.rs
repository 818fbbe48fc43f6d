//! `hyperscope sql` over recordings, tables and lakes: what it says is what the reports and the exported tables say.
//!
//! `HYPERSCOPE` names the program; by default that of a debug build of the main workspace.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// All tables that are made unasked, and their rows in an order that is theirs alone.
const TABLES: [&str; 16] = [
    "sessions",
    "labels",
    "machines",
    "vms",
    "alignment",
    "losses",
    "exits",
    "exit_rollup",
    "exit_hist",
    "buckets",
    "nested_rollup",
    "vcpu_states",
    "state_rollup",
    "requests",
    "hops",
    "spans",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn hyperscope() -> Command {
    let program = std::env::var_os("HYPERSCOPE").map(PathBuf::from);
    let program = program.unwrap_or_else(|| repository().join("target/debug/hyperscope"));
    assert!(program.is_file(), "{} is missing: cargo build -p hyperscope", program.display());
    let mut command = Command::new(program);
    let own = Path::new(env!("CARGO_BIN_EXE_hyperscope-sql")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    command.current_dir(repository()).env("PATH", format!("{}:{path}", own.display()));
    command
}

struct Run {
    code: i32,
    out: String,
    err: String,
}

fn run(args: &[&str]) -> Run {
    let done = hyperscope().args(args).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    Run { code: done.status.code().unwrap_or(-1), out: text(&done.stdout), err: text(&done.stderr) }
}

#[track_caller]
fn output_of(args: &[&str]) -> String {
    let run = run(args);
    assert_eq!(run.code, 0, "{args:?}: {}", run.err);
    run.out
}

#[track_caller]
fn document(args: &[&str]) -> Value {
    serde_json::from_str(&output_of(args)).unwrap()
}

/// All bundled recordings.
fn recordings() -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["arm64", "x86-svm", "x86-vmx"] {
        for entry in fs::read_dir(repository().join("fixtures").join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".dat") {
                found.push(format!("fixtures/{folder}/{name}"));
            }
        }
    }
    found.sort();
    assert!(found.len() > 10, "{found:?}");
    found
}

fn export(path: &str, out: &Path) {
    output_of(&["export", "--to", "parquet", "-o", out.to_str().unwrap(), path]);
}

/// What statements that come out of a pipe are answered.
fn answers(source: &str, statements: &str) -> String {
    let mut child = hyperscope()
        .args(["sql", "--format", "csv", source])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(statements.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{source}");
    String::from_utf8(done.stdout).unwrap()
}

/// VM, level, reason: count, time, cost.
type Sums = BTreeMap<(String, i64, String), [i64; 3]>;

fn of_report(path: &str) -> Sums {
    let report = document(&["exits", "--format", "json", path]);
    let rows = report["rows"].as_array().unwrap();
    let mut sums = Sums::new();
    for row in rows {
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        let key = (text("vm"), row["level"].as_i64().unwrap(), text("reason"));
        let own = sums.entry(key).or_default();
        // Polling that is not known of a whole group is part of the kernel's time in the report: see lake.md.
        let poll_is_split = !row["halt_poll_ns"].is_null();
        own[0] += row["count"].as_i64().unwrap();
        own[1] += row["time_ns"].as_i64().unwrap();
        own[2] += if poll_is_split { row["cost_ns"].as_i64().unwrap_or(0) } else { 0 };
    }
    sums
}

fn of_query(source: &str, table: &str, count: &str) -> Sums {
    let query = format!(
        "SELECT vm, level, reason, {count} AS exits, SUM(time_ns) AS time_ns, SUM(cost_ns) AS cost_ns \
         FROM {table} GROUP BY vm, level, reason"
    );
    let answer = document(&["sql", "--format", "json", &query, source]);
    let mut sums = Sums::new();
    for row in answer["rows"].as_array().unwrap() {
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        let number = |key: &str| row[key].as_i64().unwrap_or(0);
        let key = (text("vm"), number("level"), text("reason"));
        assert!(sums.insert(key, ["exits", "time_ns", "cost_ns"].map(number)).is_none());
    }
    sums
}

#[test]
fn sums_are_those_of_exits_to_the_nanosecond() {
    let mut groups = 0;
    for path in recordings() {
        let folder = tempfile::tempdir().unwrap();
        export(&path, folder.path());
        let tables = folder.path().to_str().unwrap();
        let report = of_report(&path);
        for (table, count) in [("exits", "COUNT(*)"), ("exit_rollup", "SUM(exits)")] {
            let mut own = of_query(tables, table, count);
            for (key, sums) in &mut own {
                // Not compared where the report has polling in it.
                sums[2] = if report[key][2] == 0 { 0 } else { sums[2] };
            }
            assert_eq!(own, report, "{path} {table}");
            groups += own.len();
        }
    }
    assert!(groups > 100, "{groups}");
}

/// Row by row, all columns: of some recordings all tables, of all recordings those that are largest.
#[test]
fn a_recording_has_the_rows_of_its_exported_tables() {
    let mut compared = 0;
    for path in recordings() {
        let folder = tempfile::tempdir().unwrap();
        export(&path, folder.path());
        let some = ["fixtures/arm64/D.dat", "fixtures/x86-svm/hypertrace.dat"];
        let tables =
            if some.contains(&&*path) { &TABLES[..] } else { &["sessions", "exits", "vms"] };
        let all: String = tables.iter().map(|table| format!("SELECT * FROM {table};\n")).collect();
        // Of large tables, parts are read at the same time, in no order.
        let sorted = |source: &str| {
            let answers = answers(source, &all);
            let mut lines: Vec<String> = answers.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        let (exported, direct) = (sorted(folder.path().to_str().unwrap()), sorted(&path));
        assert!(exported == direct, "{path}: {} {}", exported.len(), direct.len());
        compared += direct.len();
    }
    assert!(compared > 400_000, "{compared}");
}

#[test]
fn lakes_are_asked_for_what_counts() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path().join("lake");
    let at = lake.to_str().unwrap();
    let files = ["fixtures/arm64/D.dat", "fixtures/x86-svm/hypertrace.dat"];
    let add = |host: &str, file: &str| {
        output_of(&["lake", "add", at, "--host", host, "--begun", "1795305600", file]);
    };
    files.iter().zip(["web1", "web2"]).for_each(|(file, host)| add(host, file));
    let exits = |source: &str| {
        let answer =
            document(&["sql", "--format", "json", "SELECT COUNT(*) AS n FROM exits", source]);
        answer["rows"][0]["n"].as_i64().unwrap()
    };
    let each: i64 = files.iter().map(|file| exits(file)).sum();
    assert_eq!(exits(at), each);
    output_of(&["lake", "compact", at, "--before", "2026-11-23"]);
    assert_eq!(exits(at), each);
    // Replaced after compaction: its rows in the part count no more.
    output_of(&["lake", "add", at, "--host", "web1", "--begun", "1795305601", files[0]]);
    assert_eq!(exits(at), each);
    for question in ["hosts", "nested", "requests", "slow-exits", "states", "waiting-vms"] {
        let answer = document(&["sql", "--format", "json", &format!("@{question}"), at]);
        assert!(answer["columns"].as_array().unwrap().len() > 2, "{question}");
    }
    let hosts = document(&["sql", "--format", "json", "@hosts", at]);
    assert_eq!(hosts["rows"].as_array().unwrap().len(), 2);
    let slow = document(&["sql", "--format", "json", "@slow-exits", at]);
    assert!(
        slow["rows"][0]["p99_ns"].as_i64().unwrap() >= slow["rows"][0]["p50_ns"].as_i64().unwrap()
    );
}

#[test]
fn percentiles_are_those_of_exits() {
    let path = "fixtures/x86-svm/nested.dat";
    let report = document(&["exits", "--format", "json", path]);
    let query =
        "SELECT level, reason, exits, p50_ns, p99_ns FROM exit_percentiles WHERE metric = 'time'";
    let answer = document(&["sql", "--format", "json", query, path]);
    let mut compared = 0;
    for row in answer["rows"].as_array().unwrap() {
        let same = |one: &&Value| one["level"] == row["level"] && one["reason"] == row["reason"];
        let own: Vec<&Value> = report["rows"].as_array().unwrap().iter().filter(same).collect();
        let [own] = own.as_slice() else { continue };
        assert_eq!(own["paired"], row["exits"]);
        if own["paired"].as_u64().unwrap() > 4096 {
            assert_eq!((&own["p50_ns"], &own["p99_ns"]), (&row["p50_ns"], &row["p99_ns"]), "{row}");
            compared += 1;
        }
    }
    assert!(compared > 5, "{compared}");
}

#[test]
fn errors_say_where_they_are() {
    let path = "fixtures/x86-svm/hypertrace.dat";
    for (query, words, mark) in [
        ("SELECT reson FROM exits", "'reson' not found", "\n         ^\n"),
        ("SELECT 1\nFROM exitz", "'exitz' not found", "\n  FROM exitz\n       ^\n"),
        ("SELECT 1 +", "found: EOF", "\n  SELECT 1 +\n            ^\n"),
        ("SELECT (1 FROM exits", "found: FROM", "\n  SELECT (1 FROM exits\n            ^\n"),
    ] {
        let run = run(&["sql", query, path]);
        assert_eq!((run.code, run.out.as_str()), (1, ""), "{query}");
        assert!(run.err.contains(words) && run.err.contains(mark), "{query}: {}", run.err);
    }
    for (args, code, words) in [
        (&["sql", "@nothing", path][..], 2, "no question is called nothing"),
        (&["sql", "SELECT 1"], 2, "a query needs a source"),
        (&["sql", "SELECT 1", "-"], 2, "a pipe can be read only once"),
        (&["sql", "SELECT COUNT(*) FROM exits", "Cargo.toml"], 1, "Cargo.toml"),
        (&["sql", "COPY (SELECT 1) TO 'x.csv'", path], 1, "DML not supported"),
    ] {
        let run = run(args);
        assert_eq!(run.code, code, "{args:?}: {}", run.err);
        assert!(run.err.contains(words), "{args:?}: {}", run.err);
    }
}

#[test]
fn answers_go_to_files_and_nothing_is_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let scratch = folder.path().join("scratch");
    fs::create_dir(&scratch).unwrap();
    let out = folder.path().join("exits.parquet");
    let path = "fixtures/x86-svm/hypertrace.dat";
    let args = ["sql", "SELECT * FROM exits", path, "-o", out.to_str().unwrap()];
    let done = hyperscope().args(args).env("TMPDIR", &scratch).output().unwrap();
    assert!(done.status.success() && done.stdout.is_empty());
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0);
    // It is a table again: under its name.
    let csv = |source: &str| output_of(&["sql", "--format", "csv", "SELECT * FROM exits", source]);
    assert_eq!(csv(folder.path().to_str().unwrap()), csv(path));
    let recording = folder.path().join("trace.dat");
    fs::copy(repository().join(path), &recording).unwrap();
    let own = recording.to_str().unwrap();
    let over = run(&["sql", "SELECT 1", own, "-o", own]);
    assert!(over.code == 1 && over.err.contains("write to another file"), "{}", over.err);
    assert_eq!(fs::read(&recording).unwrap(), fs::read(repository().join(path)).unwrap());
    fs::remove_file(&recording).unwrap();
    let failed = ["sql", "SELECT nothing FROM exits", path, "-o", out.to_str().unwrap()];
    let before = fs::read(&out).unwrap();
    assert_eq!(run(&failed).code, 1);
    assert_eq!(fs::read(&out).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn tables_and_formats_are_described_as_they_are() {
    let path = "fixtures/x86-svm/hypertrace.dat";
    let listed = output_of(&["sql", "\\d", path]);
    let names: Vec<&str> =
        listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(
        TABLES.iter().chain(&["exit_percentiles"]).all(|table| names.contains(table)),
        "{listed}"
    );
    let columns = output_of(&["sql", "\\d exits", path]);
    assert!(columns.contains("cost_ns") && columns.contains("BIGINT"), "{columns}");
    let plan = output_of(&["sql", ".explain SELECT COUNT(*) FROM buckets", path]);
    assert!(plan.contains("physical_plan"), "{plan}");
    let query =
        "SELECT '=1' AS a, CAST(NULL AS BIGINT) AS b, 1.5 AS c, true AS d, 'x' || chr(27) AS e";
    assert_eq!(
        output_of(&["sql", "--format", "csv", query, path])
            .lines()
            .nth(1)
            .unwrap()
            .split('\x1b')
            .next(),
        Some("'=1,,1.5,true,x")
    );
    let answer = document(&["sql", "--format", "json", query, path]);
    let row = &answer["rows"][0];
    assert_eq!(
        (&row["a"], &row["b"], &row["c"], &row["d"]),
        (&"=1".into(), &Value::Null, &1.5.into(), &true.into())
    );
    let table = output_of(&["sql", query, path]);
    assert!(table.contains("x\\x1b") && !table.contains('\x1b'), "{table}");
    let asked = answers(path, "SELECT 1 AS one;\n\\d buckets\n@states\n\\q\nSELECT 2 AS two;\n");
    assert!(
        asked.contains("one\n1\n") && asked.contains("hi_ns") && !asked.contains("two"),
        "{asked}"
    );
}
