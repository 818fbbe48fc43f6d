//! Adds a recording to a lake: its rows first, then the row that makes them count.

use std::io;

use super::places;
use super::session_row::{ROWS, SessionRow, read, rows_text};
use super::storage::Storage;
use crate::column::Table;
use crate::convert::{Files, Ids};
use crate::identity::{CONVERTER, name_of};
use crate::tables::{BUCKETS, REJECTED, SESSIONS};
use crate::writer::TableWriter;
use calendar::date_of;

/// What adding a recording did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is new.
    New,
    /// It replaces rows that an older converter, or other options, had made of it.
    Replaced,
    /// The same rows are there already.
    There,
    /// Rows of a newer converter than this program's are there, and stay.
    Newer,
    /// Rows that say when it was recorded are there, which these would not, and stay.
    Dated,
}

/// A recording that is being added: takes its tables' files.
pub struct Addition<'s, S: Storage> {
    storage: &'s S,
    ids: Ids,
    date: String,
    known: Option<SessionRow>,
    rows: Vec<(&'static Table, u64)>,
}

impl<S: Storage> std::fmt::Debug for Addition<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Addition").field("ids", &self.ids).field("date", &self.date).finish()
    }
}

impl<'s, S: Storage> Addition<'s, S> {
    /// Looks up what is there of a recording.
    ///
    /// # Errors
    /// When the lake can't be read.
    pub fn new(storage: &'s S, ids: Ids) -> io::Result<Self> {
        let file = format!("/{}.parquet", ids.session);
        let all = storage.list(&places::sessions())?;
        let known = all.iter().find(|one| one.name.ends_with(&file));
        let known = known.map(|file| read(storage, file)).transpose()?;
        let date = date_of(ids.begun_ns);
        Ok(Self { storage, ids, date, known, rows: Vec::new() })
    }

    /// What adding it does. [`Added::There`] and [`Added::Newer`]: nothing is to be written.
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
            let name = places::session(&self.date, &self.ids.session);
            // Of another day: its row goes there first, so that two of them never count.
            if let Some(known) = self.known.as_ref().filter(|known| known.file.name != name) {
                self.storage.rename(&known.file.name, &name)?;
            }
            return self.storage.put(file, &name);
        }
        // A table without rows needs no file.
        if rows == 0 {
            return self.storage.give_up(file);
        }
        self.rows.push((table, rows));
        let name = places::hot(table, &self.date, &self.ids.session, &self.ids.ingest);
        self.storage.put(file, &name)
    }

    fn metadata(&self, table: &'static Table) -> Option<(String, String)> {
        (*table == SESSIONS).then(|| (ROWS.to_owned(), rows_text(&self.rows)))
    }
}

fn rejected_name(source_uri: &str) -> String {
    format!("{}/{}.parquet", places::rejected(), name_of(&[b"rejected", source_uri.as_bytes()]))
}

/// Notes that a recording could not be added, and why.
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

/// Forgets that it could not be added.
///
/// # Errors
/// When that fails.
pub fn unreject<S: Storage>(storage: &S, source_uri: &str) -> io::Result<()> {
    storage.remove(&rejected_name(source_uri))
}
