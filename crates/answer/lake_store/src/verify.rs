//! Reads a complete lake, and reports its faults.

use std::collections::BTreeMap;
use std::io;

use parquet::file::reader::{ChunkReader, FileReader};
use parquet::file::serialized_reader::SerializedFileReader;

use super::by_table::ByTable;
use super::each_open::each_open;
use super::places::{self, Place, PlaceOf};
use super::session_row::{SessionRow, drop_replaced, read};
use super::storage::{Entry, Storage};
use crate::column::Table;
use crate::tables::{BUCKETS, SESSIONS, TABLES};
use crate::writer::texts_of;

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Valid sessions.
    pub sessions: u64,
    /// Valid rows, by table.
    pub rows: BTreeMap<&'static str, u64>,
    /// Files without valid rows.
    pub orphans: u64,
    /// Faults, in sentences.
    pub faults: Vec<String>,
}

/// Rows by session and ingest.
type Rows = BTreeMap<(String, String), u64>;

/// Reads the ids in all rows, and counts the rows. Tables in `expired` may have fewer rows than their sessions say,
/// because old days were removed.
///
/// # Errors
/// When the lake can't be listed.
pub fn verify<S: Storage>(storage: &S, expired: &[&'static Table]) -> io::Result<Verified> {
    let mut found = Verified::default();
    let mut sessions = Vec::new();
    each_of(storage, &storage.list(&places::sessions())?, &mut |file, open| {
        match read(file, open) {
            Ok(row) => sessions.extend(row),
            Err(error) => found.faults.push(error.to_string()),
        }
        Ok(())
    })?;
    for row in drop_replaced(&mut sessions) {
        let (name, session) = (row.file.name, row.session);
        found.faults.push(format!(
            "{name}: session {session} has a newer row on another day; gc deletes this one"
        ));
    }
    found.sessions = sessions.len() as u64;
    let listed = ByTable::list(storage)?;
    for table in TABLES.into_iter().filter(|table| **table != SESSIONS && **table != BUCKETS) {
        let mut rows = Rows::new();
        each_of(storage, listed.get(table), &mut |file, open| {
            match count(file, open, table) {
                Ok(file_rows) => {
                    let counts = file_rows.keys().any(|(session, ingest)| {
                        sessions.iter().any(|row| row.session == *session && row.ingest == *ingest)
                    });
                    found.orphans += u64::from(!counts);
                    for (key, n) in file_rows {
                        *rows.entry(key).or_default() += n;
                    }
                }
                Err(error) => found.faults.push(error.to_string()),
            }
            Ok(())
        })?;
        compare(table, &sessions, &rows, expired, &mut found);
    }
    Ok(found)
}

/// Passes each file to `read`.
fn each_of<S: Storage>(
    storage: &S,
    files: &[Entry],
    read: &mut dyn FnMut(&Entry, S::Read) -> io::Result<()>,
) -> io::Result<()> {
    each_open(storage, &files.iter().collect::<Vec<_>>(), read)
}

/// Compares the rows of a table with the counts in its sessions.
fn compare(
    table: &'static Table,
    sessions: &[SessionRow],
    rows: &Rows,
    expired: &[&'static Table],
    found: &mut Verified,
) {
    for row in sessions {
        let actual = rows.get(&(row.session.clone(), row.ingest.clone())).copied().unwrap_or(0);
        *found.rows.entry(table.name).or_default() += actual;
        let expected = row.rows.get(table.name).copied().unwrap_or(0);
        if actual != expected && !(actual == 0 && expired.contains(&table)) {
            found.faults.push(format!(
                "session {} of {}: found {actual} rows in {}, but {expected} were written",
                row.session, row.source_uri, table.name
            ));
        }
    }
}

/// Counts the rows of a file by owner; the ids must match the file's name.
fn count<R: ChunkReader + 'static>(
    file: &Entry,
    open: R,
    table: &'static Table,
) -> io::Result<Rows> {
    let bad =
        |why: String| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", file.name));
    let reader = SerializedFileReader::new(open).map_err(|error| bad(error.to_string()))?;
    let mut rows = Rows::new();
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(|error| bad(error.to_string()))?;
        let column = |name| -> io::Result<Vec<String>> {
            let at = table.columns.iter().position(|column| column.name == name).unwrap_or(0);
            texts_of(&*group, at).map_err(|error| bad(error.to_string()))
        };
        let (sessions, ingests) = (column("session_id")?, column("ingest_id")?);
        for (session, ingest) in sessions.into_iter().zip(ingests) {
            *rows.entry((session, ingest)).or_default() += 1;
        }
    }
    let is_as_named = |(session, ingest): &(String, String)| match Place::parse(&file.name)
        .map(|place| place.kind)
    {
        Some(PlaceOf::Hot { session: file_session, ingest: file_ingest }) => {
            session == file_session && ingest == file_ingest
        }
        Some(PlaceOf::Cold(part)) => ingest.ends_with(&format!(".{part}")),
        _ => false,
    };
    match rows.keys().find(|key| !is_as_named(key)) {
        Some((session, _)) => {
            Err(bad(format!("contains rows of session {session}, which its name does not mention")))
        }
        None => Ok(rows),
    }
}
