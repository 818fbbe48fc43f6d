//! Finds the files of a lake that contain valid rows, for queries.

use std::io;

use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;

use super::by_table::ByTable;
use super::places::{Place, PlaceOf};
use super::session_row::{SessionRow, read_all};
use super::storage::{Entry, Storage};
use crate::column::Table;
use crate::tables::{BUCKETS, SESSIONS, TABLES};

/// The files of one table.
#[derive(Clone, Debug)]
pub struct TableFiles {
    /// The table.
    pub table: &'static Table,
    /// Files with valid rows, by name.
    pub files: Vec<Entry>,
    /// Whether all their rows are valid; otherwise a query must join `sessions` on both ids.
    pub all_count: bool,
}

/// The files of all tables.
///
/// # Errors
/// When the lake can't be read.
pub fn counted<S: Storage>(storage: &S) -> io::Result<Vec<TableFiles>> {
    let sessions = read_all(storage)?;
    let listed = ByTable::list(storage)?;
    let mut all = vec![
        TableFiles {
            table: &SESSIONS,
            files: sessions.iter().map(|row| row.file.clone()).collect(),
            all_count: true,
        },
        TableFiles { table: &BUCKETS, files: listed.get(&BUCKETS).to_vec(), all_count: true },
    ];
    for table in TABLES.into_iter().filter(|table| **table != SESSIONS && **table != BUCKETS) {
        let mut found = TableFiles { table, files: Vec::new(), all_count: true };
        for file in listed.get(table) {
            let rows = rows_that_count(file, table, &sessions);
            let Some(rows) = rows.filter(|rows| !rows.is_empty()) else { continue };
            let is_cold =
                matches!(Place::parse(&file.name), Some(Place { kind: PlaceOf::Cold(_), .. }));
            if is_cold && found.all_count {
                found.all_count = rows_in(storage, file)? == rows.into_iter().sum::<u64>();
            }
            found.files.push(file.clone());
        }
        all.push(found);
    }
    Ok(all)
}

/// Number of valid rows per session in a file; empty if the file belongs to no session.
fn rows_that_count(file: &Entry, table: &Table, sessions: &[SessionRow]) -> Option<Vec<u64>> {
    let place = Place::parse(&file.name)?;
    let is_in = |row: &&SessionRow| match place.kind {
        PlaceOf::Hot { session, ingest } => row.session == session && row.ingest == ingest,
        PlaceOf::Cold(part) => row.part() == Some(part),
        PlaceOf::Session(_) => false,
    };
    let rows = |row: &SessionRow| row.rows.get(table.name).copied().unwrap_or(0);
    Some(sessions.iter().filter(is_in).map(rows).filter(|rows| *rows > 0).collect())
}

fn rows_in<S: Storage>(storage: &S, file: &Entry) -> io::Result<u64> {
    let mut rows = 0;
    for open in storage.open(&[file])? {
        let reader = SerializedFileReader::new(open)?;
        rows += reader.metadata().file_metadata().num_rows().unsigned_abs();
    }
    Ok(rows)
}
