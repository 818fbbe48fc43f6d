//! Where results go: standard output or a file, in the format asked for.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, bail};
use report::{Format, Report};
use sources::Recording;

use crate::args::{FormatArg, OutputArgs};

/// The file named, or standard output. Opened before the work, so that hours of it are not lost to
/// a slip in a path.
///
/// # Errors
/// When the file can't be created, or is one of the recordings.
pub(crate) fn open<'r>(
    path: Option<&Path>,
    recordings: impl IntoIterator<Item = &'r Recording>,
) -> anyhow::Result<Box<dyn Write + Send>> {
    let Some(path) = path else { return Ok(Box::new(io::stdout())) };
    Ok(Box::new(create(path, recordings)?))
}

/// A new file.
///
/// # Errors
/// When it can't be created, or is one of the recordings.
pub(crate) fn create<'r>(
    path: &Path,
    recordings: impl IntoIterator<Item = &'r Recording>,
) -> anyhow::Result<File> {
    let place = fs::canonicalize(path).ok();
    let is_it = |one: &Recording| place.is_some() && fs::canonicalize(one.path()).ok() == place;
    if recordings.into_iter().any(is_it) {
        bail!("{} is a recording to be read; write to another file", path.display());
    }
    File::create(path).with_context(|| format!("cannot create {}", path.display()))
}

/// Writes a report where the arguments say.
pub(crate) fn write(
    report: &dyn Report,
    args: &OutputArgs,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let text = report.render(format(args));
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write the report")
}

fn format(args: &OutputArgs) -> Format {
    match args.format {
        FormatArg::Json => Format::Json,
        FormatArg::Csv => Format::Csv,
        FormatArg::Table => Format::Table { width: terminal_width(args) },
    }
}

/// Columns to draw tables for: as many as COLUMNS says, else as the terminal has. `None` for files
/// and pipes, whose lines may be as long as they like.
fn terminal_width(args: &OutputArgs) -> Option<usize> {
    if args.output.is_some() {
        return None;
    }
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    asked.or_else(|| {
        let terminal = io::stdout().is_terminal().then(console::Term::stdout)?;
        let (_, columns) = terminal.size_checked()?;
        Some(usize::from(columns))
    })
}
