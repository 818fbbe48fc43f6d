//! Tables of recordings: `hyperscope export` makes each when a query first needs it, in a temporary folder of this
//! process.
//!
//! A table is as in an export, with the same rows and ids; events and exits are limited to the needed part.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{MemTable, Session, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use lake_store::Table;
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::columns::schema_of;
use crate::needed::Needed;
use crate::running::{Ended, Running};
use crate::tables::files;

/// Makes tables of recordings.
#[derive(Debug)]
pub(crate) struct Reader {
    /// The program that reads recordings.
    program: PathBuf,
    /// Options for it.
    options: Vec<OsString>,
    recordings: Vec<PathBuf>,
    folder: TempDir,
    /// Messages of the program that were shown.
    shown_messages: Mutex<BTreeSet<String>>,
}

impl Reader {
    /// Reads `recordings` with a program and these options.
    ///
    /// # Errors
    /// When there is no folder for tables.
    pub(crate) fn new(
        program: PathBuf,
        options: Vec<OsString>,
        recordings: Vec<PathBuf>,
    ) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("hyperscope-sql-").tempdir()?;
        Ok(Self { program, options, recordings, folder, shown_messages: Mutex::default() })
    }

    /// Makes the needed part of a table, and returns its path; `at` is the number of the part.
    ///
    /// # Errors
    /// When it can't be made.
    pub(crate) async fn make(&self, table: &Table, needed: &Needed, at: usize) -> Result<PathBuf> {
        let folder = self.folder.path().join(format!("{}-{at}", table.name));
        let mut command = Command::new(&self.program);
        command.args(["export", "--to", "parquet", "--only", table.name, "-o"]).arg(&folder);
        command.args(needed.options());
        command.args(&self.options).arg("--").args(&self.recordings);
        let Ended { succeeded, messages, .. } = Running::start(command, "")?.end().await?;
        if !succeeded {
            let last = messages.lines().last().unwrap_or("hyperscope export failed");
            let why = last.strip_prefix("hyperscope: ").unwrap_or(last).to_owned();
            return Err(DataFusionError::External(why.into()));
        }
        self.pass_on(&messages);
        Ok(folder.join(format!("{}.parquet", table.name)))
    }

    /// Shows the reader's messages about recordings, each only once.
    fn pass_on(&self, messages: &str) {
        let mut shown_messages = self.shown_messages.lock();
        for line in messages.lines() {
            if shown_messages.insert(line.to_owned()) {
                printable::print_message(format_args!("{line}"));
            }
        }
    }
}

/// A table of the recordings.
#[derive(Debug)]
pub(crate) struct RecordedTable {
    table: &'static Table,
    schema: SchemaRef,
    reader: Arc<Reader>,
    /// The parts made so far.
    made: Mutex<BTreeMap<Needed, Made>>,
}

/// A file of a table, with its number.
#[derive(Clone, Debug)]
struct Made {
    at: usize,
    path: Arc<OnceCell<PathBuf>>,
}

impl RecordedTable {
    pub(crate) fn new(table: &'static Table, reader: Arc<Reader>) -> Self {
        Self { table, schema: schema_of(table), reader, made: Mutex::default() }
    }

    /// The file with the needed part; reuses one that contains it.
    async fn file(&self, needed: Needed) -> Result<PathBuf> {
        let Made { at, path } = {
            let mut made = self.made.lock();
            let mut covering = made.iter().filter(|(part, _)| part.covers(&needed));
            if let Some(path) = covering.find_map(|(_, file)| file.path.get()) {
                return Ok(path.clone());
            }
            let at = made.len();
            let new = || Made { at, path: Arc::default() };
            made.entry(needed.clone()).or_insert_with(new).clone()
        };
        let make = || self.reader.make(self.table, &needed, at);
        path.get_or_try_init(make).await.cloned()
    }
}

#[async_trait]
impl TableProvider for RecordedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let needed = Needed::of_table(self.table, projection, filters);
        if needed.is_nothing() {
            let empty = MemTable::try_new(self.schema(), vec![Vec::new()])?;
            return empty.scan(state, projection, &[], limit).await;
        }
        let path = self.file(needed).await?;
        files(self.table, &[path])?.scan(state, projection, filters, limit).await
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}
