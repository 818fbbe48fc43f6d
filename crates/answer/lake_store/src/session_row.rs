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

/// The columns of a session's row that maintain the lake, and the row's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// Its file.
    pub file: Entry,
    /// The day of its files.
    pub date: String,
    /// Its session id.
    pub session: String,
    /// The ingest id of its valid rows.
    pub ingest: String,
    /// `hot` or `cold`.
    pub tier: String,
    /// Its host; empty: unknown.
    pub host: String,
    /// The host's kernel; empty: unknown.
    pub kernel: String,
    /// Its start, in Unix time.
    pub begun_unix_ns: Option<i64>,
    /// Version of its converter.
    pub converter: i32,
    /// The path of the recording.
    pub source_uri: String,
    /// Number of its rows by table, if its file has them.
    pub rows: BTreeMap<&'static str, u64>,
    /// While a session moves to another day in an object store, two files have its row: the one with the higher
    /// generation is valid.
    pub generation: u64,
}

/// Max listings of sessions if other runs change them meanwhile.
const MAX_READINGS: u32 = 16;

/// Metadata key of a session's file: its rows by table.
pub(super) const ROWS: &str = "hyperscope.rows";
/// Metadata key of a session's file: the number of earlier rows of that session.
pub(super) const GENERATION: &str = "hyperscope.generation";

impl SessionRow {
    /// The original ingest id of its rows, without the part that holds them now.
    #[must_use]
    pub fn made(&self) -> &str {
        self.ingest.split('.').next().unwrap_or_default()
    }

    /// The part that holds its rows.
    #[must_use]
    pub fn part(&self) -> Option<&str> {
        self.ingest.split_once('.').map(|(_, part)| part)
    }
}

/// Encodes and decodes rows by table as text.
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

/// Reads the row of one session; `None`: the row has moved to another day.
///
/// # Errors
/// When the file can't be read, or belongs to no session.
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
/// When a row can't be read.
pub(super) fn read_all<S: Storage>(storage: &S) -> io::Result<Vec<SessionRow>> {
    let (_, mut rows) = read_sessions(storage, &|_| true)?;
    drop_replaced(&mut rows);
    Ok(rows)
}

/// The files for which `wants` holds, and their rows. Lists again if another run changes a file between listing and
/// reading.
///
/// # Errors
/// When a row can't be read.
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

/// Whether a file has changed since the listing.
fn is_of_another_run(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists)
}

/// Removes the rows of sessions that have a later row at another day, and returns them.
pub(super) fn drop_replaced(rows: &mut Vec<SessionRow>) -> Vec<SessionRow> {
    let mut latest: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for row in &*rows {
        let known = latest.get(&row.session);
        // Of two rows with the same generation, the first by name is valid.
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
