//! The tables of a query: the valid rows of a lake, a folder, or recordings.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::catalog::MemTable;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::JoinType;
use datafusion::prelude::SessionContext;
use lake_store::Table;
use lake_store::tables::{SESSIONS, TABLES};
use lake_store::{Entry, LocalFolder, ObjectLake, TableFiles, counted, is_in_store};
use tokio::runtime::Handle;
use url::Url;

use crate::columns::schema_of;
use crate::foreign_tables::{Named, names_in};
use crate::needed::Needed;
use crate::recorded::{Reader, RecordedTable};
use crate::s3::S3;
use crate::stored_lake::StoredLake;

/// The source of a query.
#[derive(Debug)]
pub(crate) enum Source {
    /// The tables of many recordings.
    Lake(PathBuf),
    /// Files of tables.
    Folder(PathBuf),
    /// A lake in an object store.
    Stored(StoredLake),
    /// Recordings of a host and its guests, from which tables are made on demand.
    Recordings,
}

impl Source {
    /// The source at these paths.
    ///
    /// # Errors
    /// When a path in an object store is no lake, or there are several paths with it.
    pub(crate) fn from_paths(paths: &[PathBuf]) -> Result<Self> {
        let stored = paths.iter().find(|path| is_in_store(path));
        Ok(match (stored, paths) {
            (Some(_), [path]) => Self::Stored(StoredLake::parse(path).map_err(at_fault)?),
            (Some(path), _) => {
                let path = path.display();
                return Err(at_fault(format!(
                    "{path}: a lake is asked alone, without other sources"
                )));
            }
            (None, paths) => Self::here(paths),
        })
    }

    fn here(paths: &[PathBuf]) -> Self {
        match paths {
            [path] if LocalFolder::open(path).is_ok() => Self::Lake(path.clone()),
            [path] if TABLES.iter().any(|table| has_files(path, table)) => {
                Self::Folder(path.clone())
            }
            _ => Self::Recordings,
        }
    }

    /// The folder of a lake, if it is one.
    pub(crate) fn lake(&self) -> Option<&Path> {
        match self {
            Self::Lake(root) => Some(root),
            Self::Folder(_) | Self::Stored(_) | Self::Recordings => None,
        }
    }

    /// The lake in an object store, if it is one.
    pub(crate) fn store(&self) -> Option<&StoredLake> {
        match self {
            Self::Stored(lake) => Some(lake),
            Self::Lake(_) | Self::Folder(_) | Self::Recordings => None,
        }
    }
}

fn at_fault(why: String) -> DataFusionError {
    DataFusionError::External(why.into())
}

fn has_files(folder: &Path, table: &Table) -> bool {
    files_of(folder, table).is_ok_and(|files| !files.is_empty())
}

/// The files of a table: `TABLE.parquet`, or those in a folder `TABLE`, by name.
fn files_of(folder: &Path, table: &Table) -> io::Result<Vec<PathBuf>> {
    let file = folder.join(format!("{}.parquet", table.name));
    if file.is_file() {
        return Ok(vec![file]);
    }
    let mut files = Vec::new();
    let entries = match fs::read_dir(folder.join(table.name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(files),
        entries => entries?,
    };
    for entry in entries {
        files.push(entry?.path());
    }
    files.retain(|path| path.extension() == Some(OsStr::new("parquet")));
    files.sort();
    Ok(files)
}

/// Registers the tables of a source with `context`.
///
/// # Errors
/// When they can't be read.
pub(crate) async fn register(
    context: &SessionContext,
    source: &Source,
    reader: Reader,
) -> Result<()> {
    match source {
        Source::Lake(root) => register_lake(context, root).await,
        Source::Folder(folder) => register_folder(context, folder),
        Source::Stored(lake) => register_stored(context, lake).await,
        Source::Recordings => {
            let reader = Arc::new(reader);
            for table in TABLES {
                let provider = RecordedTable::new(table, Arc::clone(&reader));
                context.register_table(table.name, Arc::new(provider))?;
            }
            Ok(())
        }
    }
}

/// The files of the tables that a query names, for another engine.
///
/// # Errors
/// When they can't be read.
pub(crate) async fn named(source: &Source, reader: &Reader, query: &str) -> Result<Vec<Named>> {
    let with_files =
        |table: &'static Table, files: Vec<PathBuf>| Named { table, files, all_count: true };
    let absolute = |path: PathBuf| std::path::absolute(path).map_err(DataFusionError::from);
    let mut all = Vec::new();
    match source {
        Source::Lake(root) => {
            for found in counted(&LocalFolder::open(root)?)? {
                let paths = found.files.iter().map(|file| absolute(root.join(&file.name)));
                let files = paths.collect::<Result<_>>()?;
                all.push(Named { all_count: found.all_count, ..with_files(found.table, files) });
            }
        }
        Source::Folder(folder) => {
            for table in TABLES {
                let files = files_of(folder, table)?.into_iter().map(absolute);
                let files = files.collect::<Result<_>>()?;
                all.push(with_files(table, files));
            }
        }
        Source::Stored(_) => all = StoredLake::unlisted(),
        Source::Recordings => {
            let names = names_in(query);
            for table in TABLES.into_iter().filter(|table| names.contains(table.name)) {
                all.push(with_files(table, vec![reader.make(table, &Needed::default(), 0).await?]));
            }
        }
    }
    Ok(all)
}

async fn register_lake(context: &SessionContext, root: &Path) -> Result<()> {
    let url = |file: &Entry| local_url(&root.join(&file.name));
    register_counted(context, &counted(&LocalFolder::open(root)?)?, &url).await
}

async fn register_stored(context: &SessionContext, lake: &StoredLake) -> Result<()> {
    let named = |error: io::Error| at_fault(format!("{}: {error}", lake.as_str()));
    let store = S3::for_lake(lake, Handle::current()).map_err(named)?;
    let objects = ObjectLake::open(store.clone()).map_err(named)?;
    let tables = counted(&objects).map_err(named)?;
    let (bucket, client) = store.store();
    context.register_object_store(bucket, client);
    let url = |file: &Entry| ListingTableUrl::parse(store.url(file));
    register_counted(context, &tables, &url).await
}

/// Registers the tables of a lake, whose files have these addresses.
async fn register_counted(
    context: &SessionContext,
    tables: &[TableFiles],
    url: &dyn Fn(&Entry) -> Result<ListingTableUrl>,
) -> Result<()> {
    // Sessions come first, because tables are joined with them.
    for found in tables {
        let urls = found.files.iter().map(url).collect::<Result<Vec<_>>>()?;
        if urls.is_empty() {
            register_empty(context, found.table)?;
        } else {
            register_one(context, found, urls).await?;
        }
    }
    Ok(())
}

/// Registers a table of a lake, limited to valid rows.
async fn register_one(
    context: &SessionContext,
    found: &TableFiles,
    urls: Vec<ListingTableUrl>,
) -> Result<()> {
    let name = found.table.name;
    let files = Arc::new(listed(found.table, urls)?);
    if found.all_count {
        context.register_table(name, files)?;
        return Ok(());
    }
    let ids = ["session_id", "ingest_id"];
    let sessions = context.table(SESSIONS.name).await?.select_columns(&ids)?;
    let rows = context.read_table(files)?;
    let counted = rows.join(sessions, JoinType::LeftSemi, &ids, &ids, None)?;
    context.register_table(name, counted.into_view())?;
    Ok(())
}

fn register_folder(context: &SessionContext, folder: &Path) -> Result<()> {
    for table in TABLES {
        let paths = files_of(folder, table)?;
        if paths.is_empty() {
            register_empty(context, table)?;
        } else {
            context.register_table(table.name, Arc::new(files(table, &paths)?))?;
        }
    }
    Ok(())
}

/// A table of these files.
///
/// # Errors
/// When a path is invalid.
pub(crate) fn files(table: &Table, paths: &[PathBuf]) -> Result<ListingTable> {
    listed(table, paths.iter().map(|path| local_url(path)).collect::<Result<Vec<_>>>()?)
}

fn local_url(path: &Path) -> Result<ListingTableUrl> {
    let path = std::path::absolute(path)?;
    let url = Url::from_file_path(&path)
        .map_err(|()| DataFusionError::Plan(format!("{} is no path", path.display())))?;
    ListingTableUrl::try_new(url, None)
}

fn listed(table: &Table, urls: Vec<ListingTableUrl>) -> Result<ListingTable> {
    let options = ListingOptions::new(Arc::new(ParquetFormat::default()));
    let config = ListingTableConfig::new_with_multi_paths(urls)
        .with_listing_options(options)
        .with_schema(schema_of(table));
    ListingTable::try_new(config)
}

/// Registers a table without rows.
fn register_empty(context: &SessionContext, table: &Table) -> Result<()> {
    let empty = MemTable::try_new(schema_of(table), vec![Vec::new()])?;
    context.register_table(table.name, Arc::new(empty))?;
    Ok(())
}
