//! Compaction: moves the rows of many sessions of a day into few files.
//!
//! Their `ingest_id` gets the part's name as suffix. Rows in a part become valid session by session, when the
//! session's row names the part. Parts left by an interrupted run never become valid.

use std::io::{self, Write};

use parquet::file::reader::{ChunkReader, FileReader};
use parquet::file::serialized_reader::SerializedFileReader;

use super::by_table::ByTable;
use super::each_open::each_open;
use super::places::{self, Place, PlaceOf};
use super::session_row::{GENERATION, ROWS, SessionRow, read_all, rows_text};
use super::storage::{Entry, Storage};
use crate::column::Table;
use crate::identity::name_of;
use crate::tables::{SESSIONS, TABLES, table};
use crate::writer::TableWriter;

/// Max bytes of source files for one part.
const PART_BYTES: u64 = 512 << 20;

/// The result of a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Sessions whose rows were moved.
    pub sessions: u64,
    /// Parts written.
    pub parts: u64,
    /// Files before.
    pub files_before: u64,
    /// Files after.
    pub files: u64,
    /// Sessions that another run changed meanwhile; they were skipped.
    pub changed: u64,
}

/// Compacts the days for which `wants` holds; skips days with a single session.
///
/// # Errors
/// When the lake can't be read or written.
pub fn compact<S: Storage>(storage: &S, wants: &dyn Fn(&str) -> bool) -> io::Result<Compacted> {
    let mut hot: Vec<SessionRow> = read_all(storage)?;
    hot.retain(|row| row.tier == "hot" && wants(&row.date));
    hot.sort_by(|row, other| key(row).cmp(&key(other)));
    let mut done = Compacted::default();
    // Lists all days: a session that moves to another day has its files in the old day's folders.
    let files = ByTable::list(storage)?;
    for day in hot.chunk_by(|row, other| row.date == other.date) {
        let bytes = |row: &SessionRow| {
            let all = TABLES.into_iter().flat_map(|table| files.get(table));
            all.filter(|file| is_of(file, row)).map(|file| file.bytes).sum::<u64>()
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

/// Order by day, host and time: queries read neighbours together.
fn key(row: &SessionRow) -> (&str, &str, Option<i64>, &str) {
    (&row.date, &row.host, row.begun_unix_ns, &row.session)
}

fn is_of(file: &Entry, row: &SessionRow) -> bool {
    let expected = PlaceOf::Hot { session: &row.session, ingest: &row.ingest };
    Place::parse(&file.name).is_some_and(|place| place.kind == expected)
}

fn write_part<S: Storage>(
    storage: &S,
    sessions: &[SessionRow],
    files: &ByTable,
    done: &mut Compacted,
) -> io::Result<()> {
    let names: Vec<&[u8]> = sessions.iter().map(|row| row.ingest.as_bytes()).collect();
    let part = name_of(&names);
    let Some(date) = sessions.first().map(|row| row.date.as_str()) else { return Ok(()) };
    for table in TABLES {
        let of_row = |row| files.get(table).iter().filter(move |file| is_of(file, row));
        let hot_files: Vec<&Entry> = sessions.iter().flat_map(of_row).collect();
        if hot_files.is_empty() {
            continue;
        }
        let mut writer = TableWriter::new(table, storage.begin()?)?;
        each_open(storage, &hot_files, &mut |_, open| append(open, &part, &mut writer))?;
        storage.put(writer.finish()?, &places::cold(table, date, &part))?;
        done.files_before += hot_files.len() as u64;
        done.files += 1;
    }
    let rows: Vec<&Entry> = sessions.iter().map(|row| &row.file).collect();
    let mut at = sessions.iter();
    each_open(storage, &rows, &mut |_, open| {
        let Some(row) = at.next() else { return Ok(()) };
        match flip(storage, row, open, &part) {
            // The session has newer rows; those in this part never become valid.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => done.changed += 1,
            flipped => {
                flipped?;
                done.sessions += 1;
            }
        }
        Ok(())
    })?;
    done.parts += 1;
    Ok(())
}

/// Appends all rows of a file, as rows of the part.
fn append<R: ChunkReader + 'static, W: Write + Send>(
    open: R,
    part: &str,
    writer: &mut TableWriter<W>,
) -> io::Result<()> {
    let reader = SerializedFileReader::new(open)?;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        writer.append(&*group, &|column, text| {
            (column.name == "ingest_id").then(|| format!("{text}.{part}"))
        })?;
    }
    Ok(())
}

/// Makes the rows of a session in a part valid, in place of those in its own files.
fn flip<S: Storage>(storage: &S, row: &SessionRow, open: S::Read, part: &str) -> io::Result<()> {
    let reader = SerializedFileReader::new(open)?;
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
    if row.generation > 0 {
        writer.set_metadata(GENERATION.to_owned(), row.generation.to_string());
    }
    storage.replace(writer.finish()?, &row.file.name, Some(&row.file))
}
