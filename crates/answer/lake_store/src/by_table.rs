//! The files of a lake by table, from one listing, because each listing of an object store is slow.

use std::collections::BTreeMap;
use std::io;

use super::places::{Place, ROOT};
use super::storage::{Entry, Storage};
use crate::column::Table;

/// Files by the names of their tables.
#[derive(Debug, Default)]
pub(super) struct ByTable(BTreeMap<String, Vec<Entry>>);

impl ByTable {
    /// Lists the files of a lake. A caller that needs the valid rows reads the sessions first: the files that they
    /// name exist by then.
    ///
    /// # Errors
    /// When they can't be listed.
    pub(super) fn list<S: Storage>(storage: &S) -> io::Result<Self> {
        let mut all = Self::default();
        for file in storage.list(ROOT)? {
            let below = file.name.strip_prefix(ROOT).and_then(|rest| rest.strip_prefix('/'));
            let Some((table, _)) = below.and_then(|rest| rest.split_once('/')) else { continue };
            all.0.entry(table.to_owned()).or_default().push(file);
        }
        Ok(all)
    }

    /// Whether a file exists unchanged.
    pub(super) fn has(&self, file: &Entry) -> bool {
        let files = Place::parse(&file.name).and_then(|place| self.0.get(place.table));
        files.is_some_and(|files| files.binary_search(file).is_ok())
    }

    /// The files of a table, by name.
    pub(super) fn get(&self, table: &Table) -> &[Entry] {
        self.0.get(table.name).map_or(&[], Vec::as_slice)
    }
}
