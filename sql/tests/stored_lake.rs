//! A lake in an object store: DuckDB reads it by its extension httpfs, with keys that this program never has.
//!
//! The store is versitygw, a server of S3's protocol over a folder, built by `go install`; the extension is in a package of
//! PyPI's, and DuckDB takes it only if DuckDB's own makers signed it. Where one can't be had, that is said, and what needs it is left out.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod alike;
mod store;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use alike::{assert_alike, command, output_of, python_with, queries, sources};
use store::{KEY, SECRET, Store};

const LAKE: &str = "s3://lakes/lake";

/// A Python with DuckDB and its extension in a home of its own.
struct Duck {
    python: PathBuf,
    home: tempfile::TempDir,
}

impl Duck {
    fn new() -> Option<Self> {
        let python = python_with("duckdb-extension-httpfs==1.5.5", "duckdb_extension_httpfs")?;
        Some(Self { python, home: tempfile::tempdir().unwrap() })
    }

    /// Has DuckDB do something.
    #[track_caller]
    fn does(&self, statement: &str) {
        let script = "import duckdb, sys; duckdb.execute(sys.argv[1])";
        let mut python = Command::new(&self.python);
        let done = python.args(["-c", script, statement]).env("HOME", self.home.path()).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    fn extension(&self) -> String {
        let script = "import duckdb_extension_httpfs as e, pathlib; print(next(pathlib.Path(e.__path__[0]).rglob('httpfs.duckdb_extension')))";
        let found = Command::new(&self.python).args(["-c", script]).output().unwrap();
        String::from_utf8(found.stdout).unwrap().trim().to_owned()
    }

    fn ask(&self, query: &str, source: &str) -> Output {
        let engine = format!("duckdb={}", self.python.display());
        let args = ["sql", "--format", "json", query, source, "--engine", &engine];
        let mut command = command(&args);
        command.env("HOME", self.home.path());
        if !self.home.path().join(".duckdb/extensions").exists() {
            // It would fetch the extension where it has a network.
            command.env("HTTP_PROXY", "http://127.0.0.1:1");
        }
        command.output().unwrap()
    }

    #[track_caller]
    fn refusal(&self, query: &str, source: &str, why: &str) {
        let done = self.ask(query, source);
        let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.code() == Some(1) && stderr.contains(why), "{stderr}");
        assert!(!stderr.contains(SECRET), "{stderr}");
    }
}

#[test]
fn duckdb_answers_alike_of_a_lake_in_a_store() {
    let Some(duck) = Duck::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let Some(store) = Store::new(folder.path()) else { return };
    let here = &sources(&folder.path().join("root/lakes"))[0];
    let query = "SELECT COUNT(*) AS n FROM exits";
    duck.refusal(
        query,
        LAKE,
        "DuckDB reads s3:// by its extension httpfs, which it has to fetch once",
    );
    duck.does(&format!("INSTALL '{}'", duck.extension()));
    let secret = |secret: &str| {
        format!(
            "CREATE OR REPLACE PERSISTENT SECRET s (TYPE s3, KEY_ID '{KEY}', SECRET '{secret}', ENDPOINT '{}', \
             USE_SSL false, URL_STYLE 'path', REGION 'us-east-1')",
            store.at
        )
    };
    duck.does(&secret("another"));
    duck.refusal(query, LAKE, "DuckDB takes keys and endpoints of its own secrets");
    duck.refusal(query, LAKE, "HTTP 403");
    duck.does(&secret(SECRET));
    duck.refusal(
        query,
        "s3://lakes/none",
        "s3://lakes/none: there is no lake, or one without sessions",
    );
    duck.refusal("SELECT reson\nFROM exits", LAKE, "\n  SELECT reson\n         ^");
    for query in queries() {
        let expected = output_of(&["sql", "--format", "json", &query, here]);
        let done = duck.ask(&query, LAKE);
        assert!(done.status.success(), "{query}: {}", String::from_utf8_lossy(&done.stderr));
        let found = String::from_utf8(done.stdout).unwrap();
        let rows = assert_alike(&expected, &found, query.starts_with('@'), &query);
        eprintln!("{rows} rows alike by duckdb of a store: {query}");
    }
}

#[test]
fn a_lake_in_a_store_is_named_as_one_lake() {
    let stderr_of = |args: &[&str]| {
        let done = alike::hyperscope(args);
        assert_eq!(done.status.code(), Some(1), "{args:?}");
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let query = "SELECT 1 AS a";
    for (args, why) in [
        (
            &["sql", "--engine", "duckdb", query, "s3://lakes/a*"][..],
            "is s3://BUCKET/FOLDER, of letters",
        ),
        (&["sql", "--engine", "duckdb", query, "s3://lakes/a", LAKE], "a lake is asked alone"),
        (
            &["sql", "--engine", "trino=http://127.0.0.1:1?at=s3://b/x", query, LAKE],
            "at=LOCATION is that of a lake in a folder",
        ),
    ] {
        let stderr = stderr_of(args);
        assert!(stderr.contains(why), "{args:?}: {stderr}");
    }
    assert!(!Path::new("s3:").exists());
}
