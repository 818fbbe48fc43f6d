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
    let bin_folder = Path::new(env!("CARGO_BIN_EXE_hyperscope-sql")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    command.current_dir(repository()).env("PATH", format!("{}:{path}", bin_folder.display()));
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
        let totals = sums.entry(key).or_default();
        // Polling that is not known of a whole group is part of the kernel's time in the report: see lake.md.
        let poll_is_split = !row["halt_poll_ns"].is_null();
        totals[0] += row["count"].as_i64().unwrap();
        totals[1] += row["time_ns"].as_i64().unwrap();
        totals[2] += if poll_is_split { row["cost_ns"].as_i64().unwrap_or(0) } else { 0 };
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
            let mut answer = of_query(tables, table, count);
            for (key, sums) in &mut answer {
                // Not compared where the report has polling in it.
                sums[2] = if report[key][2] == 0 { 0 } else { sums[2] };
            }
            assert_eq!(answer, report, "{path} {table}");
            groups += answer.len();
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
        let sorted = |source: &str| in_order(&answers(source, &all));
        let (exported, direct) = (sorted(folder.path().to_str().unwrap()), sorted(&path));
        assert!(exported == direct, "{path}: {} {}", exported.len(), direct.len());
        compared += direct.len();
    }
    assert!(compared > 400_000, "{compared}");
}

/// Of events, a query has no more read of a recording than it needs: the answer is that of the whole table.
#[test]
fn events_of_a_part_are_those_of_the_exported_table() {
    let folder = tempfile::tempdir().unwrap();
    let tables = folder.path().to_str().unwrap();
    let path = "fixtures/x86-svm/host-guest.dat";
    output_of(&["export", "--to", "parquet", "-e", "*", "--tables", "events", "-o", tables, path]);
    let ends = "SELECT MIN(ts_ns) AS first, MAX(ts_ns) AS last FROM events";
    let ends = document(&["sql", "--format", "json", ends, tables]);
    let ns = |name: &str| ends["rows"][0][name].as_i64().unwrap();
    let (from, to) = (ns("first") + (ns("last") - ns("first")) / 2, ns("last"));
    let to = from + (to - from) / 8;
    let kvm = "event IN ('kvm:kvm_exit', 'kvm:kvm_entry')";
    for query in [
        format!(
            "SELECT ts_ns, machine, level, cpu, pid, event, fields FROM events WHERE ts_ns >= {from} AND ts_ns < {to} AND {kvm}"
        ),
        format!("SELECT ts_ns, comm, event FROM events WHERE ts_ns BETWEEN {from} AND {to}"),
        format!(
            "SELECT event, cpu, COUNT(*) AS n, MIN(ts_ns) AS first FROM events WHERE {to} > ts_ns GROUP BY event, cpu"
        ),
        format!("SELECT COUNT(*) AS n FROM events WHERE {kvm} AND ts_ns > {from}"),
        "SELECT COUNT(*) AS n, MAX(pid) AS pid FROM events WHERE event = 'kvm:nothing'".to_owned(),
        format!(
            "SELECT COUNT(*) AS n FROM events a JOIN events b ON a.ts_ns = b.ts_ns AND a.cpu = b.cpu WHERE a.event = 'kvm:kvm_exit' AND b.ts_ns < {from} AND b.{kvm}"
        ),
        "SELECT COUNT(*) AS n FROM events WHERE event = 'kvm:kvm_exit' AND event = 'kvm:kvm_entry'"
            .to_owned(),
        format!("SELECT COUNT(*) AS n FROM events WHERE ts_ns > {to} AND ts_ns < {from}"),
        format!("SELECT COUNT(*) AS n FROM events WHERE ts_ns > {from} OR {kvm}"),
        format!("SELECT COUNT(*) AS n FROM events WHERE NOT (ts_ns > {from} AND {kvm})"),
        format!(
            "SELECT COUNT(*) AS n FROM events WHERE ts_ns > {from}.5 AND ts_ns <= 9223372036854775807"
        ),
        format!("SELECT COUNT(*) AS n FROM events WHERE ts_ns > {from} AND event LIKE 'sched:%'"),
        format!(
            "SELECT COUNT(*) AS n FROM events WHERE CAST(ts_ns AS STRING) > '{from}' AND event > 'kvm:kvm_exit'"
        ),
        format!(
            "SELECT COUNT(*) AS n FROM events WHERE ts_ns IN ({from}, {to}) OR event IS NULL OR event IN ('kvm:kvm_exit', NULL)"
        ),
        format!(
            "WITH e AS (SELECT * FROM events WHERE ts_ns < {to}) SELECT COUNT(*) AS n, MAX(comm) AS comm FROM e WHERE event = (SELECT MIN(event) FROM e)"
        ),
    ] {
        let csv = |source| output_of(&["sql", "--format", "csv", &query, source]);
        let (exported, direct) = (in_order(&csv(tables)), in_order(&csv(path)));
        assert!(
            exported == direct && direct.len() > 1,
            "{query}: {} {}",
            exported.len(),
            direct.len()
        );
    }
    // At a prompt: the whole table, once it is there, is not read again in part.
    let count = |words: &str| format!("SELECT COUNT(*) AS n FROM events {words};\n");
    let part = count(&format!("WHERE {kvm} AND ts_ns < {from}"));
    let statements =
        [&part, &count(""), "SELECT COUNT(DISTINCT fields || comm) AS n FROM events;\n", &part]
            .concat();
    assert_eq!(answers(path, &statements), answers(tables, &statements));
}

/// The lines of an answer, in an order of their own.
fn in_order(answer: &str) -> Vec<String> {
    let mut lines: Vec<String> = answer.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// Three VMs, of which a query asks for some.
#[test]
fn exits_of_some_vms_are_those_of_the_exported_table() {
    let folder = tempfile::tempdir().unwrap();
    let (path, tables) = ("fixtures/x86-vmx/smp.dat", folder.path().to_str().unwrap());
    export(path, folder.path());
    let vms = answers(tables, "SELECT DISTINCT vm FROM exits ORDER BY vm;\n");
    let vms: Vec<&str> = vms.lines().skip(1).collect();
    let [a, b, c] = vms[..] else { panic!("{vms:?}") };
    for query in [
        format!("SELECT * FROM exits WHERE vm = '{a}'"),
        format!("SELECT * FROM exit_rollup WHERE vm IN ('{a}', '{c}') AND level = 1"),
        format!(
            "SELECT vm, reason, SUM(time_ns) AS time_ns FROM exits WHERE vm = '{b}' OR reason = 'hlt' GROUP BY vm, reason"
        ),
        format!(
            "SELECT COUNT(*) AS n FROM exits x JOIN exits y ON x.reason = y.reason WHERE x.vm = '{a}' AND y.vm = '{b}'"
        ),
        format!("SELECT * FROM exit_hist WHERE vm = '{c}'"),
        "SELECT COUNT(*) AS n FROM exits WHERE vm = 'none'".to_owned(),
    ] {
        let csv = |source| output_of(&["sql", "--format", "csv", &query, source]);
        let (exported, direct) = (in_order(&csv(tables)), in_order(&csv(path)));
        assert!(exported == direct && direct.len() > 1, "{query}: {exported:?} {direct:?}");
    }
}

/// A VM has the name that it was given, in a recording that is asked, and in a lake that it was added to.
#[test]
fn vms_have_the_names_that_they_were_given() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path().join("lake");
    let (at, path, name) =
        (lake.to_str().unwrap(), "fixtures/x86-svm/host-guest.dat", "vm-119=web");
    output_of(&["lake", "add", at, "--begun", "1795305600", "--name", name, path]);
    let query = "SELECT DISTINCT vm FROM exit_rollup ORDER BY vm";
    for args in [&["--name", name, query, path][..], &[query, at]] {
        let rows = document(&[&["sql", "--format", "json"], args].concat())["rows"].take();
        assert_eq!(rows, serde_json::json!([{"vm": "web"}]), "{args:?}");
    }
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

/// By name, of a lake, a session, a folder of tables and a recording.
#[test]
fn questions_are_answered_of_everything_that_has_tables() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (lake, tables, session) = (path("lake"), path("tables"), path("session"));
    let [host, guest] =
        ["", ".guest"].map(|which| format!("fixtures/x86-svm/host-guest{which}.dat"));
    output_of(&["export", "--to", "parquet", "-o", &tables, &host, &guest]);
    fs::create_dir(&session).unwrap();
    fs::copy(repository().join(&host), format!("{session}/host.dat")).unwrap();
    fs::copy(repository().join(&guest), format!("{session}/guest-vm.dat")).unwrap();
    output_of(&["lake", "add", &lake, "--host", "web1", "--begun", "1795305600", &session]);
    let listed = output_of(&["sql", "--list"]);
    let questions: Vec<&str> =
        listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(
        questions.len() > 5 && questions.iter().all(|question| question.starts_with('@')),
        "{listed}"
    );
    let mut rows = 0;
    for question in questions {
        let answer = |source: &str| {
            let answer = document(&["sql", "--format", "json", question, source]);
            answer["rows"].as_array().unwrap().len()
        };
        let each = [&lake, &tables, &session].map(|source| answer(source));
        assert!(each.iter().all(|count| *count == each[0]), "{question}: {each:?}");
        rows += each[0];
    }
    assert!(rows > 10, "{rows}");
}

/// Kinds of values, and a question of a recording: the main workspace's tests hold these files against the schema of answers.
#[test]
fn answers_in_json_are_as_expected() {
    let path = "fixtures/x86-svm/hypertrace.dat";
    let kinds = "SELECT 1 AS whole, 9223372036854775807 AS large, 0.5 AS part, NULL AS none, 'x' AS text, true AS flag, \
                 INTERVAL '1 day' AS span, 1e308 * 10 AS endless, [1, 2] AS list";
    for (name, query) in [("kinds", kinds), ("slow-exits", "@slow-exits")] {
        let golden = repository().join(format!("sql/tests/golden/{name}.json"));
        let answer = output_of(&["sql", "--format", "json", query, path]);
        if std::env::var_os("HYPERSCOPE_BLESS").is_some() {
            fs::write(&golden, &answer).unwrap();
        }
        let expected = fs::read_to_string(&golden).unwrap();
        assert!(answer == expected, "{name}: HYPERSCOPE_BLESS=1 writes it again:\n{answer}");
    }
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
        let same = |candidate: &&Value| {
            candidate["level"] == row["level"] && candidate["reason"] == row["reason"]
        };
        let report_rows: Vec<&Value> =
            report["rows"].as_array().unwrap().iter().filter(same).collect();
        let [report_row] = report_rows.as_slice() else { continue };
        assert_eq!(report_row["paired"], row["exits"]);
        if report_row["paired"].as_u64().unwrap() > 4096 {
            assert_eq!(
                (&report_row["p50_ns"], &report_row["p99_ns"]),
                (&row["p50_ns"], &row["p99_ns"]),
                "{row}"
            );
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
        (
            "SELECT 1\nFROM exitz",
            "'exitz' not found; \\d lists those there are",
            "\n  FROM exitz\n       ^\n",
        ),
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
        (&["sql", "SELECT COUNT(*) FROM exits", "/nonexistent"], 1, "cannot read /nonexistent"),
        (&["sql", "SELECT COUNT(*) FROM exits", "/dev/null"], 1, "/dev/null"),
        (&["sql", "@hosts", "docs"], 1, "docs: no recording"),
        (&["sql", "SELECT COUNT(*) FROM exits", path, path], 1, "is given twice"),
        (&["sql", " ;", path], 1, "the query is empty"),
        (&["sql", "SELECT 1; SELECT 2", path], 1, "several statements"),
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
    let recording_path = recording.to_str().unwrap();
    let over = run(&["sql", "SELECT 1", recording_path, "-o", recording_path]);
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
    let output = answers(path, "SELECT 1 AS one;\n\\d buckets\n@states\n\\q\nSELECT 2 AS two;\n");
    assert!(
        output.contains("one\n1\n") && output.contains("hi_ns") && !output.contains("two"),
        "{output}"
    );
}
