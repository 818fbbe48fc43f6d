//! A folder of tables, which appear once all are complete.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use command::output::{self, Output};
use fleet::lake::{Files, Ids, Table};

/// Files next to their places, moved there once all are complete: the table of the session last.
#[derive(Debug)]
pub struct TableFolder<'a> {
    folder: PathBuf,
    sources: &'a [PathBuf],
    done: Vec<Output>,
}

impl<'a> TableFolder<'a> {
    /// Uses an existing folder; refuses to overwrite `sources`.
    pub fn new(folder: &Path, sources: &'a [PathBuf]) -> Self {
        Self { folder: folder.to_owned(), sources, done: Vec::new() }
    }

    /// Moves all tables to their places.
    ///
    /// # Errors
    /// When a table can't be moved.
    pub fn complete(self) -> anyhow::Result<()> {
        self.done.into_iter().try_for_each(Output::complete)
    }
}

impl Files for TableFolder<'_> {
    type File = Output;

    fn begin(&mut self, _: &Ids, table: &'static Table) -> io::Result<Output> {
        let path = self.folder.join(format!("{}.parquet", table.name));
        refuse_source(&path, self.sources)?;
        output::create(&path, []).map_err(io::Error::other)
    }

    fn end(&mut self, _: &'static Table, file: Output, _: u64) -> io::Result<()> {
        self.done.push(file);
        Ok(())
    }
}

/// Refuses to overwrite a recording that is an input.
///
/// # Errors
/// When the path is one of `sources`.
pub fn refuse_source(path: &Path, sources: &[PathBuf]) -> io::Result<()> {
    let place = fs::canonicalize(path).ok();
    let is_place = |path: &PathBuf| place.is_some() && fs::canonicalize(path).ok() == place;
    if sources.iter().any(is_place) {
        let why = format!("{} is an input recording: write to another folder", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(())
}
