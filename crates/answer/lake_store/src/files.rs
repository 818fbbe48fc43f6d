//! Receives the tables of a session: one file each, named after the session and its set of rows.

use std::io::{self, Write};

use crate::column::Table;

/// Names of a session and its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    /// See [`SESSIONS`](crate::tables::SESSIONS).
    pub session: String,
    /// See [`SESSIONS`](crate::tables::SESSIONS).
    pub ingest: String,
    /// Time of the first event, as in the tables.
    pub begun_ns: i64,
    /// Whether that is Unix time; otherwise it is on the trace clock.
    pub is_dated: bool,
}

/// Receives the files of tables.
pub trait Files {
    /// The destination of a table.
    type File: Write + Send;

    /// Begins the file of a table.
    ///
    /// # Errors
    /// When it can't be made.
    fn begin(&mut self, ids: &Ids, table: &'static Table) -> io::Result<Self::File>;

    /// Completes a file with this many rows.
    ///
    /// # Errors
    /// When it can't be stored.
    fn end(&mut self, table: &'static Table, file: Self::File, rows: u64) -> io::Result<()>;

    /// Additional metadata of a table's file, by key; called once the table is complete.
    fn metadata(&self, _table: &'static Table) -> Vec<(String, String)> {
        Vec::new()
    }
}
