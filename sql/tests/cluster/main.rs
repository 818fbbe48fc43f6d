//! Clusters of Spark and Trino answer as this program does. `make test-cluster` starts them and runs these, which are ignored
//! elsewhere: `HYPERSCOPE_SPARK_MASTER` and `HYPERSCOPE_TRINO` say where they are, `HYPERSCOPE_CLUSTER_HOME` a folder that they see.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../alike/mod.rs"]
mod alike;
mod spark;
mod trino;
mod trino_tls;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use alike::{FIXTURES, command, output_of};

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: make test-cluster sets it"))
}

/// A new folder that the cluster sees.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(&variable("HYPERSCOPE_CLUSTER_HOME")).join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A table for people is the same text, whoever answers.
#[track_caller]
fn tables_are_the_same(engine: &str, source: &str) {
    let query = "SELECT reason, level, COUNT(*) AS exits FROM exits GROUP BY reason, level ORDER BY exits DESC, reason, level";
    let table = ["sql", query, source];
    assert_eq!(output_of(&table), output_of(&[&table[..], &["--engine", engine]].concat()));
}

/// What is said of a query that can't be answered.
#[track_caller]
fn refusal(engine: &str, query: &str, source: &str) -> String {
    let done = command(&["sql", "--engine", engine, query, source]).output().unwrap();
    let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{stderr}");
    stderr
}

/// How many links there are to a file of exits: some 209 million rows in all.
const COPIES: usize = 600;

/// Asked of them.
const SUMS: &str = "SELECT vm, level, reason, COUNT(*) AS exits, SUM(time_ns) AS time_ns, SUM(cost_ns) AS cost_ns, \
                    MIN(time_ns) AS min_ns, MAX(time_ns) AS max_ns, MAX(ts_ns) AS last_ns FROM exits GROUP BY vm, level, reason";

/// A folder of tables whose exits are those of a recording, many times: one file by many names takes no room. And what this
/// program says of them.
fn many_rows() -> (String, String) {
    let folder = folder("many-rows");
    let (exits, answer) = (folder.join("exits"), folder.join("answer.json"));
    let path = folder.to_str().unwrap().to_owned();
    if !answer.exists() {
        let export_folder = folder.join("one");
        let out = export_folder.to_str().unwrap();
        output_of(&["export", "--to", "parquet", "--tables", "exits", "-o", out, FIXTURES[1]]);
        fs::create_dir(&exits).unwrap();
        for at in 0..COPIES {
            let name = exits.join(format!("part-{at:05}.parquet"));
            fs::hard_link(export_folder.join("exits.parquet"), name).unwrap();
        }
        let count =
            output_of(&["sql", "--format", "csv", "SELECT COUNT(*) AS n FROM exits", &path]);
        eprintln!("rows: {}", count.trim_start_matches("n\n"));
        let start = Instant::now();
        fs::write(&answer, output_of(&["sql", "--format", "json", SUMS, &path])).unwrap();
        eprintln!("this program: {:.1} s in all", start.elapsed().as_secs_f64());
    }
    let answer = fs::read_to_string(answer).unwrap();
    (path, answer)
}
