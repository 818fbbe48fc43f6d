//! Writes results to standard output or a file, in the requested format.
//!
//! A file is written next to its place and moved there when it is complete. A run that fails or is interrupted
//! leaves the previous file.

mod replacement;

use std::fs::{self, File};
use std::io::{self, IoSlice, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, bail};
use report::{Format, Report, SelectedReport, SelectionRead};
use sources::Recording;

use self::replacement::Replacement;
use crate::args::{FormatArg, OutputArgs};
use session::Misuse;

/// Standard output, or a file that gets its contents at [`Output::complete`].
#[derive(Debug)]
#[must_use = "the file appears only once it is complete"]
pub struct Output(Kind);

#[derive(Debug)]
enum Kind {
    Stdout(io::Stdout),
    /// A pipe, a device, or another target that a file can't replace: written in place.
    InPlace(File),
    Replacement(Replacement),
}

/// The named file, or standard output. Opened before the work, so that a wrong path does not cost hours. The file
/// is text, so names that browsers take for pages are refused: a browser would run scripts in names of threads
/// and files.
///
/// # Errors
/// When the file can't be created, is one of the recordings, or has the name of a page.
pub fn open<'r>(
    path: Option<&Path>,
    recordings: impl IntoIterator<Item = &'r Recording>,
) -> anyhow::Result<Output> {
    if let Some(path) = path.filter(|path| is_called_like_a_page(path)) {
        let path = path.display();
        bail!(Misuse(format!(
            "{path}: this command writes text, but a browser would read .html as a page; write a page with hyperscope report FILE… -o {path}, or choose another name for text"
        )));
    }
    open_any(path, recordings)
}

/// As [`open`], for a verb that writes a page if `is_page` holds.
///
/// # Errors
/// As those of [`open`].
pub fn open_page<'r>(
    path: Option<&Path>,
    is_page: bool,
    recordings: impl IntoIterator<Item = &'r Recording>,
) -> anyhow::Result<Output> {
    let misnamed = path.filter(|path| !is_page && is_called_like_a_page(path));
    if let Some(path) = misnamed {
        bail!(Misuse(format!(
            "{}: this command would write text, but a browser would read .html as a page; for a page, use .html without --format; for text, choose another name",
            path.display()
        )));
    }
    open_any(path, recordings)
}

fn open_any<'r>(
    path: Option<&Path>,
    recordings: impl IntoIterator<Item = &'r Recording>,
) -> anyhow::Result<Output> {
    match path {
        Some(path) => create(path, recordings),
        None => {
            refuse_closed_output()?;
            Ok(Output(Kind::Stdout(io::stdout())))
        }
    }
}

/// Refuses to print to a closed standard output.
///
/// # Errors
/// When standard output was closed before this program began.
pub fn refuse_closed_output() -> anyhow::Result<()> {
    if sys::standard_output_was_closed() {
        bail!("standard output is closed: redirect it, or write to a file");
    }
    Ok(())
}

/// Whether browsers and file servers take the file for a page.
fn is_called_like_a_page(path: &Path) -> bool {
    let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
    let pages = ["html", "htm", "xhtml", "xht", "shtml", "mhtml", "mht"];
    pages.iter().any(|page| kind.eq_ignore_ascii_case(page))
}

/// Begins a new file.
///
/// # Errors
/// When it can't be created, or is one of the recordings.
pub fn create<'r>(
    path: &Path,
    recordings: impl IntoIterator<Item = &'r Recording>,
) -> anyhow::Result<Output> {
    let place = fs::canonicalize(path).ok();
    let is_same_file =
        |recording: &Recording| place.is_some() && fs::canonicalize(recording.path()).ok() == place;
    if recordings.into_iter().any(is_same_file) {
        bail!("{} is an input recording: write to another file", path.display());
    }
    let cannot = || format!("cannot create {}", path.display());
    Ok(Output(match replacement::place(path).with_context(cannot)? {
        Some(place) => match Replacement::begin(&place) {
            // The folder refuses new files, but the existing file may be writable.
            Err(error) if place.exists() && is_forbidden(&error) => {
                Kind::InPlace(File::create(&place).with_context(cannot)?)
            }
            replacement => Kind::Replacement(replacement.with_context(cannot)?),
        },
        None => Kind::InPlace(File::create(path).with_context(cannot)?),
    }))
}

/// As [`create`], for an optional file besides the report.
///
/// # Errors
/// As those of [`create`].
pub fn create_extra<'r>(
    path: Option<&Path>,
    recordings: impl IntoIterator<Item = &'r Recording>,
) -> anyhow::Result<Option<Output>> {
    path.map(|path| create(path, recordings)).transpose()
}

/// Writes and completes the file that [`create_extra`] began; `what` names it in errors.
///
/// # Errors
/// When it can't be made or written.
pub fn write_extra(
    file: Option<Output>,
    what: &str,
    contents: impl FnOnce() -> io::Result<Vec<u8>>,
) -> anyhow::Result<()> {
    let Some(mut file) = file else { return Ok(()) };
    let written = contents().and_then(|bytes| file.write_all(&bytes));
    written.with_context(|| format!("cannot write {what}"))?;
    file.complete()
}

fn is_forbidden(error: &anyhow::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    let kind = error.downcast_ref().map(io::Error::kind);
    matches!(kind, Some(PermissionDenied | ReadOnlyFilesystem))
}

/// Writes a file from bytes in memory.
///
/// # Errors
/// When it can't be written.
pub fn write_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = create(path, [])?;
    out.write_all(bytes).with_context(|| format!("cannot write {}", path.display()))?;
    out.complete()
}

impl Output {
    /// Moves the file to its place; without this call the previous file stays.
    ///
    /// # Errors
    /// When that fails, or a recording was truncated while it was read.
    pub fn complete(mut self) -> anyhow::Result<()> {
        sys::check_mapped_files()?;
        self.flush().context("cannot write the output")?;
        match self.0 {
            Kind::Replacement(file) => file.complete(),
            Kind::Stdout(_) | Kind::InPlace(_) => Ok(()),
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match &mut self.0 {
            Kind::Stdout(out) => out,
            Kind::InPlace(file) => file,
            Kind::Replacement(file) => file.file(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn write_vectored(&mut self, texts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.writer().write_vectored(texts)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

impl io::Seek for Output {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        match &mut self.0 {
            Kind::Stdout(_) => Err(io::ErrorKind::NotSeekable.into()),
            Kind::InPlace(file) => file.seek(to),
            Kind::Replacement(file) => file.file().seek(to),
        }
    }
}

/// Writes a report on a part of recordings; the JSON names that part.
///
/// # Errors
/// As those of [`write`].
pub fn write_part(
    report: &impl Report,
    part: &SelectionRead,
    args: &OutputArgs,
    out: Output,
) -> anyhow::Result<()> {
    write(&SelectedReport { report, part }, args, out)
}

/// Writes a finished page, and completes the output.
///
/// # Errors
/// When it can't be written.
pub fn write_page(page: &str, mut out: Output) -> anyhow::Result<()> {
    out.write_all(page.as_bytes()).context("cannot write the page")?;
    out.complete()
}

/// Writes a report as the arguments request, and completes the output.
pub fn write(report: &impl Report, args: &OutputArgs, mut out: Output) -> anyhow::Result<()> {
    sys::check_mapped_files()?;
    let mut text = report.render(format(args));
    if args.output.is_none() && io::stdout().is_terminal() {
        text = for_terminal(args.format, text);
    }
    out.write_all(text.as_bytes()).context("cannot write the report")?;
    out.complete()
}

/// Makes a report safe for a terminal: escapes control characters in CSV, and replaces characters
/// that the locale lacks in tables.
fn for_terminal(format: FormatArg, text: String) -> String {
    match format {
        FormatArg::Csv => printable::lines(&text).into_owned(),
        FormatArg::Table => {
            let set = ["LC_ALL", "LC_CTYPE", "LANG"].map(std::env::var_os);
            if printable::locale_has_utf8(set.iter().map(Option::as_deref)) {
                text
            } else {
                printable::ascii(&text)
            }
        }
        FormatArg::Json => text,
    }
}

/// Text for a terminal: control characters are shown, not executed.
#[derive(Debug)]
pub struct ShownLines<W: Write> {
    to: W,
    /// The incomplete line.
    line: Vec<u8>,
}

impl<W: Write> ShownLines<W> {
    pub fn new(to: W) -> Self {
        Self { to, line: Vec::new() }
    }

    /// Writes the last line, which has no newline.
    ///
    /// # Errors
    /// The terminal's error.
    pub fn end(mut self) -> io::Result<()> {
        self.show()
    }

    fn show(&mut self) -> io::Result<()> {
        let line = String::from_utf8_lossy(&self.line);
        let written = self.to.write_all(printable::lines(&line).as_bytes());
        self.line.clear();
        written
    }
}

impl<W: Write> Write for ShownLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.show()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn format(args: &OutputArgs) -> Format {
    match args.format {
        FormatArg::Json => Format::Json,
        FormatArg::Csv => Format::Csv,
        FormatArg::Table => Format::Table { width: terminal_width(args) },
    }
}

/// Width for tables: COLUMNS, otherwise the terminal's width. `None` for files and pipes, whose
/// lines have no limit.
fn terminal_width(args: &OutputArgs) -> Option<usize> {
    if args.output.is_some() { None } else { stdout_width() }
}

/// The width for standard output.
pub fn stdout_width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.or_else(|| {
        let terminal = io::stdout().is_terminal().then(console::Term::stdout)?;
        let (_, columns) = terminal.size_checked()?;
        Some(usize::from(columns))
    })
}
