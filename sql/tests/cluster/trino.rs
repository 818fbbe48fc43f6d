//! Trino: a coordinator and two workers.

use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use crate::alike::{FIXTURES, assert_alike, compare, output_of, queries, sources};
use crate::{SUMS, folder, many_rows, refusal, tables_are_the_same, variable};

fn engine() -> String {
    format!("trino={}", variable("HYPERSCOPE_TRINO"))
}

fn answer(query: &str, source: &str) -> String {
    output_of(&["sql", "--format", "json", query, source, "--engine", &engine()])
}

fn cells(document: &str, column: &str) -> Vec<Value> {
    let answer: Value = serde_json::from_str(document).unwrap();
    answer["rows"].as_array().unwrap().iter().map(|row| row[column].clone()).collect()
}

/// What this program made there.
fn schemas(lake: &str) -> Vec<Value> {
    let query = "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE 'hyperscope%' ORDER BY 1";
    cells(&answer(query, lake), "schema_name")
}

#[test]
#[ignore = "needs a running cluster: make test-cluster starts it and runs this"]
fn answers_alike() {
    let folder = folder("trino-alike");
    let sources = sources(&folder);
    compare(&engine(), &sources[..1], &queries());
    let lake_schemas = schemas(&sources[0]);
    assert!(!lake_schemas.is_empty());
    compare(&engine(), &sources[1..], &queries());
    // Tables of one query alone are gone, those of the lake are kept.
    assert_eq!(schemas(&sources[0]), lake_schemas);
    tables_are_the_same(&engine(), &sources[0]);
}

/// Days that come later, and rows that are replaced, are those of the next answer.
#[test]
#[ignore = "needs a running cluster: make test-cluster starts it and runs this"]
fn a_lake_that_changes_is_seen_as_it_is() {
    let folder = folder("trino-changes");
    let lake = &sources(&folder)[0];
    let query = "SELECT host_id, COUNT(*) AS exits, MAX(ts_ns) AS last FROM session_exits GROUP BY host_id ORDER BY host_id";
    let same = |lake: &str| {
        let expected = output_of(&["sql", "--format", "json", query, lake]);
        assert_alike(&expected, &answer(query, lake), false, query);
        expected
    };
    let before = same(lake);
    output_of(&["lake", "add", lake, "--host", "web3", "--begun", "1795500000", FIXTURES[0]]);
    let after = same(lake);
    assert_ne!(before, after);
    output_of(&["lake", "compact", lake, "--before", "2026-11-26"]);
    output_of(&["lake", "gc", lake, "--grace", "0"]);
    assert_eq!(same(lake), after);
    // The lake by the name that the catalog has for it.
    let at = format!("{}?at=local://{lake}", engine());
    let found = output_of(&["sql", "--format", "json", query, lake, "--engine", &at]);
    assert_alike(&after, &found, false, query);
}

#[test]
#[ignore = "needs a running cluster: make test-cluster starts it and runs this"]
fn says_what_is_wrong_and_where() {
    let folder = folder("trino-wrong");
    let lake = &sources(&folder)[0];
    for (query, marked) in [
        ("SELECT reson\nFROM exits", "'reson' cannot be resolved\n  SELECT reson\n         ^"),
        ("SELECT reason,\n vm FROM exitz", "does not exist\n   vm FROM exitz\n           ^"),
    ] {
        let stderr = refusal(&engine(), query, lake);
        assert!(stderr.contains(marked), "{stderr}");
    }
    let stderr = refusal(&format!("{}er", engine()), "SELECT 1 AS a", lake);
    assert!(stderr.contains("hiveer"), "{stderr}");
}

/// Of a lake in a store, the keys of which the catalog has alone.
#[test]
#[ignore = "needs a running cluster: make test-cluster starts it and runs this"]
fn answers_alike_of_a_lake_in_a_store() {
    let Ok(folder) = std::env::var("HYPERSCOPE_STORE_FOLDER") else { return };
    let folder = Path::new(&folder).join("trino");
    std::fs::create_dir_all(&folder).unwrap();
    let (here, there) = (&sources(&folder)[0], "s3://lakes/trino/lake");
    let engine = format!("trino={}", variable("HYPERSCOPE_TRINO_LAKES"));
    let same = |query: &str, source: &str, rest: &str| {
        let expected = output_of(&["sql", "--format", "json", query, here]);
        let engine = format!("{engine}{rest}");
        let found = output_of(&["sql", "--format", "json", query, source, "--engine", &engine]);
        let rows = assert_alike(&expected, &found, query.starts_with('@'), query);
        eprintln!("{rows} rows alike by trino of {source}{rest}: {query}");
    };
    for query in queries() {
        same(&query, there, "");
    }
    // By a copy here, whose files Trino finds in the store.
    same("@slow-exits", here, "?at=s3://lakes/trino/lake");
    // Days that come later, and rows that are replaced.
    output_of(&["lake", "add", here, "--host", "web3", "--begun", "1795500000", FIXTURES[0]]);
    same("SELECT host_id, COUNT(*) AS exits FROM session_exits GROUP BY host_id", there, "");
    let stderr = refusal(&engine, "SELECT COUNT(*) AS n FROM exits", "s3://none/lake");
    eprint!("{stderr}");
    assert!(stderr.contains("s3://none/lake") || stderr.contains("bucket"), "{stderr}");
}

/// The same question of 209 million rows as Spark is asked; both workers read parts of them.
#[test]
#[ignore = "needs a running cluster: make test-cluster starts it and runs this"]
fn both_workers_take_part() {
    let (rows, expected) = many_rows();
    let start = Instant::now();
    let found = answer(SUMS, &rows);
    let all_s = start.elapsed().as_secs_f64();
    assert_alike(&expected, &found, false, "sums");
    // Of what it ran, that which read most.
    let parts = "SELECT node_id, CAST(SUM(splits) AS BIGINT) AS parts, CAST(SUM(raw_input_rows) AS BIGINT) AS read_rows \
                 FROM system.runtime.tasks WHERE query_id = \
                 (SELECT MAX_BY(query_id, raw_input_rows) FROM system.runtime.tasks) GROUP BY node_id ORDER BY node_id";
    let document = answer(parts, &rows);
    let [nodes, parts, read] = ["node_id", "parts", "read_rows"].map(|name| cells(&document, name));
    eprintln!("Trino: {all_s:.1} s in all; by worker: {nodes:?}, parts {parts:?}, rows {read:?}");
    let read: Vec<u64> = read.iter().map(|count| count.as_u64().unwrap()).collect();
    let all: u64 = read.iter().sum();
    assert!(all >= 200_000_000 && read.len() == 2, "{document}");
    assert!(read.iter().all(|rows| rows * 100 >= all * 40), "{document}");
}
