//! A lake in an object store. This program has its own keys for the store; other engines have theirs.

use std::path::{Path, PathBuf};

use lake_store::Table;
use lake_store::tables::{BUCKETS, SESSIONS, TABLES};

use crate::foreign_tables::Named;

/// The location of such a lake: `s3://BUCKET/LAKE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredLake(String);

impl StoredLake {
    /// Parses a location.
    ///
    /// # Errors
    /// When it is no folder of a bucket, or has characters that engines interpret differently.
    pub(crate) fn parse(source: &Path) -> Result<Self, String> {
        let text = source.to_str().unwrap_or_default().trim_end_matches('/');
        let rest = text.strip_prefix("s3://").unwrap_or_default();
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.=".contains(c);
        let is_name = |name: &str| {
            !name.is_empty() && ![".", ".."].contains(&name) && name.chars().all(is_part)
        };
        if !rest.split('/').all(is_name) {
            return Err(format!(
                "{}: a lake in an object store is s3://BUCKET/FOLDER, of letters, digits and - _ . =",
                source.display()
            ));
        }
        Ok(Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Its two parts; the second may have several segments.
    pub(crate) fn bucket_and_folder(&self) -> (&str, &str) {
        let rest = self.0.strip_prefix("s3://").unwrap_or_default();
        rest.split_once('/').unwrap_or((rest, ""))
    }

    /// The folders with files of a table, and whether these have a folder per day.
    pub(crate) fn folders(&self, table: &Table) -> Vec<(String, bool)> {
        let root = self.root(table);
        match table.name {
            name if name == SESSIONS.name => vec![(root, true)],
            name if name == BUCKETS.name => vec![(root, false)],
            _ => vec![(format!("{root}/hot"), true), (format!("{root}/cold"), true)],
        }
    }

    /// The folder with all files of a table.
    pub(crate) fn root(&self, table: &Table) -> String {
        format!("{}/v1/{}", self.0, table.name)
    }

    /// All files that may belong to a table, as a pattern.
    pub(crate) fn pattern(&self, table: &Table) -> String {
        let below = match table.name {
            name if name == SESSIONS.name => "date=*/*.parquet",
            name if name == BUCKETS.name => "*.parquet",
            _ => "*/date=*/*.parquet",
        };
        format!("{}/{below}", self.root(table))
    }

    /// All tables, without a list of their files.
    pub(crate) fn unlisted() -> Vec<Named> {
        let without_files = |table| Named { table, files: Vec::new(), all_count: has_all(table) };
        TABLES.into_iter().map(without_files).collect()
    }

    /// The tables whose files are in a listing.
    ///
    /// # Errors
    /// When no file belongs to a lake.
    pub(crate) fn tables(&self, listed: &[String]) -> Result<Vec<Named>, String> {
        let mut listed: Vec<&str> = listed.iter().map(String::as_str).collect();
        listed.sort_unstable();
        let with_files = |table: &'static Table| {
            let root = format!("{}/", self.root(table));
            let is_own = |file: &&&str| {
                let below = file.strip_prefix(&root);
                below.is_some_and(|below| is_place(table, &below.split('/').collect::<Vec<_>>()))
            };
            let files = listed.iter().filter(is_own).map(PathBuf::from).collect();
            // Sessions determine the valid rows: tables are joined with them.
            Named { table, files, all_count: has_all(table) }
        };
        let tables: Vec<Named> = TABLES.into_iter().map(with_files).collect();
        let has_sessions = |entry: &Named| *entry.table == SESSIONS && !entry.files.is_empty();
        if !tables.iter().any(has_sessions) {
            return Err(format!("{}: there is no lake, or one without sessions", self.0));
        }
        Ok(tables)
    }
}

/// Whether all rows of a table are valid.
fn has_all(table: &Table) -> bool {
    *table == SESSIONS || *table == BUCKETS
}

/// Whether a path is one of a table's files in a lake.
fn is_place(table: &Table, below: &[&str]) -> bool {
    let is_day = |name: &str| name.starts_with("date=");
    match *below {
        [_] => *table == BUCKETS,
        [day, _] => *table == SESSIONS && is_day(day),
        ["hot" | "cold", day, _] => !has_all(table) && is_day(day),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use lake_store::is_in_store;
    use lake_store::tables::EXITS;

    use super::*;

    #[test]
    fn a_lake_in_a_store_is_named_plainly() {
        assert!(is_in_store(Path::new("s3://b")));
        assert!(!is_in_store(Path::new("./s3:/b")));
        assert_eq!(
            StoredLake::parse(Path::new("s3://b-1/a/f_2/")).unwrap().as_str(),
            "s3://b-1/a/f_2"
        );
        for wrong in [
            "s3://",
            "s3://b//x",
            "s3://b/*",
            "s3://b/../x",
            "s3://b/a'b",
            "s3://b/a b",
            "s3://k:s@b",
        ] {
            assert!(StoredLake::parse(Path::new(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn files_of_a_listing_are_those_of_its_tables() {
        let lake = StoredLake::parse(Path::new("s3://b/l")).unwrap();
        let listed = [
            "s3://b/l/v1/sessions/date=1/a.parquet",
            "s3://b/l/v1/exits/hot/date=1/b.parquet",
            "s3://b/l/v1/exits/cold/date=1/a.parquet",
            "s3://b/l/v1/exits/warm/date=1/a.parquet",
            "s3://b/l/v1/exits/hot/b.parquet",
            "s3://b/other/v1/exits/hot/date=1/b.parquet",
            "s3://b/l/v1/buckets/buckets.parquet",
        ];
        let listed = listed.map(str::to_owned);
        let found = lake.tables(&listed).unwrap();
        let entry_of = |table: &Table| found.iter().find(|entry| entry.table == table).unwrap();
        let exits = entry_of(&EXITS);
        assert!(!exits.all_count && entry_of(&SESSIONS).all_count);
        let files: Vec<_> = exits.files.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(files, [&*listed[2], &*listed[1]]);
        assert_eq!(entry_of(&BUCKETS).files.len(), 1);
        assert!(lake.tables(&listed[1..]).unwrap_err().contains("there is no lake"));
    }
}
