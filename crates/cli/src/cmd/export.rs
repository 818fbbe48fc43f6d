//! `hyperscope export`: writes recordings as files for other tools.

mod files;
mod tables;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use analyses::critical::CriticalWait;
use anyhow::{Context, bail};
use export::{
    ChromeWriter, Exported, FirefoxWriter, PerfettoWriter, Question, Window, write_timeline,
};
use printable::messages;
use report::events::{Machine, Style, write_events};
use report::plural;
use session::Session;
use timeline::event_filter::Filter;

use crate::args::export::{ExportArgs, ExportFormatArg};
use crate::cmd::critical::critical_of_task;
use crate::cmd::events;
use command::output::{self, ShownLines};
use command::progress::{Progress, reading};
use command::verb::{Conflict, Memory, Range, VerbArgs};

/// Tracks take four passes: for the list of tracks, for calls, for their content, and for single
/// events.
const PASSES_OF_TRACKS: u64 = 4;

/// Size of the write buffer.
const BUFFER_BYTES: usize = 1 << 18;

impl VerbArgs for ExportArgs {
    fn memory(&self) -> Memory {
        Memory::Limits(self.memory)
    }

    fn range(&self) -> Range {
        Range::Within { from: self.from, to: self.until() }
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        if let Some(conflict) = self.conflict() {
            return Err(Conflict(conflict.to_owned()).into());
        }
        run(self).map(|()| ExitCode::SUCCESS)
    }
}

fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let to_terminal = args.output.is_none() && io::stdout().is_terminal();
    if to_terminal && args.format() == ExportFormatArg::Perfetto {
        bail!("a Perfetto trace is binary: write it to a file (-o) or into a pipe");
    }
    if args.format() == ExportFormatArg::Parquet {
        return tables::write(args);
    }
    let mut session = Session::open(&args.files, &args.vms.names.of_one_session())?;
    if args.format().is_timeline() {
        let no_seconds = session.recordings().iter().find(|recording| !recording.is_nanoseconds());
        if let Some(recording) = no_seconds {
            let path = recording.path().display();
            bail!("{path}: the clock counts ticks of unknown length; export the events as csv");
        }
    }
    session.align(args.method.method())?;
    session.say_alignment();
    session.select_vms(&args.selection())?;
    let filter = filter(args, &session)?;
    match args.format() {
        ExportFormatArg::Tracedat => files::write(args, &session, &filter),
        ExportFormatArg::Csv => events(args, Style::Csv(&args.columns), &session, &filter),
        ExportFormatArg::Jsonl => events(args, Style::Jsonl, &session, &filter),
        _ => tracks(args, &session, &filter),
    }
}

fn filter(args: &ExportArgs, session: &Session) -> anyhow::Result<Filter> {
    let recordings = session.recordings();
    let times = args.selection().range_of(session.view())?;
    let filter = Filter {
        events: args.events.clone(),
        cpus: args.cpu.clone(),
        from_ns: times.filter(|_| args.from.is_some()).map(|times| times.from_ns),
        to_ns: times.filter(|_| args.until().is_some()).map(|times| times.to_ns),
        conditions: Vec::new(),
    };
    events::check_names(&filter, recordings)?;
    let formats = || recordings.iter().flat_map(|recording| recording.formats().iter());
    let is_field = |column: &String| formats().any(|(_, format)| format.field(column).is_some());
    if let Some(column) = args.columns.iter().find(|column| !is_field(column)) {
        bail!("no event has the field {column}; hyperscope events --raw shows all fields");
    }
    Ok(filter)
}

/// Writes single events.
fn events(
    args: &ExportArgs,
    style: Style<'_>,
    session: &Session,
    filter: &Filter,
) -> anyhow::Result<()> {
    let recordings = session.recordings();
    let units = recordings.iter().filter(|recording| recording.is_nanoseconds()).count();
    if matches!(style, Style::Csv(_)) && units != 0 && units != recordings.len() {
        bail!(
            "some of these recordings count nanoseconds, others ticks: one column can't hold both"
        );
    }
    let progress = Progress::new(session.view().stored_len());
    let on_progress = |bytes| {
        if args.output.is_some() {
            progress.advance(bytes);
        }
    };
    let mut out = output::open(args.output.as_deref(), recordings)?;
    let machines = Machine::of_all(session.view());
    let is_shown = args.output.is_none() && io::stdout().is_terminal();
    let summary = if is_shown && matches!(style, Style::Csv(_)) {
        let mut shown = ShownLines::new(&mut out);
        let written = write_events(recordings, &machines, filter, style, &mut shown, &on_progress);
        written.and_then(|summary| shown.end().map(|()| summary))
    } else {
        write_events(recordings, &machines, filter, style, &mut out, &on_progress)
    };
    let summary = summary.context("cannot write the events")?;
    progress.finish();
    out.complete()?;
    events::report(&summary, recordings);
    Ok(())
}

/// Writes the states of vCPUs, tasks and CPUs.
fn tracks(args: &ExportArgs, session: &Session, filter: &Filter) -> anyhow::Result<()> {
    let waits = match &args.critical {
        Some(task) => waits_of(task, session)?,
        None => Vec::new(),
    };
    let window = Window { from_ns: filter.from_ns, until_ns: filter.to_ns };
    let question = Question { view: session.view(), window, events: &filter.events, waits: &waits };
    let mut out = output::open(args.output.as_deref(), session.recordings())?;
    let to = BufWriter::with_capacity(BUFFER_BYTES, &mut out);
    let exported = reading(session, PASSES_OF_TRACKS, |on_progress| match args.format() {
        ExportFormatArg::Chrome => {
            write_timeline(&question, &mut ChromeWriter::new(to), on_progress)
        }
        ExportFormatArg::Firefox => {
            write_timeline(&question, &mut FirefoxWriter::new(to), on_progress)
        }
        _ => write_timeline(&question, &mut PerfettoWriter::new(to), on_progress),
    });
    let exported = exported.context("cannot write the export")?;
    out.complete()?;
    session.say_losses();
    report(&exported);
    Ok(())
}

/// The longest waits of a task.
fn waits_of(task: &str, session: &Session) -> anyhow::Result<Vec<CriticalWait>> {
    let found =
        reading(session, 1, |on_progress| critical_of_task(task, session.view(), on_progress));
    Ok(found?.longest)
}

/// Reports on standard error what the file does not show.
fn report(exported: &Exported) {
    let mut err = messages();
    if exported.overlaps > 0 {
        let _ = writeln!(
            err,
            "hyperscope: {} spans of guests' tasks cut: on the aligned clocks, the task still ran on another CPU",
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
            "hyperscope: nothing to show: the recording has no vCPU, task or CPU; hyperscope info shows its contents"
        );
    }
}
