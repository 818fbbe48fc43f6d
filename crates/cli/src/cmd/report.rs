//! `hyperscope report`: everything about a recording as one page.

mod exits;
mod known;
mod parts;
mod served;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use analyses::each_exit::{ListRoom, MAX_LISTED_EXITS};
use analyses::lanes::LaneRoom;
use analyses::over_time::{OverTime, PageRoom, over_time};
use analyses::path::ListedRequest;
use anyhow::Context;
use printable::messages;
use report::html::{PageProfile, PageReport};
use report::{AlignReport, ExitsReport};
use session::{Selection, Session, file_names, say_losses_of};

use self::exits::AllExits;
use self::known::PageFacts;
use self::parts::{
    advice_of, calls_of, cpu_report, critical_of, diff_of, irqs_report, path_report, samples_of,
};
use crate::args::PageArgs;
use crate::debug_files;
use crate::page_names::leave_out_folders;
use command::output;
use command::progress::Progress;
use command::verb::{Conflict, Memory, Range, VerbArgs};

/// One of this many parts of the memory limit is for spans of the timeline.
const LANES_PART: u64 = 3;

/// Bytes of memory for each span of `--spans`. A single span takes 6 to 10, merged ones up to 30, and both nearly as
/// many in the page: with this value, a page of 50 million exits stays below 30 MB.
const BYTES_PER_SPAN: usize = 14;

/// The part for the list of exits; a list that does not fit is left out of the page.
const EXITS_PART: u64 = 8;

/// The part for the profile: if it is full, further places of code are combined, and slices of time get wider.
const CODE_PART: u64 = 16;

/// The part for arrows between lanes, and its maximum, so that the page stays small: the shortest arrows are left out.
const ARROWS_PART: u64 = 32;
const MAX_ARROW_BYTES: usize = 8 << 20;

/// The part for the list of requests.
const REQUESTS_PART: u64 = 32;

/// Passes over a recording; those for calls and boots are part of these.
const PASSES: u64 = 2;

impl VerbArgs for PageArgs {
    fn memory(&self) -> Memory {
        Memory::Limits(self.memory)
    }

    fn range(&self) -> Range {
        (&self.part).into()
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self).map(|()| ExitCode::SUCCESS)
    }
}

fn run(args: &PageArgs) -> anyhow::Result<()> {
    if args.output.is_none() && !args.serve && io::stdout().is_terminal() {
        let what =
            "refusing to print an HTML page to the terminal: name a file with -o report.html";
        return Err(Conflict(what.to_owned()).into());
    }
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    session.say_guests_alone();
    if args.serve {
        served::refuse_pipes(session.recordings())?;
    }
    let mut out = output::open_page(args.output.as_deref(), true, session.recordings())?;
    debug_files::fetch(args.debug_files);
    session.select_on_host_clock(&Selection::from(&args.part), args.method.method())?;
    let (mut page, known) = read(args, &mut session)?;
    say_losses(&session, &page);
    if !args.full_paths {
        leave_out_folders(&mut page);
    }
    if args.serve {
        let read = (session, args.files.clone());
        return served::serve(args.port.unwrap_or(0), page, read, known);
    }
    page.write(&mut out).context("cannot write the report")?;
    out.complete()?;
    summarize(args, &page);
    Ok(())
}

/// The content of a page, and the facts by which it can be asked for more.
fn read(args: &PageArgs, session: &mut Session) -> anyhow::Result<(PageReport, PageFacts)> {
    let progress = Progress::new(session.view().stored_len().saturating_mul(PASSES));
    let on_progress = |bytes| progress.advance(bytes);
    // Durations use the recording's own clock, as in the other reports.
    let mut of_exits = AllExits::read(session, list_room(args), &on_progress);
    let diff = diff_of(args, session.on_own_clocks(), &on_progress)?;
    of_exits.over_time_of.add_guests(session.on_host_clock(), &on_progress);
    let session = &*session;
    let boot = session.recorded_boots(&on_progress)?;
    let AllExits { exits, nested, over_time_of, evidence } = of_exits;
    let known = PageFacts::from_exits(session, &exits.sources);
    let samples = samples_of(session.recordings());
    let found = over_time(session.view(), known.with_samples(&samples), room(args), &on_progress);
    let OverTime { cpu, lanes, arrows, calls, profile, paths, irqs } = found;
    let advice = advice_of(&evidence, nested.as_ref(), &cpu.takers);
    let critical = critical_of(args, session, &on_progress)?;
    progress.finish();
    let page = PageReport {
        title: args.title.clone().unwrap_or_else(|| title(session, &Selection::from(&args.part))),
        cpu: cpu_report(session, &exits, cpu),
        align: align_report(session, &exits),
        exits,
        nested,
        advice,
        latencies: over_time_of.latencies,
        each_exit: over_time_of.each_exit,
        lanes,
        arrows,
        irqs: irqs.map(|irqs| irqs_report(session, irqs)),
        profile: PageProfile::new(profile, session.paths()),
        calls: calls_of(session, &known.machines, calls),
        path: path_report(session, paths),
        critical,
        boot,
        diff,
        served: args.serve,
    };
    Ok((page, known))
}

fn align_report(session: &Session, exits: &ExitsReport) -> Option<AlignReport> {
    let losses = exits.sources.iter().map(|source| source.exits.losses.clone());
    let guests = session.guests();
    (!guests.is_empty()).then(|| AlignReport {
        sources: session.paths(),
        guests: guests.to_vec(),
        losses: losses.collect(),
    })
}

/// The limit for the list of exits.
fn list_room(args: &PageArgs) -> ListRoom {
    ListRoom {
        exits: MAX_LISTED_EXITS.min(args.spans),
        bytes: args.memory.max_memory.part(EXITS_PART),
    }
}

/// The limits for everything else over time.
fn room(args: &PageArgs) -> PageRoom {
    let memory = &args.memory.max_memory;
    let lane_bytes = args.spans.saturating_mul(BYTES_PER_SPAN);
    PageRoom {
        lanes: LaneRoom { spans: args.spans, bytes: memory.part(LANES_PART).min(lane_bytes) },
        code_bytes: memory.part(CODE_PART),
        arrow_bytes: memory.part(ARROWS_PART).min(MAX_ARROW_BYTES),
        requests: (memory.part(REQUESTS_PART) / ListedRequest::BYTES).min(args.spans),
    }
}

fn say_losses(session: &Session, page: &PageReport) {
    for (recording, source) in session.recordings().iter().zip(&page.exits.sources) {
        say_losses_of(recording.path(), &source.exits.losses);
    }
}

/// The default title of a page: its recordings, and the selected part.
fn title(session: &Session, selection: &Selection) -> String {
    let names = file_names(session.recordings());
    selection.description().map_or_else(|| names.clone(), |part| format!("{names} ({part})"))
}

/// Summarizes the page on standard error.
fn summarize(args: &PageArgs, page: &PageReport) {
    let Some(output) = &args.output else { return };
    let mut err = messages();
    let _ = writeln!(err, "hyperscope: open {} in a browser", output.display());
    if page.lanes.merged_below_ns() > 0 {
        let below = report::time(page.lanes.merged_below_ns(), true);
        let _ = writeln!(
            err,
            "hyperscope: the timeline merges neighbours shorter than {below}; --spans keeps more, within --max-memory"
        );
    }
}
