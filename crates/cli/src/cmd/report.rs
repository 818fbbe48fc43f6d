//! `hyperscope report`: everything about a recording as one page.

mod served;

use std::io::{self, IsTerminal, Write};

use analyses::advice::{Advice, EvidenceOf, ExitEvidence, advise};
use analyses::align::GuestAlignment;
use analyses::calls::RecordedCalls;
use analyses::cpu::{CpuUse, TakenCpu};
use analyses::diff::{Options, QUESTIONS, RunInput, diff};
use analyses::each_exit::{EachExitOf, ExitList, ListRoom, MOST_LISTED_EXITS};
use analyses::exit_question::ask;
use analyses::exits::{Exits, ExitsBy};
use analyses::group::By;
use analyses::irqs::Irqs;
use analyses::lanes::{LaneMachine, LaneRoom};
use analyses::latencies::{Latencies, LatenciesOf};
use analyses::machine_names::MachineName;
use analyses::nested::OfLevelTwo;
use analyses::over_time::{KnownOfAll, OverTime, PageRoom, over_time};
use analyses::path::{ListedRequest, Paths};
use anyhow::{Context, bail};
use printable::messages;
use report::html::{PageProfile, PageReport};
use report::{
    AlignReport, CallSort, CallsReport, CallsSource, CpuBy, CpuReport, CriticalReport, DiffReport,
    ExitsReport, IrqsReport, NestedReport, PathReport, Source, TreeLimits, align_summary,
};
use sources::{Recording, Samples};
use timeline::Losses;

use crate::aligned::align_guests;
use crate::args::PageArgs;
use crate::belonging::refuse_to_compare_processors;
use crate::boots;
use crate::cmd::critical::critical_of_task;
use crate::cmd::diff::open_run;
use crate::debug_files;
use crate::inputs::{is_of_guest, note_guests_alone, open_all};
use crate::losses::{say_losses, say_losses_of};
use crate::output;
use crate::page_names::leave_out_folders;
use crate::part::{Part, clocks, set_clocks};
use crate::progress::Progress;
use crate::recorded::recorded;

/// Share of differences called significant that may be none.
const ALPHA: f64 = 0.05;

/// Of the call tree, what is wide enough to be seen in a picture.
const FLAME: TreeLimits = TreeLimits { depth: 128, least_percent: 0.1 };

/// Of the memory that may be taken, the part (one of this many) for spans of the timeline.
const LANES_PART: u64 = 3;

/// Bytes of memory for each span that `--spans` asks for. One by itself takes 6 to 10, one of several that were merged up to
/// 30, and both nearly as many in the page: with this one of 50 million exits stays below 30 MB.
const BYTES_PER_SPAN: usize = 14;

/// The part for a list of all exits; what does not fit is left out of the page.
const EXITS_PART: u64 = 8;

/// The part for the code that ran: of further places one is as good as another, and slices of time get wider.
const CODE_PART: u64 = 16;

/// The part for arrows between lanes, and what they take at most, so that the page stays small: those that took
/// least are left out.
const ARROWS_PART: u64 = 32;
const MOST_ARROW_BYTES: usize = 8 << 20;

/// The part for a list of all requests.
const REQUESTS_PART: u64 = 32;

/// Times that a recording is read; those of calls and boots are read for these, too.
const PASSES: u64 = 2;

pub(crate) fn run(args: &PageArgs) -> anyhow::Result<()> {
    if args.output.is_none() && !args.serve && io::stdout().is_terminal() {
        args.refuse_terminal();
    }
    let mut recordings = open_all(&args.files)?;
    note_guests_alone(&recordings);
    if args.serve {
        served::refuse_pipes(&recordings)?;
    }
    let mut out = output::open_page(args.output.as_deref(), true, &recordings)?;
    let bytes: u64 = recordings.iter().map(Recording::stored_len).sum();
    debug_files::fetch(args.debug_files);
    let progress = Progress::new(bytes.saturating_mul(PASSES));
    let tick = |bytes| progress.advance(bytes);
    let own_clocks = clocks(&recordings);
    let mut guests = align_guests(&mut recordings, args.method.method)?;
    let part = Part::from(&args.part);
    part.set(&mut recordings, &mut guests)?;
    let aligned_clocks = clocks(&recordings);
    set_clocks(&mut recordings, &own_clocks);
    // Durations are those of the recording's own clock, as in the other reports.
    let list_room = ListRoom {
        exits: MOST_LISTED_EXITS.min(args.spans),
        bytes: args.memory.max_memory.part(EXITS_PART),
    };
    let AllExits { exits, nested, mut over_time_of, evidence } =
        all_exits(&recordings, &guests, list_room, &tick);
    let diff = diff_of(args, &recordings, &tick)?;
    set_clocks(&mut recordings, &aligned_clocks);
    for guest in guests.iter().map(|guest| guest.guest) {
        over_time_of.add_guest(guest, &recordings, &tick);
    }
    let boot = boots::of(&recordings, &guests, &tick)?;
    let machines = machines(&recordings, &guests, &exits);
    let memory = &args.memory.max_memory;
    let lane_bytes = args.spans.saturating_mul(BYTES_PER_SPAN);
    let lanes = LaneRoom { spans: args.spans, bytes: memory.part(LANES_PART).min(lane_bytes) };
    let room = PageRoom {
        lanes,
        code_bytes: memory.part(CODE_PART),
        arrow_bytes: memory.part(ARROWS_PART).min(MOST_ARROW_BYTES),
        requests: (memory.part(REQUESTS_PART) / ListedRequest::BYTES).min(args.spans),
    };
    let of_all = exits.sources.iter();
    let (vms, processes): (Vec<_>, Vec<_>) =
        of_all.map(|one| (one.exits.vms.clone(), one.processes.clone())).unzip();
    let samples = samples_of(&recordings);
    let known = KnownOfAll {
        guests: &guests,
        samples: &samples,
        vms: &vms,
        processes: &processes,
        machines: &machines,
    };
    let OverTime { cpu, lanes, arrows, calls, profile, paths, irqs } =
        over_time(&recordings, known, room, &tick);
    let advice = advice_of(&evidence, nested.as_ref(), &cpu.taken);
    let cpu = cpu_report(&recordings, &exits, cpu);
    let path = path_report(&recordings, &guests, paths);
    let calls = calls_of(&recordings, &machines, calls);
    let irqs = irqs.map(|irqs| irqs_report(&recordings, irqs));
    let critical = critical_of(args, &recordings, &guests, &tick)?;
    progress.finish();
    let sources: Vec<String> = recordings.iter().map(shown_path).collect();
    let losses: Vec<Losses> = exits.sources.iter().map(|one| one.exits.losses.clone()).collect();
    let mut page = PageReport {
        title: args.title.clone().unwrap_or_else(|| title(&recordings, &part)),
        exits,
        nested,
        advice,
        align: (!guests.is_empty()).then(|| AlignReport {
            sources: sources.clone(),
            guests,
            losses: losses.clone(),
        }),
        latencies: over_time_of.latencies,
        each_exit: over_time_of.each_exit,
        lanes,
        arrows,
        cpu,
        irqs,
        profile: PageProfile::of(profile, sources),
        calls,
        path,
        critical,
        boot,
        diff,
        served: args.serve,
    };
    for (recording, losses) in recordings.iter().zip(&losses) {
        say_losses_of(recording.path(), losses);
    }
    if !args.full_paths {
        leave_out_folders(&mut page);
    }
    if args.serve {
        let guests = page.align.as_ref().map_or_else(Vec::new, |align| align.guests.clone());
        let files = args.files.clone();
        let known =
            served::Known { files, clocks: aligned_clocks, guests, vms, processes, machines };
        return served::serve(args.port.unwrap_or(0), page, known);
    }
    page.write(&mut out).context("cannot write the report")?;
    out.complete()?;
    summarize(args, &page);
    Ok(())
}

/// What a task waited for, if that is asked.
fn critical_of(
    args: &PageArgs,
    recordings: &[Recording],
    guests: &[GuestAlignment],
    tick: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<Option<CriticalReport>> {
    let Some(task) = &args.critical else { return Ok(None) };
    let found = critical_of_task(task, recordings, guests, tick)?;
    Ok(Some(CriticalReport {
        sources: recordings.iter().map(shown_path).collect(),
        alignment: guests.iter().map(align_summary).collect(),
        task: task.clone(),
        critical: found,
        top: usize::MAX,
        recorder_cost: None,
    }))
}

/// What one reading of each recording says of its exits.
struct AllExits {
    exits: ExitsReport,
    /// None without exits of nested guests.
    nested: Option<NestedReport>,
    /// But for those of guests that were aligned: their times go by the host's clock.
    over_time_of: ExitsOverTime,
    /// By recording, what rules of advice look at.
    evidence: Vec<ExitEvidence>,
}

/// When exits were, and how long they took.
struct ExitsOverTime {
    latencies: Latencies,
    each_exit: Vec<ExitList>,
    room: ListRoom,
}

impl ExitsOverTime {
    fn question(&self, at: usize) -> (LatenciesOf, EachExitOf) {
        let number = u32::try_from(at).unwrap_or(u32::MAX);
        (LatenciesOf(number), EachExitOf(number, self.room))
    }

    fn add(&mut self, (latencies, list): (Latencies, ExitList)) {
        self.latencies.merge(latencies);
        self.room = self.room.next_to(&list);
        self.each_exit.push(list);
    }

    /// Adds those of a guest whose times were brought to its host's clock.
    fn add_guest(&mut self, at: usize, recordings: &[Recording], tick: &(dyn Fn(u64) + Sync)) {
        if let Some(recording) = recordings.get(at) {
            self.add(ask(recording, &self.question(at), tick));
        }
    }
}

fn all_exits(
    recordings: &[Recording],
    guests: &[GuestAlignment],
    room: ListRoom,
    tick: &(dyn Fn(u64) + Sync),
) -> AllExits {
    let (mut sources, mut nested, mut evidence) = (Vec::new(), Vec::new(), Vec::new());
    let (latencies, each_exit) = (Latencies::default(), Vec::new());
    let mut over_time_of = ExitsOverTime { latencies, each_exit, room };
    for (at, recording) in recordings.iter().enumerate() {
        let is_aligned = guests.iter().any(|guest| guest.guest == at);
        let over_time = (!is_aligned).then(|| over_time_of.question(at));
        let question = (((ExitsBy(&By::DEFAULT), OfLevelTwo), EvidenceOf), over_time);
        let (((exits, of_level_two), seen), over_time) = ask(recording, &question, tick);
        evidence.push(seen);
        sources.push(exits_source(recording, recordings, exits));
        nested.push((shown_path(recording), of_level_two));
        over_time.into_iter().for_each(|one| over_time_of.add(one));
    }
    let has_nested = nested.iter().any(|(_, one)| !one.rows.is_empty());
    AllExits {
        exits: ExitsReport { sources, top: None, sorted_by: None },
        nested: has_nested.then_some(NestedReport { sources: nested }),
        over_time_of,
        evidence,
    }
}

/// Why exits and waits of each recording happen, and what usually helps.
fn advice_of(
    evidence: &[ExitEvidence],
    nested: Option<&NestedReport>,
    taken: &[TakenCpu],
) -> Vec<(usize, Advice)> {
    let of = |(at, exits): (usize, &ExitEvidence)| {
        let nested = nested.and_then(|nested| nested.sources.get(at));
        let taken: Vec<&TakenCpu> = taken.iter().filter(|one| one.recording == at).collect();
        advise(exits, nested.map_or(&[], |(_, nested)| &nested.rows), &taken)
            .into_iter()
            .map(move |one| (at, one))
    };
    evidence.iter().enumerate().flat_map(of).collect()
}

fn exits_source(recording: &Recording, all: &[Recording], exits: Exits) -> Source {
    let reported = recorded(recording.path());
    Source {
        path: shown_path(recording),
        exits,
        of_guest: is_of_guest(recording, all),
        recorder_cost: reported.cost,
        processes: reported.processes,
    }
}

/// How the recordings differ from those of another run, if one was named.
fn diff_of(
    args: &PageArgs,
    recordings: &[Recording],
    tick: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<Option<DiffReport>> {
    let Some(baseline) = &args.baseline else { return Ok(None) };
    let Some(question) = QUESTIONS.iter().find(|one| one.name == "exits") else { return Ok(None) };
    let mut baseline_run = open_run(baseline)?;
    refuse_to_compare_processors(baseline_run.iter().chain(recordings))?;
    Part::from(&args.part)
        .for_clocks_of_their_own("--baseline")?
        .set_on_own_clocks(&mut baseline_run)?;
    let input = |recordings| RunInput { recordings, guests: &[], samples: &[] };
    let before = (question.measure)(input(baseline_run.as_slice()), tick);
    let now = (question.measure)(input(recordings), tick);
    if before.nanoseconds != now.nanoseconds {
        bail!("times of {} are in another unit: they can't be compared", baseline.display());
    }
    say_losses(&baseline_run);
    let options = Options { alpha: ALPHA, seed: 1 };
    let names: Vec<String> = recordings.iter().map(shown_path).collect();
    Ok(Some(DiffReport {
        a: vec![baseline.display().to_string()],
        b: vec![names.join(", ")],
        diff: diff(question, &[before], &[now], options),
        all: true,
        min_effect: 0.0,
    }))
}

/// Who used the CPUs.
fn cpu_report(recordings: &[Recording], exits: &ExitsReport, cpu: CpuUse) -> CpuReport {
    CpuReport {
        sources: recordings.iter().map(shown_path).collect(),
        cpu,
        by: CpuBy::ALL.to_vec(),
        idle: false,
        top: None,
        recorder_cost: exits.sources.iter().find_map(|one| one.recorder_cost.clone()),
    }
}

/// Handlers of interrupts.
fn irqs_report(recordings: &[Recording], irqs: Irqs) -> IrqsReport {
    IrqsReport {
        sources: recordings.iter().map(shown_path).collect(),
        irqs,
        top: usize::MAX,
        histogram: false,
        recorder_cost: None,
    }
}

/// The samples of each recording. Without those that can't be read a page has all the rest.
fn samples_of(recordings: &[Recording]) -> Vec<Option<Samples>> {
    let of = |recording: &Recording| {
        Samples::of(recording).unwrap_or_else(|error| {
            let _ = writeln!(messages(), "hyperscope: the page is without samples: {error}");
            None
        })
    };
    recordings.iter().map(of).collect()
}

/// Which functions ran, of those recordings that have calls.
fn calls_of(
    recordings: &[Recording],
    machines: &[LaneMachine],
    calls: Vec<(usize, RecordedCalls)>,
) -> Option<CallsReport> {
    let source = |(at, calls): (usize, RecordedCalls)| {
        let machine = machines.get(at)?;
        Some(CallsSource {
            path: shown_path(recordings.get(at)?),
            machine: machine.name.clone(),
            is_guest: machine.is_guest,
            calls,
        })
    };
    let sources: Vec<CallsSource> = calls.into_iter().filter_map(source).collect();
    (!sources.is_empty()).then_some(CallsReport {
        sources,
        sort: CallSort::Own,
        top: usize::MAX,
        tree: Some(FLAME),
        per_call: None,
    })
}

/// The ways that requests took; none where the recordings don't show them.
fn path_report(
    recordings: &[Recording],
    guests: &[GuestAlignment],
    paths: Paths,
) -> Option<PathReport> {
    (!paths.paths.is_empty()).then(|| PathReport {
        sources: recordings.iter().map(shown_path).collect(),
        alignment: guests.iter().map(align_summary).collect(),
        paths,
        top: usize::MAX,
    })
}

/// What lanes are to know of each recording.
fn machines(
    recordings: &[Recording],
    guests: &[GuestAlignment],
    exits: &ExitsReport,
) -> Vec<LaneMachine> {
    let machine = |at: usize| {
        let MachineName { name, is_guest } = MachineName::of(at, recordings, guests);
        let vms = exits.sources.get(at).map_or(&[][..], |source| &source.exits.vms);
        LaneMachine {
            is_guest,
            name,
            vcpu_threads: vms.iter().flat_map(|vm| &vm.vcpus).map(|vcpu| vcpu.thread).collect(),
        }
    };
    (0..recordings.len()).map(machine).collect()
}

fn shown_path(recording: &Recording) -> String {
    recording.path().display().to_string()
}

/// What a page is called that was given no name: by its recordings, and what of them it shows.
fn title(recordings: &[Recording], part: &Part) -> String {
    let names: Vec<String> = recordings
        .iter()
        .filter_map(|one| Some(one.path().file_name()?.to_string_lossy().into_owned()))
        .collect();
    let names = names.join(", ");
    part.description().map_or_else(|| names.clone(), |part| format!("{names} ({part})"))
}

/// Says on standard error what there is to look at.
fn summarize(args: &PageArgs, page: &PageReport) {
    let Some(output) = &args.output else { return };
    let mut err = messages();
    let _ = writeln!(err, "hyperscope: open {} in a browser", output.display());
    if page.lanes.merged_below_ns() > 0 {
        let below = report::time(page.lanes.merged_below_ns(), true);
        let _ = writeln!(
            err,
            "hyperscope: neighbours below {below} are merged in the timeline; --spans keeps more, as far as --max-memory allows"
        );
    }
}
