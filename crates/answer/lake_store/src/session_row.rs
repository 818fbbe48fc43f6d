//! The row of a session, read back from a lake.

use std::collections::BTreeMap;
use std::io;

use parquet::file::reader::{ChunkReader, FileReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::record::RowAccessor;

use super::each_open::each_open;
use super::places::{Place, PlaceOf, sessions};
use super::storage::{Entry, Storage};
use crate::column::Table;
use crate::tables::{SESSIONS, table};

/// What of a session's row a lake is kept by, and its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// Its file.
    pub file: Entry,
    /// The day that its files are of.
    pub date: String,
    /// Its identity.
    pub session: String,
    /// That of its rows that count.
    pub ingest: String,
    /// `hot` or `cold`.
    pub tier: String,
    /// Its host; empty: not known.
    pub host: String,
    /// The host's kernel; empty: not known.
    pub kernel: String,
    /// When it began, in Unix time.
    pub begun_unix_ns: Option<i64>,
    /// Number of its converter.
    pub converter: i32,
    /// Where it was read from.
    pub source_uri: String,
    /// Rows that it has by table, where its file says so.
    pub rows: BTreeMap<&'static str, u64>,
    /// Of two files with a row of the session, which an object store has while it gets another day, the one that was
    /// put later counts.
    pub generation: u64,
}

/// How often sessions are listed, where other runs change them meanwhile.
const MAX_READINGS: u32 = 16;

/// In the metadata of a session's file: its rows by table.
pub(super) const ROWS: &str = "hyperscope.rows";
/// In the same: how many rows of that session there were before this one.
pub(super) const GENERATION: &str = "hyperscope.generation";

impl SessionRow {
    /// The identity of its rows when they were made, whatever part they are in now.
    #[must_use]
    pub fn made(&self) -> &str {
        self.ingest.split('.').next().unwrap_or_default()
    }

    /// The part that they are in.
    #[must_use]
    pub fn part(&self) -> Option<&str> {
        self.ingest.split_once('.').map(|(_, part)| part)
    }
}

/// Rows by table as a text, and back.
pub(super) fn rows_text(rows: &[(&'static Table, u64)]) -> String {
    let rows = rows.iter().filter(|(_, rows)| *rows > 0);
    rows.map(|(table, rows)| format!("{}={rows}", table.name)).collect::<Vec<_>>().join(" ")
}

fn rows_of(text: &str) -> BTreeMap<&'static str, u64> {
    let parse_pair = |pair: &str| {
        let (name, rows) = pair.split_once('=')?;
        Some((table(name)?.name, rows.parse().ok()?))
    };
    text.split_ascii_whitespace().filter_map(parse_pair).collect()
}

fn bad(name: &str, why: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{name}: {why}"))
}

/// Reads the row of one session; `None`: there was one, and it is at another day.
///
/// # Errors
/// When its file can't be read, or is none of a session.
pub(super) fn read<R: ChunkReader + 'static>(
    file: &Entry,
    open: R,
) -> io::Result<Option<SessionRow>> {
    let name = file.name.as_str();
    let place = Place::parse(name).ok_or_else(|| bad(name, "is not in the folder of a day"))?;
    let reader = SerializedFileReader::new(open).map_err(|error| bad(name, error))?;
    let metadata = reader.metadata().file_metadata();
    let metadata_value = |key| {
        let all = metadata.key_value_metadata();
        let entry = all.and_then(|all| all.iter().find(|entry| entry.key == key));
        entry.and_then(|entry| entry.value.as_deref()).unwrap_or_default()
    };
    let (rows, generation) =
        (rows_of(metadata_value(ROWS)), metadata_value(GENERATION).parse().unwrap_or(0));
    let mut all = reader.get_row_iter(None).map_err(|error| bad(name, error))?;
    let Some(row) = all.next() else { return Ok(None) };
    let row = row.map_err(|error| bad(name, error))?;
    let at = |column: &str| {
        SESSIONS.columns.iter().position(|candidate| candidate.name == column).unwrap_or(0)
    };
    let text = |column| row.get_string(at(column)).map(String::to_owned).unwrap_or_default();
    let session = text("session_id");
    if place.kind != PlaceOf::Session(&session) {
        return Err(bad(name, "has the name of another session"));
    }
    Ok(Some(SessionRow {
        file: file.clone(),
        date: place.date.to_owned(),
        ingest: text("ingest_id"),
        tier: text("tier"),
        host: text("host_id"),
        kernel: text("kernel_release"),
        begun_unix_ns: row.get_long(at("begun_unix_ns")).ok(),
        converter: row.get_int(at("converter")).unwrap_or(0),
        source_uri: text("source_uri"),
        session,
        rows,
        generation,
    }))
}

/// The rows of all sessions, by day and name.
///
/// # Errors
/// When one can't be read.
pub(super) fn read_all<S: Storage>(storage: &S) -> io::Result<Vec<SessionRow>> {
    let (_, mut rows) = read_sessions(storage, &|_| true)?;
    drop_replaced(&mut rows);
    Ok(rows)
}

/// The files of sessions that `wants` holds for, and their rows. What another run changes between a listing and a reading
/// is listed again.
///
/// # Errors
/// When one can't be read.
pub(super) fn read_sessions<S: Storage>(
    storage: &S,
    wants: &dyn Fn(&Entry) -> bool,
) -> io::Result<(Vec<Entry>, Vec<SessionRow>)> {
    let mut known: BTreeMap<Entry, Option<SessionRow>> = BTreeMap::new();
    let mut attempts = MAX_READINGS;
    loop {
        let mut files = storage.list(&sessions())?;
        files.retain(wants);
        let unread: Vec<&Entry> = files.iter().filter(|file| !known.contains_key(file)).collect();
        let done = each_open(storage, &unread, &mut |file, open| {
            known.insert(file.clone(), read(file, open)?);
            Ok(())
        });
        attempts -= 1;
        match done {
            Err(error) if attempts > 0 && is_of_another_run(&error) => (),
            done => {
                done?;
                let rows = files.iter().filter_map(|file| known.remove(file).flatten()).collect();
                return Ok((files, rows));
            }
        }
    }
}

/// Whether a file is no longer what was listed.
fn is_of_another_run(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists)
}

/// Takes out the rows of sessions that have a later one at another day, and says which those were.
pub(super) fn drop_replaced(rows: &mut Vec<SessionRow>) -> Vec<SessionRow> {
    let mut latest: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for row in &*rows {
        let known = latest.get(&row.session);
        // Of two that were put at a time the first by name counts.
        if known.is_none_or(|known| row.generation > known.0) {
            latest.insert(row.session.clone(), (row.generation, row.file.name.clone()));
        }
    }
    let counts =
        |row: &SessionRow| latest.get(&row.session).is_none_or(|latest| latest.1 == row.file.name);
    let (counted, replaced) = std::mem::take(rows).into_iter().partition(counts);
    *rows = counted;
    replaced
}
