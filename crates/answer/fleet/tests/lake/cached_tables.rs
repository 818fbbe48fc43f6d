//! The recording's tables, made once: the tests only check how they get into a lake, and do so many times.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, LazyLock};

use fleet::lake::store::{Added, Addition, Storage};
use fleet::lake::tables::SESSIONS;
use fleet::lake::{Files, Ids, Table, write_tables};
use parking_lot::Mutex;

use crate::lake_contents::with_question;

/// Tables in memory.
#[derive(Default)]
struct Kept {
    /// Metadata of the session's file.
    metadata: Vec<(String, String)>,
    files: Vec<File>,
}

/// The file of a table, and its rows.
type File = (&'static Table, Vec<u8>, u64);

impl Files for Kept {
    type File = Vec<u8>;

    fn begin(&mut self, _: &Ids, _: &'static Table) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn end(&mut self, table: &'static Table, file: Vec<u8>, rows: u64) -> io::Result<()> {
        self.files.push((table, file, rows));
        Ok(())
    }

    fn metadata(&self, table: &'static Table) -> Vec<(String, String)> {
        if *table == SESSIONS { self.metadata.clone() } else { Vec::new() }
    }
}

/// A host, a hash and the start.
pub(crate) type Recorded<'r> = (&'r str, &'r str, i64);
type Key = (String, String, i64, Vec<(String, String)>);

type Made = Arc<(Ids, Kept)>;

fn made(source: Recorded<'_>, metadata: Vec<(String, String)>) -> Made {
    static KNOWN: LazyLock<Mutex<BTreeMap<Key, Made>>> = LazyLock::new(Mutex::default);
    let (host, hash, begun_ns) = source;
    let key = (host.to_owned(), hash.to_owned(), begun_ns, metadata.clone());
    let mut known = KNOWN.lock();
    let made = known.entry(key).or_insert_with(|| {
        with_question(host, hash, Some(begun_ns), |question, ids| {
            let mut output = Kept { metadata, ..Kept::default() };
            write_tables(question, ids.clone(), &mut output, &|_| ()).unwrap();
            Arc::new((ids, output))
        })
    });
    Arc::clone(made)
}

/// Adds the same rows as [`lake_contents::add_of`](crate::lake_contents::add_of).
pub(crate) fn add_kept<S: Storage>(storage: &S, source: Recorded<'_>) -> io::Result<Added> {
    let tables = made(source, Vec::new());
    let (ids, output) = &*tables;
    let mut addition = Addition::new(storage, ids.clone())?;
    let outcome = addition.outcome();
    if !matches!(outcome, Added::New | Added::Replaced) {
        return Ok(outcome);
    }
    let put = |addition: &mut Addition<'_, S>, (table, bytes, rows): &File| {
        let mut file = addition.begin(ids, table)?;
        file.write_all(bytes)?;
        addition.end(table, file, *rows)
    };
    for file in output.files.iter().filter(|(table, ..)| **table != SESSIONS) {
        put(&mut addition, file)?;
    }
    let with_row = made(source, addition.metadata(&SESSIONS));
    let row = with_row.1.files.iter().find(|(table, ..)| **table == SESSIONS);
    put(&mut addition, row.unwrap())?;
    Ok(outcome)
}
