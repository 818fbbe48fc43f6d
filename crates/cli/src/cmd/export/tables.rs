//! Recordings as tables: a folder with a Parquet file each.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use fleet::lake::tables::EVENTS;
use fleet::lake::{Files, Ids, Table};
use printable::messages;
use report::plural;

use crate::args::export::ExportArgs;
use crate::notice::say;
use crate::output::{self, Output};
use crate::session_tables::{SessionTables, convert, convert_needed_events};

pub(super) fn write(args: &ExportArgs) -> anyhow::Result<()> {
    let Some(folder) = args.output.as_deref() else { bail!("--format parquet needs -o") };
    refuse_source(folder, &args.files)?;
    let selection = args.selection();
    let mut sources = SessionTables::open(
        &args.files,
        &args.vms.names.of_one_session(),
        args.method.method(),
        &selection,
    )?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let only = args.only.map(|table| table.0);
    let mut files = TableFolder::new(folder, &args.files);
    if only == Some(&EVENTS) && args.events.is_empty() && !args.needed.is_all_events() {
        convert_needed_events(sources, &args.tables, &args.needed, &mut files)?;
        return files.complete();
    }
    // One part is read of a recording: that which was asked for stays.
    if selection.has_all_vcpus() {
        sources.leave_out_other_vms(&args.tables, &args.events, &args.needed.needed_vm)?;
    }
    let written = convert(&sources, &args.tables, (only, &args.events), &mut files)?;
    files.complete()?;
    if only.is_some() {
        // Whoever runs this for one table has its own messages.
        return Ok(());
    }
    let mut err = messages();
    let rows = plural(written.rows.iter().map(|(_, rows)| rows).sum(), "row");
    let tables = plural(written.rows.len() as u64, "table");
    let _ = writeln!(err, "hyperscope: {rows} in {tables}, in {}", folder.display());
    sources.say_losses();
    if sources.clock_is_unknown(&args.tables) {
        say("its date is unknown, so times are those of the trace clock; set it with --begun");
    }
    Ok(())
}

/// Files next to their places, put there when all are complete: the session's own last.
pub(crate) struct TableFolder<'a> {
    folder: PathBuf,
    sources: &'a [PathBuf],
    done: Vec<Output>,
}

impl<'a> TableFolder<'a> {
    /// A folder that is there; none of `sources` is written over.
    pub(crate) fn new(folder: &Path, sources: &'a [PathBuf]) -> Self {
        Self { folder: folder.to_owned(), sources, done: Vec::new() }
    }

    /// Puts all tables in their places.
    ///
    /// # Errors
    /// When one can't be.
    pub(crate) fn complete(self) -> anyhow::Result<()> {
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

fn refuse_source(path: &Path, sources: &[PathBuf]) -> io::Result<()> {
    let place = fs::canonicalize(path).ok();
    let is_same_file = |source: &PathBuf| place.is_some() && fs::canonicalize(source).ok() == place;
    if sources.iter().any(is_same_file) {
        let why = format!("{} is an input recording: write to another folder", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(())
}
