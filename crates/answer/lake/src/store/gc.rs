//! Removes what counts nowhere: rows of earlier conversions and of interrupted runs, and tables that are old enough.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, SystemTime};

use super::add::take_row;
use super::by_table::ByTable;
use super::places::{self, Place, PlaceOf};
use super::session_row::{drop_replaced, read_each};
use super::storage::{Entry, Storage};
use crate::column::Table;
use crate::tables::{BUCKETS, REJECTED, SESSIONS, TABLES};

/// How long the rows of a table are kept.
#[derive(Clone, Debug)]
pub struct Retention {
    /// The table.
    pub table: &'static Table,
    /// Days before this one are removed, as `2026-11-22`.
    pub before: String,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Files whose rows counted nowhere.
    pub orphans: u64,
    /// Files that were never completed.
    pub unfinished: u64,
    /// Files of tables that are kept for a time.
    pub expired: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Removes orphans and unfinished files that are older than `grace` (a run that goes on makes such, and a query may
/// still read what was replaced), and days that are not to be kept.
///
/// # Errors
/// When the lake can't be read, or a file not removed.
pub fn gc<S: Storage>(
    storage: &S,
    grace: Duration,
    retentions: &[Retention],
    now: SystemTime,
) -> io::Result<Collected> {
    let files = storage.list(&places::sessions())?;
    let mut sessions = read_each(storage, &files.iter().collect::<Vec<_>>())?;
    // Left by a run that was killed while it gave a session another day.
    for replaced in drop_replaced(&mut sessions) {
        take_row(storage, &replaced.file)?;
    }
    let hot: BTreeSet<(&str, &str)> =
        sessions.iter().map(|row| (row.session.as_str(), row.ingest.as_str())).collect();
    let parts: BTreeSet<&str> = sessions.iter().filter_map(|row| row.part()).collect();
    let is_old = |file: &Entry| now.duration_since(file.written).is_ok_and(|age| age >= grace);
    let mut done = Collected::default();
    let listed = ByTable::list(storage)?;
    let mut removed: Vec<Entry> = Vec::new();
    for table in TABLES.into_iter().filter(|table| **table != SESSIONS && **table != BUCKETS) {
        let before = retentions.iter().filter(|one| *one.table == *table).map(|one| &*one.before);
        let before = before.max().unwrap_or_default();
        for file in listed.of(table) {
            let Some(place) = Place::of(&file.name) else { continue };
            let counts = match place.of {
                PlaceOf::Hot { session, ingest } => hot.contains(&(session, ingest)),
                PlaceOf::Cold(part) => parts.contains(part),
                PlaceOf::Session(_) => true,
            };
            let is_expired = place.date < before;
            if is_expired || !counts && is_old(file) {
                done.expired += u64::from(is_expired);
                done.orphans += u64::from(!is_expired);
                removed.push(file.clone());
            }
        }
    }
    let unfinished = storage.unfinished()?.into_iter().filter(is_old);
    removed.extend(unfinished.inspect(|_| done.unfinished += 1));
    done.bytes = removed.iter().map(|file| file.bytes).sum();
    storage.remove(&removed.iter().map(|file| file.name.as_str()).collect::<Vec<_>>())?;
    debug_assert!(!TABLES.contains(&&REJECTED), "what was rejected is kept until it is added");
    Ok(done)
}
