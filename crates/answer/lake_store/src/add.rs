//! Adds a recording to a lake: its rows first, then the session row that makes them valid.

use std::io;

use super::places;
use super::session_row::{GENERATION, ROWS, SessionRow, drop_replaced, read_sessions, rows_text};
use super::storage::{Entry, Storage};
use crate::column::Table;
use crate::files::{Files, Ids};
use crate::identity::{CONVERTER, name_of};
use crate::tables::{BUCKETS, REJECTED, SESSIONS};
use crate::writer::TableWriter;
use printable::calendar::date_of;

/// Max attempts to leave a session with one row; another run may interfere with each.
const MAX_SETTLED: u32 = 8;

/// The effect of adding a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// The recording is new.
    New,
    /// It replaces rows that an older converter, or other options, made of the recording.
    Replaced,
    /// The same rows exist already.
    There,
    /// Rows of a newer converter than this program's exist, and stay.
    Newer,
    /// The existing rows have a date, which the new ones lack, and stay.
    Dated,
}

/// A recording that is being added; receives the files of its tables.
pub struct Addition<'s, S: Storage> {
    storage: &'s S,
    ids: Ids,
    date: String,
    /// Its valid row.
    known: Option<SessionRow>,
    /// All files that have or had a row of it.
    files: Vec<Entry>,
    rows: Vec<(&'static Table, u64)>,
}

impl<S: Storage> std::fmt::Debug for Addition<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Addition").field("ids", &self.ids).field("date", &self.date).finish()
    }
}

impl<'s, S: Storage> Addition<'s, S> {
    /// Looks up the existing rows of a recording.
    ///
    /// # Errors
    /// When the lake can't be read.
    pub fn new(storage: &'s S, ids: Ids) -> io::Result<Self> {
        let (files, known) = settle(storage, &ids.session)?;
        let date = date_of(ids.begun_ns);
        Ok(Self { storage, ids, date, known, files, rows: Vec::new() })
    }

    /// The effect of adding it. [`Added::There`], [`Added::Newer`] and [`Added::Dated`]: nothing needs to be written.
    #[must_use]
    pub fn outcome(&self) -> Added {
        match &self.known {
            None => Added::New,
            Some(known) if known.made() == self.ids.ingest => Added::There,
            Some(known) if known.converter > CONVERTER => Added::Newer,
            Some(known) if known.begun_unix_ns.is_some() && !self.ids.is_dated => Added::Dated,
            Some(_) => Added::Replaced,
        }
    }
}

impl<S: Storage> Addition<'_, S> {
    /// Makes its rows valid, in place of the previous ones.
    fn commit(&self, file: S::Unfinished) -> io::Result<()> {
        let name = places::session(&self.date, &self.ids.session);
        let mut others = self.files.clone();
        let mut there =
            others.iter().position(|entry| entry.name == name).map(|at| others.remove(at));
        // The valid row is at another day: it moves first, so that two rows are never valid.
        if let Some(row) = self.known.as_ref().filter(|row| row.file.name != name)
            && let Some(moved) = self.storage.rename(&row.file, &name)?
        {
            others.retain(|entry| entry.name != row.file.name);
            there = Some(moved);
        }
        self.storage.replace(file, &name, there.as_ref())?;
        // In storage without renames, this row is valid because its generation is higher.
        if !others.is_empty() {
            settle(self.storage, &self.ids.session)?;
        }
        Ok(())
    }
}

impl<S: Storage> Files for Addition<'_, S> {
    type File = S::Unfinished;

    fn begin(&mut self, _: &Ids, _: &'static Table) -> io::Result<S::Unfinished> {
        self.storage.begin()
    }

    fn end(&mut self, table: &'static Table, file: S::Unfinished, rows: u64) -> io::Result<()> {
        if *table == BUCKETS {
            return self.storage.put(file, &places::buckets());
        }
        if *table == SESSIONS {
            return self.commit(file);
        }
        // A table without rows needs no file.
        if rows == 0 {
            return self.storage.give_up(file);
        }
        self.rows.push((table, rows));
        let name = places::hot(table, &self.date, &self.ids.session, &self.ids.ingest);
        self.storage.put(file, &name)
    }

    fn metadata(&self, table: &'static Table) -> Vec<(String, String)> {
        if *table != SESSIONS {
            return Vec::new();
        }
        let rows = (ROWS.to_owned(), rows_text(&self.rows));
        // The first row of a session has no generation.
        let before = self.known.as_ref().map(|row| row.generation + 1);
        let generation = before.map(|before| (GENERATION.to_owned(), before.to_string()));
        [rows].into_iter().chain(generation).collect()
    }
}

/// The files of a session, and its valid row. A killed run or concurrent runs may have left rows at several days: the
/// others are removed.
fn settle<S: Storage>(storage: &S, session: &str) -> io::Result<(Vec<Entry>, Option<SessionRow>)> {
    let file = format!("/{session}.parquet");
    for _ in 0..MAX_SETTLED {
        let (files, mut known) = read_sessions(storage, &|entry| entry.name.ends_with(&file))?;
        let replaced = drop_replaced(&mut known);
        if replaced.is_empty() {
            return Ok((files, known.pop()));
        }
        replaced.iter().try_for_each(|row| take_row(storage, &row.file))?;
    }
    Err(io::Error::other(format!("session {session}: other runs keep changing it; try again")))
}

/// Removes the row from a session's file, because a row at another day is valid. It replaces only the content that was
/// read, so the valid row stays whatever other runs do. The file itself stays, because stores can't remove only a known
/// version.
pub(super) fn take_row<S: Storage>(storage: &S, file: &Entry) -> io::Result<()> {
    let empty = TableWriter::new(&SESSIONS, storage.begin()?)?.finish()?;
    match storage.replace(empty, &file.name, Some(file)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}

fn rejected_name(source_uri: &str) -> String {
    format!("{}/{}.parquet", places::rejected(), name_of(&[b"rejected", source_uri.as_bytes()]))
}

/// Records that a recording could not be added, and the reason.
///
/// # Errors
/// When that can't be written.
pub fn reject<S: Storage>(
    storage: &S,
    source_uri: &str,
    sha256: Option<&str>,
    why: &str,
) -> io::Result<()> {
    let mut table = TableWriter::new(&REJECTED, storage.begin()?)?;
    table.row().text(source_uri).text_or_null(sha256).text(why);
    table.end_row()?;
    storage.put(table.finish()?, &rejected_name(source_uri))
}

/// Removes the record of a failed attempt.
///
/// # Errors
/// When that fails.
pub fn unreject<S: Storage>(storage: &S, source_uri: &str) -> io::Result<()> {
    storage.remove(&[&rejected_name(source_uri)])
}
