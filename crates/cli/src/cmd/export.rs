//! `hyperscope export`: recordings as files that other tools open.

mod files;
mod tables;

pub(crate) use tables::TableFolder;

use std::io::{self, BufWriter, IsTerminal, Write};

use analyses::align::GuestAlignment;
use analyses::critical::CriticalWait;
use anyhow::{Context, bail};
use export::{
    ChromeWriter, Exported, FirefoxWriter, Machine, PerfettoWriter, Question, Window,
    write_timeline,
};
use printable::messages;
use report::events::{Style, write_events};
use report::plural;
use sources::Recording;
use timeline::event_filter::Filter;

use crate::aligned::{self, align_guests};
use crate::args::export::{ExportArgs, ExportFormatArg};
use crate::cmd::critical::critical_of_task;
use crate::cmd::events;
use crate::inputs::open_all;
use crate::losses::say_losses;
use crate::machines::machines;
use crate::output::{self, ShownLines};
use crate::part::Part;
use crate::progress::Progress;

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 1 << 18;

pub(crate) fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let to_terminal = args.output.is_none() && io::stdout().is_terminal();
    if to_terminal && args.format() == ExportFormatArg::Perfetto {
        bail!("a Perfetto trace is no text: write it to a file (-o) or into a pipe");
    }
    if args.format() == ExportFormatArg::Parquet {
        return tables::write(args);
    }
    let mut recordings = open_all(&args.files)?;
    if args.format().is_timeline() {
        let no_seconds = recordings.iter().find(|one| !one.is_nanoseconds());
        if let Some(recording) = no_seconds {
            let path = recording.path().display();
            bail!("{path}: its clock counts ticks of unknown length; export its events as csv");
        }
    }
    let mut guests = align_guests(&mut recordings, args.method.method)?;
    aligned::report(&guests);
    Part::new(args.from, args.until(), &args.vms).set_vms(&mut recordings, &mut guests)?;
    let filter = filter(args, &recordings, &guests)?;
    match args.format() {
        ExportFormatArg::Tracedat => files::write(args, &recordings, &guests, &filter),
        ExportFormatArg::Csv => {
            events(args, Style::Csv(&args.columns), &recordings, &guests, &filter)
        }
        ExportFormatArg::Jsonl => events(args, Style::Jsonl, &recordings, &guests, &filter),
        _ => tracks(args, &recordings, &guests, &filter),
    }
}

fn filter(
    args: &ExportArgs,
    recordings: &[Recording],
    guests: &[GuestAlignment],
) -> anyhow::Result<Filter> {
    let part = Part::new(args.from, args.until(), &args.vms);
    let times = part.of_all(recordings, guests)?;
    let filter = Filter {
        events: args.events.clone(),
        cpus: args.cpu.clone(),
        from_ns: times.filter(|_| args.from.is_some()).map(|times| times.from_ns),
        to_ns: times.filter(|_| args.until().is_some()).map(|times| times.to_ns),
        conditions: Vec::new(),
    };
    events::check_names(&filter, recordings)?;
    let formats = || recordings.iter().flat_map(|one| one.formats().iter());
    let is_field = |column: &String| formats().any(|(_, format)| format.field(column).is_some());
    if let Some(column) = args.columns.iter().find(|column| !is_field(column)) {
        bail!("no event has a field {column}; hyperscope events --raw shows their fields");
    }
    Ok(filter)
}

/// Writes single events.
fn events(
    args: &ExportArgs,
    style: Style<'_>,
    recordings: &[Recording],
    guests: &[GuestAlignment],
    filter: &Filter,
) -> anyhow::Result<()> {
    let units = recordings.iter().filter(|one| one.is_nanoseconds()).count();
    if matches!(style, Style::Csv(_)) && units != 0 && units != recordings.len() {
        bail!("some of these recordings count nanoseconds, some ticks: no column can hold both");
    }
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    let tick = |bytes| {
        if args.output.is_some() {
            progress.advance(bytes);
        }
    };
    let mut out = output::open(args.output.as_deref(), recordings)?;
    let machines = machines(recordings, guests);
    let is_shown = args.output.is_none() && io::stdout().is_terminal();
    let summary = if is_shown && matches!(style, Style::Csv(_)) {
        let mut shown = ShownLines::new(&mut out);
        let written = write_events(recordings, &machines, filter, style, &mut shown, &tick);
        written.and_then(|summary| shown.end().map(|()| summary))
    } else {
        write_events(recordings, &machines, filter, style, &mut out, &tick)
    };
    let summary = summary.context("cannot write the events")?;
    progress.finish();
    out.complete()?;
    events::report(&summary, recordings);
    Ok(())
}

/// Writes what vCPUs, tasks and CPUs did.
fn tracks(
    args: &ExportArgs,
    recordings: &[Recording],
    guests: &[GuestAlignment],
    filter: &Filter,
) -> anyhow::Result<()> {
    let machines: Vec<Machine> = machines(recordings, guests)
        .into_iter()
        .map(|machine| Machine { name: machine.name, is_guest: machine.level > 0 })
        .collect();
    let waits = match &args.critical {
        Some(task) => waits_of(task, recordings, guests)?,
        None => Vec::new(),
    };
    let window = Window { from_ns: filter.from_ns, until_ns: filter.to_ns };
    let question = Question {
        recordings,
        guests,
        machines: &machines,
        window,
        events: &filter.events,
        waits: &waits,
    };
    // Read four times: which tracks there are, also of calls, what is on them, and single events.
    let bytes: u64 = recordings.iter().map(Recording::stored_len).sum();
    let progress = Progress::new(bytes.saturating_mul(4));
    let tick = |bytes| progress.advance(bytes);
    let mut out = output::open(args.output.as_deref(), recordings)?;
    let to = BufWriter::with_capacity(BUFFER_BYTES, &mut out);
    let exported = match args.format() {
        ExportFormatArg::Chrome => write_timeline(&question, &mut ChromeWriter::new(to), &tick),
        ExportFormatArg::Firefox => write_timeline(&question, &mut FirefoxWriter::new(to), &tick),
        _ => write_timeline(&question, &mut PerfettoWriter::new(to), &tick),
    };
    progress.finish();
    let exported = exported.context("cannot write the export")?;
    out.complete()?;
    say_losses(recordings);
    report(&exported);
    Ok(())
}

/// The longest waits of a task.
fn waits_of(
    task: &str,
    recordings: &[Recording],
    guests: &[GuestAlignment],
) -> anyhow::Result<Vec<CriticalWait>> {
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    let found = critical_of_task(task, recordings, guests, &|bytes| progress.advance(bytes));
    progress.finish();
    Ok(found?.longest)
}

/// Reports on standard error what the file does not show.
fn report(exported: &Exported) {
    let mut err = messages();
    if exported.overlaps > 0 {
        let _ = writeln!(
            err,
            "hyperscope: {} spans of guests' tasks cut: by the aligned clocks, the task still was \
             on another CPU",
            exported.overlaps
        );
    }
    if exported.losses > 0 {
        let _ =
            writeln!(err, "hyperscope: events were lost at {}", plural(exported.losses, "place"));
    }
    if exported.slices == 0 {
        let _ = writeln!(
            err,
            "hyperscope: nothing to show: no vCPU, task or CPU was seen; hyperscope info shows \
             what there is"
        );
    }
}
