//! Puts the rows of many sessions of a day into few files.
//!
//! Their `ingest_id` gets the part's name appended. So rows in a part count when their session's row says so, one
//! session after the other, and what an interrupted run left of another part never does.

use std::io;

use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;

use super::places::{self, Place, PlaceOf};
use super::session_row::{ROWS, SessionRow, read_all, rows_text};
use super::storage::{Entry, Storage};
use crate::column::Table;
use crate::identity::name_of;
use crate::tables::{SESSIONS, TABLES, table};
use crate::writer::TableWriter;

/// Bytes of files that one part is made of.
const PART_BYTES: u64 = 512 << 20;

/// What compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Sessions whose rows were put together.
    pub sessions: u64,
    /// Parts they are in.
    pub parts: u64,
    /// Files they were in.
    pub files_before: u64,
    /// Files they are in.
    pub files: u64,
}

/// Compacts the days for which `wants` holds; days of one session alone are left as they are.
///
/// # Errors
/// When the lake can't be read or written.
pub fn compact<S: Storage>(storage: &S, wants: &dyn Fn(&str) -> bool) -> io::Result<Compacted> {
    let mut hot: Vec<SessionRow> = read_all(storage)?;
    hot.retain(|row| row.tier == "hot" && wants(&row.date));
    hot.sort_by(|one, other| key(one).cmp(&key(other)));
    let mut done = Compacted::default();
    let files = hot_files(storage)?;
    for day in hot.chunk_by(|one, other| one.date == other.date) {
        let bytes = |row: &SessionRow| {
            files.iter().filter(|file| is_of(file, row)).map(|file| file.bytes).sum::<u64>()
        };
        let mut rest = day;
        while !rest.is_empty() {
            let mut sum = 0;
            let fits = rest.iter().take_while(|row| {
                sum += bytes(row);
                sum <= PART_BYTES
            });
            let (part, others) = rest.split_at(fits.count().max(1));
            if part.len() > 1 {
                write_part(storage, part, &files, &mut done)?;
            }
            rest = others;
        }
    }
    Ok(done)
}

/// By day, host and time: neighbours in a file are queried together.
fn key(row: &SessionRow) -> (&str, &str, Option<i64>, &str) {
    (&row.date, &row.host, row.begun_unix_ns, &row.session)
}

fn is_of(file: &Entry, row: &SessionRow) -> bool {
    let expected = PlaceOf::Hot { session: &row.session, ingest: &row.ingest };
    Place::of(&file.name).is_some_and(|place| place.of == expected)
}

/// The files of all sessions: one that is being moved to another day has them in the folders of the old one.
fn hot_files<S: Storage>(storage: &S) -> io::Result<Vec<Entry>> {
    let mut files = Vec::new();
    for table in TABLES {
        files.extend(storage.list(&format!("{}/{}/hot", places::ROOT, table.name))?);
    }
    Ok(files)
}

fn write_part<S: Storage>(
    storage: &S,
    sessions: &[SessionRow],
    files: &[Entry],
    done: &mut Compacted,
) -> io::Result<()> {
    let names: Vec<&[u8]> = sessions.iter().map(|row| row.ingest.as_bytes()).collect();
    let part = name_of(&names);
    let Some(date) = sessions.first().map(|row| row.date.as_str()) else { return Ok(()) };
    for table in TABLES {
        let of_table =
            |file: &&Entry| Place::of(&file.name).is_some_and(|place| place.table == table.name);
        let own: Vec<&Entry> = sessions
            .iter()
            .flat_map(|row| files.iter().filter(of_table).filter(move |file| is_of(file, row)))
            .collect();
        if own.is_empty() {
            continue;
        }
        let mut writer = TableWriter::new(table, storage.begin()?)?;
        for file in &own {
            append(storage, &file.name, &part, &mut writer)?;
        }
        storage.put(writer.finish()?, &places::cold(table, date, &part))?;
        done.files_before += own.len() as u64;
        done.files += 1;
    }
    for row in sessions {
        flip(storage, row, &part)?;
    }
    done.sessions += sessions.len() as u64;
    done.parts += 1;
    Ok(())
}

/// Appends all rows of a file, as rows of that part.
fn append<S: Storage>(
    storage: &S,
    name: &str,
    part: &str,
    writer: &mut TableWriter<S::Unfinished>,
) -> io::Result<()> {
    let reader = SerializedFileReader::new(storage.open(name)?)?;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        writer.append(&*group, &|column, text| {
            (column.name == "ingest_id").then(|| format!("{text}.{part}"))
        })?;
    }
    Ok(())
}

/// Has the rows of a session count that are in a part, in place of those in its own files.
fn flip<S: Storage>(storage: &S, row: &SessionRow, part: &str) -> io::Result<()> {
    let reader = SerializedFileReader::new(storage.open(&row.file.name)?)?;
    let mut writer = TableWriter::new(&SESSIONS, storage.begin()?)?;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        writer.append(&*group, &|column, text| match column.name {
            "ingest_id" => Some(format!("{text}.{part}")),
            "tier" => Some("cold".to_owned()),
            _ => None,
        })?;
    }
    let rows: Vec<(&'static Table, u64)> =
        row.rows.iter().filter_map(|(name, rows)| Some((table(name)?, *rows))).collect();
    writer.set_metadata(ROWS.to_owned(), rows_text(&rows));
    storage.put(writer.finish()?, &row.file.name)
}
