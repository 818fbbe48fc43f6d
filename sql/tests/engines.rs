//! Other engines answer as this one does: whole numbers are the same, those with a fraction within 1e-12.
//!
//! `HYPERSCOPE` names the program; by default that of a debug build of the main workspace. An engine that can't be had is left
//! out, and that is said.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod alike;

use alike::{FIXTURES, compare, hyperscope, output_of, python_with, queries, sources};

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
    let args = ["sql", "--format", "csv", query, FIXTURES[0]];
    assert_eq!(output_of(&args), output_of(&[&args[..], &["--engine", &engine]].concat()));
}

#[test]
fn an_engine_that_fails_says_why() {
    for (engine, query, code, words) in [
        ("duckdb=/nonexistent/duckdb", "SELECT 1", 1, "cannot run /nonexistent/duckdb"),
        ("spark", "SELECT 1", 2, "spark is no engine"),
        ("sqlite", "SELECT 1", 2, "sqlite is no engine"),
        ("trino=ftp://c/hive", "SELECT 1", 2, "not by ftp:"),
        ("trino=https://ann:hush@c/hive", "SELECT 1", 2, "is no secret"),
        ("trino:https://c?password=hush", "SELECT 1", 2, "trino:https://c?password is no engine"),
        ("trino=http://127.0.0.1:1/hive", "SELECT 1", 1, "Trino at http://127.0.0.1:1/: "),
        ("duckdb", "\\d exits", 1, "--engine takes queries"),
    ] {
        let done = hyperscope(&["sql", "--engine", engine, query, FIXTURES[0]]);
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(code) && stderr.contains(words), "{engine}: {stderr}");
        assert!(!stderr.contains("hush"), "{stderr}");
    }
    let Some(python) = python_with("duckdb==2.0.0", "duckdb") else { return };
    let engine = format!("duckdb={}", python.display());
    for (query, marked) in [
        ("SELECT reson\nFROM exits", "\n  SELECT reson\n         ^"),
        ("SELECT reason,\n vm FROM exitz", "\n   vm FROM exitz\n           ^"),
    ] {
        let done = hyperscope(&["sql", "--engine", &engine, query, FIXTURES[0]]);
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(1) && stderr.contains(marked), "{stderr}");
    }
}
