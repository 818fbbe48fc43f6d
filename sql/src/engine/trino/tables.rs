//! Statements that create the tables of a query in a catalog of Trino's Hive connector: external tables on the folders
//! of their files, with one partition per day.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use datafusion::error::Result;
use lake_store::Table;
use lake_store::tables::{SESSIONS, TABLES};

use super::catalog::Catalog;
use crate::engine::{Asked, failed, literal};
use crate::foreign_tables::{Dialect, Named, kind_of, needed, view_of, views_in};
use crate::stored_lake::StoredLake;

/// The statements that a query requires first.
#[derive(Debug)]
pub(super) struct Tables {
    schema: String,
    statements: Vec<String>,
    /// Drops everything, if it belongs to a single query.
    dropped: Option<String>,
}

impl Tables {
    /// The tables of a request. Files that share a folder with others are linked into one in `folder`.
    ///
    /// # Errors
    /// When that fails.
    pub(super) fn prepare(catalog: &Catalog, request: &Asked<'_>, folder: &Path) -> Result<Self> {
        let place = Place::new(catalog, request, folder)?;
        let (name, schema) = (&catalog.name, place.schema());
        let mut statements = vec![format!("CREATE SCHEMA IF NOT EXISTS {name}.{schema}")];
        for named in needed(request.tables, request.query) {
            let mut rows = Vec::new();
            let parts = place.parts(named)?;
            for (at, part) in parts.iter().enumerate() {
                let table = format!("{}_files_{}", named.table.name, part.name(at));
                statements.push(part.external(&table, named.table));
                if part.has_days {
                    // Days are added and removed over time.
                    let (schema, table) = (literal(&schema), literal(&table));
                    let call = format!("{name}.system.sync_partition_metadata");
                    statements.push(format!("CALL {call}({schema}, {table}, 'FULL')"));
                }
                rows.push(format!("SELECT {} FROM {table}", columns(named.table)));
            }
            let rows = (!rows.is_empty()).then(|| format!("({})", rows.join(" UNION ALL ")));
            // All rows of sessions are valid; other folders of days may also have files with invalid rows.
            let all_count = *named.table == SESSIONS || !parts.iter().any(|part| part.has_days);
            statements.push(view_of(Dialect::Trino, named.table, rows.as_deref(), all_count));
        }
        statements.extend(views_in(Dialect::Trino, request.query));
        let dropped = format!("DROP SCHEMA IF EXISTS {name}.{schema} CASCADE");
        let is_kept = place.lake.is_some() || place.store.is_some();
        let dropped = (!is_kept).then_some(dropped);
        Ok(Self { schema, statements, dropped })
    }

    pub(super) fn schema(&self) -> &str {
        &self.schema
    }

    pub(super) fn statements(&self) -> impl Iterator<Item = &str> {
        self.statements.iter().map(String::as_str)
    }

    pub(super) fn dropped(&self) -> Option<&str> {
        self.dropped.as_deref()
    }
}

fn columns(table: &Table) -> String {
    table.columns.iter().map(|column| column.name).collect::<Vec<_>>().join(", ")
}

/// The location of files, locally and for Trino.
struct Place<'a> {
    lake: Option<&'a Path>,
    store: Option<&'a StoredLake>,
    at: Option<&'a str>,
    /// For files that share their folder with those of other tables.
    folder: &'a Path,
}

/// A folder with files of one table.
struct Part {
    /// Its location for Trino.
    location: String,
    folder: PathBuf,
    /// Whether it has a folder per day.
    has_days: bool,
}

impl<'a> Place<'a> {
    fn new(catalog: &'a Catalog, request: &Asked<'a>, folder: &'a Path) -> Result<Self> {
        let (lake, store, at) = (request.lake, request.store, catalog.at.as_deref());
        if at.is_some() && lake.is_none() {
            return Err(failed(
                "at=LOCATION is that of a lake in a folder; this is none".to_owned(),
            ));
        }
        Ok(Self { lake, store, at, folder })
    }

    /// A name that is the same for all queries of a lake, and changes with the columns.
    fn schema(&self) -> String {
        let mut text = match self.store {
            Some(lake) => lake.as_str().to_owned(),
            None => self.location(self.lake.unwrap_or(self.folder)),
        };
        for table in TABLES {
            text += &format!(";{}:{}", table.name, columns(table));
        }
        format!("hyperscope_{:016x}", hash(&text))
    }

    fn location(&self, path: &Path) -> String {
        let below = self.lake.and_then(|lake| path.strip_prefix(lake).ok());
        match (self.at, below) {
            (Some(at), Some(below)) => {
                format!("{}/{}", at.trim_end_matches('/'), below.display())
            }
            _ => format!("local://{}", path.display()),
        }
    }

    fn parts(&self, named: &Named) -> Result<Vec<Part>> {
        if let Some(lake) = self.store {
            let part = |(location, has_days): (String, bool)| Part {
                folder: PathBuf::from(&location),
                location,
                has_days,
            };
            return Ok(lake.folders(named.table).into_iter().map(part).collect());
        }
        let mut folders = BTreeSet::new();
        for file in &named.files {
            let folder = file.parent().unwrap_or(Path::new("/"));
            let is_day =
                folder.file_name().is_some_and(|day| day.as_encoded_bytes().starts_with(b"date="));
            match folder.parent().filter(|_| is_day) {
                Some(parent) => folders.insert((parent.to_owned(), true)),
                // A folder named after the table contains only its files.
                None if is_own(folder, named.table) => folders.insert((folder.to_owned(), false)),
                None => folders.insert((self.linked(named)?, false)),
            };
        }
        let part = |(folder, has_days): (PathBuf, bool)| Part {
            location: self.location(&folder),
            folder,
            has_days,
        };
        Ok(folders.into_iter().map(part).collect())
    }

    /// A new folder with only the files of one table.
    fn linked(&self, named: &Named) -> io::Result<PathBuf> {
        let folder = self.folder.join("tables").join(named.table.name);
        if !folder.exists() {
            fs::create_dir_all(&folder)?;
            for (at, file) in named.files.iter().enumerate() {
                let to = folder.join(format!("{at}.parquet"));
                // Another machine could not follow symbolic links.
                fs::hard_link(file, &to).or_else(|_| fs::copy(file, &to).map(drop))?;
            }
        }
        Ok(folder)
    }
}

impl Part {
    /// The name of `hot` and `cold` does not depend on their position, because either may be missing.
    fn name(&self, at: usize) -> String {
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if ["hot", "cold"].contains(&&*name) { name } else { at.to_string() }
    }

    fn external(&self, name: &str, table: &Table) -> String {
        let kinds = table.columns.iter();
        let mut columns: Vec<String> = kinds
            .map(|column| format!("{} {}", column.name, kind_of(Dialect::Trino, column.kind)))
            .collect();
        let mut options =
            format!("format = 'PARQUET', external_location = {}", literal(&self.location));
        if self.has_days {
            columns.push("date VARCHAR".to_owned());
            options += ", partitioned_by = ARRAY['date']";
        }
        format!("CREATE TABLE IF NOT EXISTS {name} ({}) WITH ({options})", columns.join(", "))
    }
}

fn is_own(folder: &Path, table: &Table) -> bool {
    folder.file_name().is_some_and(|name| name == table.name)
}

/// FNV-1a: stable across machines and versions.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use lake_store::tables::EXITS;

    use super::*;

    fn exits_request<'q>(tables: &'q [Named], lake: Option<&'q Path>) -> Asked<'q> {
        Asked { tables, query: "SELECT * FROM exits", memory_mib: 1, lake, store: None }
    }

    #[test]
    fn days_of_a_lake_are_partitions_where_trino_finds_them() {
        let named = |table, files: &[&str]| Named {
            table,
            files: files.iter().map(PathBuf::from).collect(),
            all_count: true,
        };
        let tables = [
            named(&SESSIONS, &["/l/v1/sessions/date=1/a.parquet"]),
            named(
                &EXITS,
                &[
                    "/l/v1/exits/hot/date=1/a",
                    "/l/v1/exits/hot/date=2/b",
                    "/l/v1/exits/cold/date=1/p",
                ],
            ),
        ];
        let catalog = Catalog::parse("http://c/lake?at=s3://b/").unwrap();
        let found = Tables::prepare(
            &catalog,
            &exits_request(&tables, Some(Path::new("/l"))),
            Path::new("/t"),
        )
        .unwrap();
        let text: Vec<&str> = found.statements().collect();
        assert!(found.dropped().is_none());
        assert_eq!(text.len(), 9, "{text:#?}");
        assert!(
            text[1]
                .starts_with("CREATE TABLE IF NOT EXISTS sessions_files_0 (session_id VARCHAR, ")
        );
        assert!(text[1].ends_with("date VARCHAR) WITH (format = 'PARQUET', external_location = 's3://b/v1/sessions', partitioned_by = ARRAY['date'])"));
        let schema = found.schema();
        assert_eq!(
            text[2],
            format!(
                "CALL lake.system.sync_partition_metadata('{schema}', 'sessions_files_0', 'FULL')"
            )
        );
        assert!(
            text[4].contains("exits_files_cold (") && text[6].contains("'s3://b/v1/exits/hot'")
        );
        assert!(
            text[8].contains("FROM exits_files_cold UNION ALL SELECT")
                && text[8].contains("JOIN (SELECT DISTINCT")
        );
        let other = Catalog::parse("http://c/lake?at=s3://c/").unwrap();
        let other = Tables::prepare(
            &other,
            &exits_request(&tables, Some(Path::new("/l"))),
            Path::new("/t"),
        )
        .unwrap();
        assert_ne!(other.schema(), schema);
    }

    #[test]
    fn a_lake_in_a_store_has_its_tables_there_whatever_their_files_are() {
        let lake = StoredLake::parse(Path::new("s3://b/l")).unwrap();
        let tables = StoredLake::unlisted();
        let catalog = Catalog::parse("http://c").unwrap();
        let request = Asked { store: Some(&lake), ..exits_request(&tables, None) };
        let found = Tables::prepare(&catalog, &request, Path::new("/t")).unwrap();
        let text: Vec<&str> = found.statements().collect();
        assert_eq!((text.len(), found.dropped()), (9, None), "{text:#?}");
        for (at, location) in [(1, "sessions"), (4, "exits/hot"), (6, "exits/cold")] {
            let location = format!("external_location = 's3://b/l/v1/{location}'");
            assert!(text[at].contains(&location), "{text:#?}");
        }
        assert!(text[8].contains("JOIN (SELECT DISTINCT"), "{text:#?}");
    }

    #[test]
    fn files_that_share_a_folder_get_one_each_for_one_query() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("exits.parquet");
        fs::write(&file, "x").unwrap();
        let tables = [Named { table: &EXITS, files: vec![file], all_count: true }];
        let catalog = Catalog::parse("http://c").unwrap();
        let found =
            Tables::prepare(&catalog, &exits_request(&tables, None), folder.path()).unwrap();
        assert!(folder.path().join("tables/exits/0.parquet").is_file());
        assert!(found.dropped().unwrap().starts_with("DROP SCHEMA IF EXISTS hive.hyperscope_"));
        let text: Vec<&str> = found.statements().collect();
        assert!(
            text[1].contains("external_location = 'local:///") && !text[2].contains("JOIN"),
            "{text:#?}"
        );
        let catalog = Catalog::parse("http://c/?at=s3://b/").unwrap();
        assert!(Tables::prepare(&catalog, &exits_request(&tables, None), folder.path()).is_err());
    }
}
