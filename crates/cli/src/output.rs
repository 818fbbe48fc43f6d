//! Where results go: standard output or a file, in the format asked for.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anyhow::Context;
use report::{Format, Report};

use crate::args::{FormatArg, OutputArgs};

/// Writes a report where the arguments say.
pub(crate) fn write(report: &dyn Report, args: &OutputArgs) -> anyhow::Result<()> {
    let text = report.render(format(args));
    let mut out = open(args.output.as_deref())?;
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write the report")
}

/// The file named, or standard output.
pub(crate) fn open(path: Option<&Path>) -> anyhow::Result<Box<dyn Write + Send>> {
    match path {
        Some(path) => {
            let file =
                File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
            Ok(Box::new(file))
        }
        None => Ok(Box::new(io::stdout())),
    }
}

fn format(args: &OutputArgs) -> Format {
    match args.format {
        FormatArg::Json => Format::Json,
        FormatArg::Csv => Format::Csv,
        FormatArg::Table => Format::Table { width: terminal_width(args) },
    }
}

/// Columns of the terminal the report is read on; `None` for files and pipes, whose lines may be
/// as long as they like.
fn terminal_width(args: &OutputArgs) -> Option<usize> {
    if args.output.is_some() || !io::stdout().is_terminal() {
        return None;
    }
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    asked.or_else(|| {
        let (_, columns) = indicatif_terminal_size()?;
        Some(usize::from(columns))
    })
}

fn indicatif_terminal_size() -> Option<(u16, u16)> {
    console::Term::stdout().size_checked()
}
