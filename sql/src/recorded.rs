//! Tables of recordings: each is made when a query first needs it, by `hyperscope export`, in a folder of its own
//! that is gone with this process.
//!
//! What is made is what an export has: the same rows with the same identities, all of them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use lake::Table;
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::columns::schema_of;
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
    /// Messages of its that were passed on.
    said: Mutex<BTreeSet<String>>,
}

impl Reader {
    /// Reads `recordings` by a program with these options.
    ///
    /// # Errors
    /// When there is no place for tables.
    pub(crate) fn new(
        program: PathBuf,
        options: Vec<OsString>,
        recordings: Vec<PathBuf>,
    ) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("hyperscope-sql-").tempdir()?;
        Ok(Self { program, options, recordings, folder, said: Mutex::default() })
    }

    /// Makes a table, and says where it is.
    async fn make(&self, table: &Table) -> Result<PathBuf> {
        let folder = self.folder.path().join(table.name);
        let mut command = Command::new(&self.program);
        command.args(["export", "--to", "parquet", "--only", table.name, "-o"]).arg(&folder);
        command.args(&self.options).arg("--").args(&self.recordings);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let running = Running::start(&mut command).map_err(|error| {
            let why = format!("cannot run {}: {error}", self.program.display());
            DataFusionError::External(why.into())
        })?;
        let (succeeded, messages) = running.end().await?;
        if !succeeded {
            let last = messages.lines().last().unwrap_or("hyperscope export failed");
            let why = last.strip_prefix("hyperscope: ").unwrap_or(last).to_owned();
            return Err(DataFusionError::External(why.into()));
        }
        self.pass_on(&messages);
        Ok(folder.join(format!("{}.parquet", table.name)))
    }

    /// What the reader says of recordings, once for all tables.
    fn pass_on(&self, messages: &str) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        for line in messages.lines() {
            if said.insert(line.to_owned()) {
                printable::print_message(format_args!("{line}"));
            }
        }
    }
}

/// A program that runs, and is ended where nobody waits for it any more.
struct Running(Arc<Mutex<Child>>);

impl Running {
    fn start(command: &mut Command) -> io::Result<Self> {
        Ok(Self(Arc::new(Mutex::new(command.spawn()?))))
    }

    /// Waits for its end: whether it went well, and what it said.
    async fn end(&self) -> Result<(bool, String)> {
        let child = Arc::clone(&self.0);
        let stderr = child.lock().unwrap_or_else(PoisonError::into_inner).stderr.take();
        let ended = tokio::task::spawn_blocking(move || {
            let mut messages = Vec::new();
            if let Some(mut stderr) = stderr {
                stderr.read_to_end(&mut messages)?;
            }
            let status = child.lock().unwrap_or_else(PoisonError::into_inner).wait()?;
            io::Result::Ok((status.success(), String::from_utf8_lossy(&messages).into_owned()))
        });
        let ended = ended.await.map_err(|error| DataFusionError::External(error.into()))?;
        Ok(ended?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(mut child) = self.0.try_lock() {
            // It has ended by itself, most often.
            let _ = child.kill();
        }
    }
}

/// A table that recordings become.
#[derive(Debug)]
pub(crate) struct RecordedTable {
    table: &'static Table,
    schema: SchemaRef,
    reader: Arc<Reader>,
    made: OnceCell<PathBuf>,
}

impl RecordedTable {
    pub(crate) fn new(table: &'static Table, reader: Arc<Reader>) -> Self {
        Self { table, schema: schema_of(table), reader, made: OnceCell::new() }
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
        let path = self.made.get_or_try_init(|| self.reader.make(self.table)).await?;
        files(self.table, std::slice::from_ref(path))?.scan(state, projection, filters, limit).await
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}
