//! What tests of engines have in common: what is asked of which sources, and when answers are alike.

#![allow(clippy::unwrap_used, clippy::expect_used, dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub const FIXTURES: [&str; 2] = ["fixtures/arm64/D.dat", "fixtures/x86-svm/nested.dat"];

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

pub fn command(args: &[&str]) -> Command {
    let program = std::env::var_os("HYPERSCOPE").map(PathBuf::from);
    let program = program.unwrap_or_else(|| repository().join("target/debug/hyperscope"));
    let bin_folder = Path::new(env!("CARGO_BIN_EXE_hyperscope-sql")).parent().unwrap();
    let path = format!("{}:{}", bin_folder.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(program);
    command.current_dir(repository()).env("PATH", path).stdin(Stdio::null());
    command.args(args);
    command
}

pub fn hyperscope(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

#[track_caller]
pub fn output_of(args: &[&str]) -> String {
    let done = hyperscope(args);
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// A Python with a package, kept among the build's files; `None` where it can't be made.
pub fn python_with(package: &str, module: &str) -> Option<PathBuf> {
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

/// All questions that are known by name.
pub fn questions() -> Vec<String> {
    let listed = output_of(&["sql", "--list"]);
    let names = listed.lines().filter_map(|line| line.split_whitespace().next());
    let names: Vec<String> =
        names.filter(|name| name.starts_with('@')).map(str::to_owned).collect();
    let files = std::fs::read_dir(repository().join("sql/questions")).unwrap();
    assert_eq!(names.len(), files.count(), "{listed}");
    names
}

/// All views, as their file has them.
pub fn views() -> Vec<String> {
    let text = std::fs::read_to_string(repository().join("sql/views.sql")).unwrap();
    let names = text.lines().filter_map(|line| line.strip_prefix("CREATE VIEW "));
    let names: Vec<String> = names.map(|name| name.trim_end_matches(" AS").to_owned()).collect();
    assert!(names.len() >= 6, "{names:?}");
    names
}

/// What all must answer alike: questions, views and plain queries.
pub fn queries() -> Vec<String> {
    let of_views = views().into_iter().map(|view| match &*view {
        // Rows of its own for each exit: their sums say as much.
        "session_exits" => "SELECT host_id, vm, reason, COUNT(*) AS exits, SUM(ts_ns % 1000000) AS times, SUM(guest_ns) AS guest_ns FROM session_exits GROUP BY host_id, vm, reason".to_owned(),
        view => format!("SELECT * FROM {view}"),
    });
    let plain = [
        "SELECT vm, level, reason, COUNT(*) AS exits, SUM(time_ns) AS time_ns, AVG(cost_ns) AS mean_ns FROM exits GROUP BY vm, level, reason;",
        "SELECT s.host_id, x.reason, MAX(x.ts_ns) AS last FROM exits x JOIN sessions s ON s.session_id = x.session_id GROUP BY s.host_id, x.reason",
        "SELECT reason, 'a;b' AS text, 1.5 AS number, COUNT(*) > 3 AS many FROM exits WHERE level = 9 GROUP BY reason",
        "SELECT COUNT(*) AS n, MIN(key) AS least FROM labels",
    ];
    questions().into_iter().chain(of_views).chain(plain.map(str::to_owned)).collect()
}

fn rows(document: &str, are_ordered: bool) -> (Value, Vec<Value>) {
    let mut answer: Value = serde_json::from_str(document).unwrap();
    let mut rows = std::mem::take(answer["rows"].as_array_mut().unwrap());
    if !are_ordered {
        rows.sort_by_key(|row| {
            let parts = row.as_object().unwrap().values().filter(|value| !value.is_f64());
            parts.map(Value::to_string).collect::<Vec<_>>()
        });
    }
    (answer["columns"].take(), rows)
}

/// Whole numbers, texts and nulls are the same, numbers with a fraction within 1e-12; so is the order, where there is one.
#[track_caller]
pub fn assert_alike(expected: &str, other: &str, are_ordered: bool, what: &str) -> usize {
    let ((columns, expected), (theirs, other)) =
        (rows(expected, are_ordered), rows(other, are_ordered));
    assert_eq!((columns, expected.len()), (theirs, other.len()), "{what}");
    for (row, same) in expected.iter().zip(&other) {
        for (name, value) in row.as_object().unwrap() {
            let is_near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * a.abs().max(b.abs());
            let alike = match (value.as_f64(), same[name].as_f64()) {
                (Some(a), Some(b)) if value.is_f64() => is_near(a, b),
                _ => *value == same[name],
            };
            assert!(alike, "{what}: {name}: {value} and {}", same[name]);
        }
    }
    expected.len()
}

/// A lake, a folder of tables and a recording; of the lake a part of the rows counts.
pub fn sources(folder: &Path) -> Vec<String> {
    let (lake, tables) = (folder.join("lake"), folder.join("tables"));
    let (at, out) = (lake.to_str().unwrap(), tables.to_str().unwrap());
    for (host, file) in ["web1", "web2"].iter().zip(FIXTURES) {
        let add = ["lake", "add", at, "--label", "pool=x", "--begun", "1795305600", "--host"];
        output_of(&[&add[..], &[host, file]].concat());
    }
    output_of(&["lake", "compact", at, "--before", "2026-11-23"]);
    output_of(&["lake", "add", at, "--host", "web1", "--begun", "1795305601", FIXTURES[0]]);
    output_of(&["export", "--to", "parquet", "-o", out, FIXTURES[0]]);
    vec![at.to_owned(), out.to_owned(), FIXTURES[0].to_owned()]
}

/// Asks both engines, and says what they answered alike.
#[track_caller]
pub fn compare(engine: &str, sources: &[String], queries: &[String]) {
    for source in sources {
        for query in queries {
            let args = ["sql", "--format", "json", query, source];
            let other = [&args[..], &["--engine", engine]].concat();
            let (expected, other) = (output_of(&args), output_of(&other));
            let what = format!("{query} of {source}");
            let rows = assert_alike(&expected, &other, query.starts_with('@'), &what);
            eprintln!("{rows} rows alike by {}: {what}", engine.split('=').next().unwrap());
        }
    }
}
