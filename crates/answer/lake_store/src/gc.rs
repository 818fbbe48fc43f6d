//! Removes invalid rows, of earlier conversions and of interrupted runs, and tables beyond their retention.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, SystemTime};

use super::add::take_row;
use super::by_table::ByTable;
use super::places::{Place, PlaceOf};
use super::session_row::{drop_replaced, read_sessions};
use super::storage::{Entry, Storage};
use crate::column::Table;
use crate::tables::{BUCKETS, REJECTED, SESSIONS, TABLES};

/// The retention of a table.
#[derive(Clone, Debug)]
pub struct Retention {
    /// The table.
    pub table: &'static Table,
    /// Days before this one are removed; written as `2026-11-22`.
    pub before: String,
}

/// Counts of removed files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Files without valid rows.
    pub orphans: u64,
    /// Files that were never completed.
    pub unfinished: u64,
    /// Files beyond their retention.
    pub expired: u64,
    /// Bytes of all removed files.
    pub bytes: u64,
}

/// Removes orphans and unfinished files older than `grace`, and expired days. Younger files stay: a live run may be
/// writing them, and a query may still read replaced rows.
///
/// # Errors
/// When the lake can't be read, or a file can't be removed.
pub fn gc<S: Storage>(
    storage: &S,
    grace: Duration,
    retentions: &[Retention],
    now: SystemTime,
) -> io::Result<Collected> {
    let counting = Counting::read(storage)?;
    let is_old = |file: &Entry| now.duration_since(file.written).is_ok_and(|age| age >= grace);
    let listed = ByTable::list(storage)?;
    let (mut orphans, mut expired) = (Vec::new(), Vec::new());
    for table in TABLES.into_iter().filter(|table| **table != SESSIONS && **table != BUCKETS) {
        let before = retentions
            .iter()
            .filter(|retention| *retention.table == *table)
            .map(|retention| &*retention.before);
        let before = before.max().unwrap_or_default();
        for file in listed.get(table) {
            let Some(place) = Place::parse(&file.name) else { continue };
            if place.date < before {
                expired.push(file.clone());
            } else if !counting.has(&place) && is_old(file) {
                orphans.push(file.clone());
            }
        }
    }
    let orphans = still_orphans(storage, orphans)?;
    let unfinished: Vec<Entry> = storage.unfinished()?.into_iter().filter(is_old).collect();
    let removed: Vec<&Entry> = orphans.iter().chain(&expired).chain(&unfinished).collect();
    storage.remove(&removed.iter().map(|file| file.name.as_str()).collect::<Vec<_>>())?;
    debug_assert!(!TABLES.contains(&&REJECTED), "rejected recordings stay until they are added");
    Ok(Collected {
        orphans: orphans.len() as u64,
        unfinished: unfinished.len() as u64,
        expired: expired.len() as u64,
        bytes: removed.iter().map(|file| file.bytes).sum(),
    })
}

/// Those files that are unchanged since the listing and still invalid. In a store, another run may have made rows of an
/// earlier conversion valid again meanwhile; a folder is locked.
fn still_orphans<S: Storage>(storage: &S, mut orphans: Vec<Entry>) -> io::Result<Vec<Entry>> {
    if orphans.iter().any(|file| file.version.is_some()) {
        let counting = Counting::read(storage)?;
        let again = ByTable::list(storage)?;
        orphans.retain(|file| {
            let place = Place::parse(&file.name);
            let is_counted = place.as_ref().is_none_or(|place| counting.has(place));
            !is_counted && again.has(file)
        });
    }
    Ok(orphans)
}

/// The files with valid rows.
struct Counting {
    /// Session and ingest.
    hot: BTreeSet<(String, String)>,
    parts: BTreeSet<String>,
}

impl Counting {
    /// Reads the valid rows from the sessions. Removes a session's row at another day, which a killed run left.
    fn read<S: Storage>(storage: &S) -> io::Result<Self> {
        let (_, mut sessions) = read_sessions(storage, &|_| true)?;
        for replaced in drop_replaced(&mut sessions) {
            take_row(storage, &replaced.file)?;
        }
        let parts = sessions.iter().filter_map(|row| row.part().map(str::to_owned)).collect();
        let hot = sessions.into_iter().map(|row| (row.session, row.ingest)).collect();
        Ok(Self { hot, parts })
    }

    fn has(&self, place: &Place<'_>) -> bool {
        match place.kind {
            PlaceOf::Hot { session, ingest } => {
                self.hot.contains(&(session.to_owned(), ingest.to_owned()))
            }
            PlaceOf::Cold(part) => self.parts.contains(part),
            PlaceOf::Session(_) => true,
        }
    }
}
