//! Other engines answer as this one does: whole numbers are the same, those with a fraction within 1e-12.
//!
//! `HYPERSCOPE` names the program; by default that of a debug build of the main workspace. An engine that can't be had is left
//! out, and that is said.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

const FIXTURES: [&str; 2] = ["fixtures/arm64/D.dat", "fixtures/x86-svm/nested.dat"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn hyperscope(args: &[&str]) -> std::process::Output {
    let program = std::env::var_os("HYPERSCOPE").map(PathBuf::from);
    let program = program.unwrap_or_else(|| repository().join("target/debug/hyperscope"));
    let own = Path::new(env!("CARGO_BIN_EXE_hyperscope-sql")).parent().unwrap();
    let path = format!("{}:{}", own.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(program);
    command.current_dir(repository()).env("PATH", path).stdin(Stdio::null());
    command.args(args).output().unwrap()
}

#[track_caller]
fn output_of(args: &[&str]) -> String {
    let done = hyperscope(args);
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// A Python with a package, kept among the build's files; `None` where it can't be made.
fn python_with(package: &str, module: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(package.replace("==", "-"));
    let python = folder.join("bin/python");
    let run = |program: &Path, args: &[&str]| {
        Command::new(program).args(args).output().is_ok_and(|done| done.status.success())
    };
    let has = || run(&python, &["-c", &format!("import {module}")]);
    let install = ["-m", "pip", "install", "--quiet", package];
    let made = || run(Path::new("python3"), &["-m", "venv", folder.to_str().unwrap()]);
    if has() || (made() && run(&python, &install) && has()) {
        return Some(python);
    }
    eprintln!("left out: pip can't install {package}");
    None
}

/// What both must answer alike: questions, views and plain queries, each in an order of its own.
fn queries() -> Vec<String> {
    let mut all: Vec<String> =
        ["hosts", "nested", "requests", "slow-exits", "states", "waiting-vms"]
            .map(|name| format!("@{name}"))
            .into();
    for view in
        ["exit_summary", "exit_percentiles", "exit_rates", "state_summary", "nested_factors"]
    {
        all.push(format!("SELECT * FROM {view}"));
    }
    all.extend(
        [
            "SELECT vm, level, reason, COUNT(*) AS exits, SUM(time_ns) AS time_ns, AVG(cost_ns) AS mean_ns FROM exits GROUP BY vm, level, reason;",
            "SELECT s.host_id, x.reason, MAX(x.ts_ns) AS last FROM exits x JOIN sessions s ON s.session_id = x.session_id GROUP BY s.host_id, x.reason",
            "SELECT reason, 'a;b' AS text, 1.5 AS number, COUNT(*) > 3 AS many FROM exits WHERE level = 9 GROUP BY reason",
            "SELECT COUNT(*) AS n, MIN(key) AS least FROM labels",
        ]
        .map(str::to_owned),
    );
    all
}

fn rows(document: &str) -> (Value, Vec<Value>) {
    let mut answer: Value = serde_json::from_str(document).unwrap();
    let mut rows = std::mem::take(answer["rows"].as_array_mut().unwrap());
    rows.sort_by_key(|row| {
        let parts = row.as_object().unwrap().values().filter(|one| !one.is_f64());
        parts.map(Value::to_string).collect::<Vec<_>>()
    });
    (answer["columns"].take(), rows)
}

#[track_caller]
fn assert_alike(own: &str, other: &str, what: &str) {
    let ((columns, own), (theirs, other)) = (rows(own), rows(other));
    assert_eq!((columns, own.len()), (theirs, other.len()), "{what}");
    for (one, same) in own.iter().zip(&other) {
        for (name, value) in one.as_object().unwrap() {
            let is_near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * a.abs().max(b.abs());
            let alike = match (value.as_f64(), same[name].as_f64()) {
                (Some(a), Some(b)) if value.is_f64() => is_near(a, b),
                _ => *value == same[name],
            };
            assert!(alike, "{what}: {name}: {value} and {}", same[name]);
        }
    }
}

/// A lake, a folder of tables and a recording; of the lake a part of the rows counts.
fn sources(folder: &Path) -> Vec<String> {
    let (lake, tables) = (folder.join("lake"), folder.join("tables"));
    let (at, out) = (lake.to_str().unwrap(), tables.to_str().unwrap());
    for (host, file) in ["web1", "web2"].iter().zip(FIXTURES) {
        output_of(&[
            "lake",
            "add",
            at,
            "--host",
            host,
            "--label",
            "pool=x",
            "--begun",
            "1795305600",
            file,
        ]);
    }
    output_of(&["lake", "compact", at, "--before", "2026-11-23"]);
    output_of(&["lake", "add", at, "--host", "web1", "--begun", "1795305601", FIXTURES[0]]);
    output_of(&["export", "--to", "parquet", "-o", out, FIXTURES[0]]);
    vec![at.to_owned(), out.to_owned(), FIXTURES[0].to_owned()]
}

fn compare(engine: &str, sources: &[String], queries: &[String]) {
    for source in sources {
        for query in queries {
            let asked = ["sql", "--format", "json", query, source];
            let other = [&asked[..], &["--engine", engine]].concat();
            assert_alike(&output_of(&asked), &output_of(&other), &format!("{query} of {source}"));
        }
    }
}

#[test]
fn duckdb_answers_alike() {
    let Some(python) = python_with("duckdb==2.0.0", "duckdb") else { return };
    let folder = tempfile::tempdir().unwrap();
    let engine = format!("duckdb={}", python.display());
    compare(&engine, &sources(folder.path()), &queries());
    // The order of rows is the query's, and the table for people is the same text.
    let query = "SELECT reason, level, COUNT(*) AS exits FROM exits GROUP BY reason, level ORDER BY exits DESC, reason, level";
    let table = ["sql", query, FIXTURES[1]];
    assert_eq!(output_of(&table), output_of(&[&table[..], &["--engine", &engine]].concat()));
}

/// By its program, too, as packaged for pip.
#[test]
fn the_program_of_duckdb_answers_alike() {
    let Some(python) = python_with("duckdb-cli==1.5.6", "duckdb_cli") else { return };
    let engine = format!("duckdb={}", python.with_file_name("duckdb").display());
    compare(&engine, &[FIXTURES[0].to_owned()], &queries()[..8]);
    // A comment at the end is no part of what comes after.
    let query = "SELECT COUNT(*) AS n FROM exits -- all";
    let asked = ["sql", "--format", "csv", query, FIXTURES[0]];
    assert_eq!(output_of(&asked), output_of(&[&asked[..], &["--engine", &engine]].concat()));
}

/// By the installation that `SPARK_HOME` names, since Spark is large.
#[test]
fn spark_answers_alike() {
    if std::env::var_os("SPARK_HOME").is_none() {
        eprintln!("left out: SPARK_HOME names no installation of Spark");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let lake = &sources(folder.path())[..1];
    let few = |query: &String| query.contains("exit_percentiles") || query.contains("s.host_id");
    let few: Vec<String> = queries().into_iter().filter(few).collect();
    assert_eq!(few.len(), 2);
    compare("spark=local[2]", lake, &few);
    let query = "SELECT reson\nFROM exits";
    let done = hyperscope(&["sql", "--engine", "spark=local[2]", query, &lake[0]]);
    let said = String::from_utf8_lossy(&done.stderr);
    let is_marked = said.contains("\n  SELECT reson\n         ^");
    assert!(done.status.code() == Some(1) && said.contains("reson") && is_marked, "{said}");
}

#[test]
fn an_engine_that_fails_says_why() {
    for (engine, query, code, words) in [
        ("duckdb=/nonexistent/duckdb", "SELECT 1", 1, "cannot run /nonexistent/duckdb"),
        ("spark", "SELECT 1", 2, "spark is no engine"),
        ("sqlite", "SELECT 1", 2, "sqlite is no engine"),
        ("duckdb", "\\d exits", 1, "--engine takes queries"),
    ] {
        let done = hyperscope(&["sql", "--engine", engine, query, FIXTURES[0]]);
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(code) && said.contains(words), "{engine}: {said}");
    }
    let Some(python) = python_with("duckdb==2.0.0", "duckdb") else { return };
    let engine = format!("duckdb={}", python.display());
    for (query, marked) in [
        ("SELECT reson\nFROM exits", "\n  SELECT reson\n         ^"),
        ("SELECT reason,\n vm FROM exitz", "\n   vm FROM exitz\n           ^"),
    ] {
        let done = hyperscope(&["sql", "--engine", &engine, query, FIXTURES[0]]);
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(1) && said.contains(marked), "{said}");
    }
}
