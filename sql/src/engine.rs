//! Passes a query to another engine: DuckDB, Spark or Trino read the tables' files, and their result is written in the
//! same formats as this program's.
//!
//! The engines write their result as Parquet into a separate folder, so that numbers keep their types.

mod duckdb;
mod spark;
mod trino;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use datafusion::error::{DataFusionError, Result};
use tempfile::TempDir;

use crate::at_fault::marked;
use crate::foreign_tables::Named;
use crate::stored_lake::StoredLake;

/// Another engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// DuckDB: its program, or a Python with its module.
    DuckDb(PathBuf),
    /// Spark, through its `spark-sql`: the master.
    Spark(String),
    /// Trino, through a catalog of its Hive connector.
    Trino(trino::Catalog),
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.split_once('=') {
            None if text == "duckdb" => Ok(Self::DuckDb("duckdb".into())),
            Some(("duckdb", program)) if !program.is_empty() => Ok(Self::DuckDb(program.into())),
            Some(("spark", master)) if !master.is_empty() => Ok(Self::Spark(master.to_owned())),
            Some(("trino", url)) => trino::Catalog::parse(url).map(Self::Trino),
            // The text after the engine's name may be a password.
            _ => Err(format!(
                "{} is no engine; there are: duckdb, duckdb=PROGRAM, duckdb=PYTHON, spark=MASTER, trino=URL",
                text.split_once('=').map_or(text, |(name, _)| name)
            )),
        }
    }
}

/// The result of an engine.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The folder with its files; dropping this removes it.
    folder: TempDir,
}

impl Answer {
    /// Files of the result, in the order of its rows.
    ///
    /// # Errors
    /// When they can't be listed.
    pub(crate) fn files(&self) -> io::Result<Vec<String>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(self.folder.path().join("answer"))? {
            let path = entry?.path();
            if path.extension() == Some(OsStr::new("parquet")) {
                files.push(path.display().to_string());
            }
        }
        files.sort();
        Ok(files)
    }
}

/// A request to an engine.
#[derive(Debug)]
pub(crate) struct Asked<'q> {
    pub(crate) tables: &'q [Named],
    /// One statement, without a semicolon.
    pub(crate) query: &'q str,
    pub(crate) memory_mib: usize,
    /// The lake that contains these tables, if any.
    pub(crate) lake: Option<&'q Path>,
    /// The lake in an object store: only the engine can list its tables' files.
    pub(crate) store: Option<&'q StoredLake>,
}

impl Engine {
    /// Runs the query.
    ///
    /// # Errors
    /// When the engine can't be run, or reports an error.
    pub(crate) async fn ask(&self, request: &Asked<'_>) -> Result<Answer> {
        if request.query.starts_with(['\\', '.']) {
            return Err(failed(
                "--engine takes queries; \\d and .explain are without it".to_owned(),
            ));
        }
        let folder = tempfile::Builder::new().prefix("hyperscope-sql-").tempdir()?;
        match self {
            Self::DuckDb(program) => duckdb::ask(program, request, folder.path()).await?,
            Self::Spark(master) => spark::ask(master, request, folder.path()).await?,
            Self::Trino(catalog) => trino::ask(catalog, request, folder.path()).await?,
        }
        Ok(Answer { folder })
    }
}

fn failed(why: String) -> DataFusionError {
    DataFusionError::External(why.into())
}

/// An engine's error, with the position in the query if it names one.
fn at_place(why: &str, query: &str, place: Option<(u64, u64)>) -> DataFusionError {
    let marked = place.and_then(|(line, column)| marked(query, line, column));
    failed(marked.map_or_else(|| why.to_owned(), |marked| format!("{why}\n{marked}")))
}

/// A string literal.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
