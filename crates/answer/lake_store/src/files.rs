//! What takes the tables of a session: one file each, named after the session and this set of its rows.

use std::io::{self, Write};

use crate::column::Table;

/// Names of a session and its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    /// See [`SESSIONS`](crate::tables::SESSIONS).
    pub session: String,
    /// See [`SESSIONS`](crate::tables::SESSIONS).
    pub ingest: String,
    /// When its first event was recorded, as the tables have it.
    pub begun_ns: i64,
    /// That is Unix time; else it is the trace clock's.
    pub is_dated: bool,
}

/// Takes the files of tables.
pub trait Files {
    /// What a table is written to.
    type File: Write + Send;

    /// Begins the file of a table.
    ///
    /// # Errors
    /// When it can't be made.
    fn begin(&mut self, ids: &Ids, table: &'static Table) -> io::Result<Self::File>;

    /// The file is complete, and has this many rows.
    ///
    /// # Errors
    /// When it can't be kept.
    fn end(&mut self, table: &'static Table, file: Self::File, rows: u64) -> io::Result<()>;

    /// What the file of a table that is complete but for that says besides, under which key.
    fn metadata(&self, _table: &'static Table) -> Vec<(String, String)> {
        Vec::new()
    }
}
