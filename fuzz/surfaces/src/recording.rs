//! A recording made of arbitrary bytes: opened, analysed, reported and printed.

use std::collections::HashMap;

use std::path::Path;

use ::timeline::{ExitSink, ExitSpan, Outcome, each_exit};
use analyses::contents::{Contents, contents};
use analyses::cpu::cpu;
use analyses::exits::{Exits, exits};
use analyses::group::By;
use analyses::nested::nested;
use analyses::path::{NoSuchEvent, PathEnds, paths};
use analyses::profile::{GuestStacks, ProfileQuestion, ProfileRow, profile};
use analyses::states::{GuestCpu, OccupantSpan, StateSink, StateSpan, VcpuRef, states};
use analyses::view::View;
use analyses::virtio::virtio;
use analyses::vms::find_vms;
use analyses::why::why;
use report::events::{EventsSummary, Machine, Style, write_events};
use report::{
    CpuBy, CpuReport, ExitsReport, FileInfo, Format, InfoReport, NestedReport, PathReport,
    ProfileBy, ProfileReport, Report, Source, VirtioReport, WhyQuestion, WhyReport,
};
use sources::{BlockReader, OpenError, OpenFault, Recording, Samples, TimeRange};
use timeline::event_filter::Filter;

use crate::{exporting, irqs};

/// Files with more bytes of pages than this are skipped: a few chunks find as much as many.
const MAX_PAGES: u64 = 16 << 20;
/// Bytes of the smallest record: a header and four bytes of data or length.
const MIN_RECORD: u64 = 8;
/// Maximum JSON bytes to parse again.
const MAX_PARSED: usize = 256 << 10;

/// Totals, for callers that know the expected values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Bytes of pages.
    pub pages: u64,
    /// Number of events.
    pub events: u64,
    /// VM exits among the events.
    pub exits: u64,
    /// Parts that could not be read.
    pub damaged: u64,
}

/// Reads `file` as a recording.
pub fn run(file: &[u8]) {
    let _ = check(file);
}

/// Reads `file` as a recording; returns the text of an error.
///
/// # Errors
/// If the file cannot be opened.
pub fn check(file: &[u8]) -> Result<Found, String> {
    // A few bytes of gzip or zstd can unpack to the full size of the spool.
    sys::bound_spool(MAX_PAGES);
    let open = || sources::open_bytes(Path::new("bytes"), file.to_vec());
    let found = open().map(account).map_err(reason)?;
    if found.pages <= MAX_PAGES {
        check_ranges(open, found.events);
    }
    Ok(found)
}

/// The ranges before and after a moment together contain all events; events with invalid times can
/// be in both.
fn check_ranges(open: impl Fn() -> Result<Recording, OpenError>, events: u64) {
    let Ok(Some((first_ns, last_ns))) = open().map(|recording| recording.first_and_last_ns())
    else {
        return;
    };
    let middle_ns = first_ns.midpoint(last_ns);
    let events_in = |from_ns, to_ns| {
        let Ok(mut part) = open() else { return 0 };
        part.set_range(TimeRange { from_ns, to_ns });
        contents(&part, &|_| ()).total()
    };
    let (before, after) = (events_in(0, middle_ns), events_in(middle_ns, u64::MAX));
    assert!(before <= events && after <= events, "more events in a range than in all");
    let both = before.saturating_add(after);
    assert!(both >= events, "{before} events before {middle_ns}, {after} after it, of {events}");
}

/// Analyses, reports and prints a recording.
#[must_use]
pub fn account(recording: Recording) -> Found {
    let (found, contents) = count(&recording);
    let Some(contents) = contents else { return found };
    print(&recording, &contents);
    let vms = find_vms(&recording, &|_| ());
    render(&InfoReport {
        files: vec![FileInfo { recording, contents, vms, faults: Vec::new(), covered: Vec::new() }],
    });
    found
}

/// Counts the events and exits of a recording, unless it has too many pages.
#[must_use]
pub fn count(recording: &Recording) -> (Found, Option<Contents>) {
    let pages = page_bytes(recording);
    if pages > MAX_PAGES {
        return (Found { pages, ..Found::default() }, None);
    }
    let contents = contents(recording, &|_| ());
    assert!(contents.total() <= pages / MIN_RECORD, "more events than pages have room for");
    let by_name: u64 = contents.events.values().sum();
    assert_eq!(by_name, contents.total(), "events by name are not those by CPU");
    let found = Found {
        pages,
        events: contents.total(),
        exits: check_exits(recording, &contents),
        damaged: contents.pages_damaged(),
    };
    check_nested(recording);
    check_paths(recording, &contents);
    check_states(recording);
    exporting::check(recording, &contents);
    (found, Some(contents))
}

/// Why a recording was refused: the error's text, or its cause if the text has the path only.
#[must_use]
pub fn reason(error: OpenError) -> String {
    let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    let text = error.to_string();
    // For a trace.dat or perf.data, the cause has the reason; the text has only the path.
    let needs_cause = matches!(error.fault, OpenFault::TraceDat(_) | OpenFault::PerfData(_));
    let telling = if needs_cause { &cause } else { &text };
    assert!(!telling.is_empty(), "an error without a reason");
    format!("{text}: {cause}")
}

/// Bytes of pages, or of records outside pages, in all blocks; stops counting above [`MAX_PAGES`].
fn page_bytes(recording: &Recording) -> u64 {
    let mut reader = BlockReader::default();
    let mut sum = 0;
    for stream in recording.streams() {
        for index in 0..stream.block_count() {
            let block = recording.block(stream, index, &mut reader);
            // A record outside a page takes at least as much space as the smallest record on a
            // page.
            let listed = |_| stream.unpacked_len(index);
            sum += block.map_or(0, |block| {
                block.pages().ok_or(()).map_or_else(listed, |pages| pages.bytes.len() as u64)
            });
            if sum > MAX_PAGES {
                return sum;
            }
        }
    }
    sum
}

fn check_exits(recording: &Recording, contents: &Contents) -> u64 {
    let coarse = exits(recording, &By::DEFAULT, &|_| ());
    let every: Vec<By> = By::NAMES.iter().map(|(_, by)| *by).collect();
    let fine = exits(recording, &every, &|_| ());
    let count = sums(&coarse);
    assert_eq!(count, sums(&fine), "exits depend on how they are grouped");
    assert!(count.exits <= contents.total(), "more exits than events");
    for exits in [coarse, fine] {
        render(&ExitsReport {
            top: Some(3),
            sorted_by: None,
            sources: vec![Source {
                path: "bytes".to_owned(),
                exits,
                of_guest: false,
                recorder_cost: None,
                processes: HashMap::new(),
            }],
        });
    }
    count.exits
}

#[derive(Debug, PartialEq, Eq)]
struct Sums {
    exits: u64,
    dropped: u64,
    paired: u64,
    by_handler: u64,
}

/// Sums over all rows, and checks that each row adds up.
fn sums(exits: &Exits) -> Sums {
    let mut sums = Sums { exits: 0, dropped: 0, paired: 0, by_handler: 0 };
    for row in &exits.rows {
        let tally = &row.tally;
        let sum_ns = tally.durations.sum();
        if sum_ns < u64::MAX {
            assert_eq!(tally.parts.total_ns(), sum_ns, "parts do not add up: {row:?}");
        }
        let longest_ns = tally.durations.max().unwrap_or(0);
        assert!(longest_ns <= exits.span_ns, "an exit longer than the recording: {row:?}");
        sums.exits += tally.count;
        sums.dropped += tally.dropped;
        sums.paired += tally.durations.count();
        sums.by_handler += tally.by_kernel + tally.by_user + tally.by_l1;
    }
    assert!(sums.paired + sums.dropped <= sums.exits, "{sums:?}");
    assert_eq!(sums.paired, sums.by_handler, "{sums:?}");
    sums
}

fn check_nested(recording: &Recording) {
    let nested = nested(recording, &|_| ());
    render(&NestedReport { sources: vec![("bytes".to_owned(), nested)] });
}

/// The hops of a path add up to its time, and there are at most as many requests as events.
fn check_paths(recording: &Recording, contents: &Contents) {
    let recordings = std::slice::from_ref(recording);
    let found = match paths(View::on_own_clocks(recordings), &PathEnds::default(), &|_| ()) {
        Ok(found) => found,
        Err(NoSuchEvent(pattern)) => panic!("nothing was asked for, and {pattern} not found"),
    };
    let mut requests = found.unfinished + found.interrupted + found.others;
    for path in &found.paths {
        let sum = path.hops.iter().map(|hop| hop.times.sum()).fold(0, u64::saturating_add);
        if sum < u64::MAX {
            assert_eq!(sum, path.total.sum(), "hops do not add up: {path:?}");
        }
        for example in &path.examples {
            let in_order = example.steps.is_sorted_by_key(|step| step.ts_ns);
            let steps = example.steps.len();
            assert!(in_order && steps == example.hops.len() + 1, "{path:?}");
            assert!(steps <= path.hops.len() + 1, "{path:?}");
        }
        requests += path.total.count();
    }
    assert!(requests <= contents.total(), "more requests than events");
    let sources = vec!["bytes".to_owned()];
    render(&PathReport { sources, alignment: Vec::new(), paths: found, top: 3 });
}

/// The end of each vCPU's last span: the next span must begin there.
#[derive(Default)]
struct InOrder(HashMap<VcpuRef, u64>);

impl StateSink for InOrder {
    fn vcpu(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        assert!(span.from_ns <= span.to_ns, "{span:?}");
        let before_ns = self.0.insert(vcpu, span.to_ns);
        assert!(before_ns.is_none_or(|before_ns| before_ns == span.from_ns), "{span:?}");
    }

    fn task(&mut self, _: GuestCpu, _: u32, span: &StateSpan) {
        assert!(span.from_ns <= span.to_ns, "{span:?}");
    }

    fn cpu(&mut self, _: GuestCpu, span: &OccupantSpan) {
        assert!(span.from_ns <= span.to_ns, "{span:?}");
    }
}

/// By vCPU: the time in the guest and in exits, and the times of its first and last event. The sum
/// never exceeds the time between these events, even with invalid time stamps.
#[derive(Default)]
struct VcpuTime(HashMap<usize, (u64, u64, u64)>);

impl ExitSink for VcpuTime {
    fn exit(&mut self, vcpu: usize, span: &ExitSpan) {
        let in_guest_ns = span.guest_ns + span.before_exit_ns;
        let in_exit_ns = match span.outcome {
            Outcome::Paired => span.end_ns - span.start_ns,
            Outcome::Unpaired | Outcome::LostIn => 0,
        };
        let begin_ns = span.start_ns - in_guest_ns;
        let (sum_ns, first_ns, _) = self.0.get(&vcpu).copied().unwrap_or((0, begin_ns, 0));
        let (sum_ns, last_ns) = (sum_ns + in_guest_ns + in_exit_ns, span.start_ns + in_exit_ns);
        assert!(sum_ns <= last_ns - first_ns, "vCPU {vcpu}: {sum_ns} ns from {first_ns}: {span:?}");
        self.0.insert(vcpu, (sum_ns, first_ns, last_ns));
    }
}

fn check_states(recording: &Recording) {
    each_exit(recording, false, VcpuTime::default(), &|_| ());
    states(View::on_own_clocks(std::slice::from_ref(recording)), &mut InOrder::default(), &|_| ());
    let cpu = cpu(View::on_own_clocks(std::slice::from_ref(recording)), &[], &|_| ());
    for vcpu in &cpu.vcpus {
        assert!(vcpu.times.busy() <= vcpu.times.on_cpu(), "{vcpu:?}");
        assert!(vcpu.times.on_cpu() <= vcpu.times.total(), "{vcpu:?}");
    }
    let sources = vec!["bytes".to_owned()];
    let by = CpuBy::ALL.to_vec();
    let times_ns: Vec<u64> = cpu.vcpus.iter().map(|vcpu| vcpu.times.total()).collect();
    render(&CpuReport { sources, cpu, by, idle: true, top: None, recorder_cost: None });
    check_profile(recording, &times_ns);
    check_virtio(recording);
    check_why(recording);
    irqs::check(recording);
}

/// A VM's time is the sum of its parts, and causes are parts of it.
fn check_why(recording: &Recording) {
    let why = why(View::on_own_clocks(std::slice::from_ref(recording)), &[], &|_| ());
    for vm in &why.vms {
        let parts = &vm.budget;
        let known_ns = [parts.guest_ns, parts.idle_ns, parts.exits_ns, parts.run_queue_ns]
            .into_iter()
            .chain([parts.blocked_ns, parts.unknown_ns])
            .fold(0, u64::saturating_add);
        // Times of a damaged recording may exceed 64 bits: sums end there.
        assert!(known_ns >= parts.total_ns, "{parts:?}");
        assert!(vm.causes.iter().all(|cause| (0.0..=1.0).contains(&cause.share)), "{vm:?}");
    }
    let sources = vec!["bytes".to_owned()];
    render(&WhyReport { sources, question: WhyQuestion::default(), why });
}

/// Only buffers that were both made available and used have a time.
fn check_virtio(recording: &Recording) {
    let virtio = virtio(View::on_own_clocks(std::slice::from_ref(recording)), &|_| ());
    for queue in &virtio.queues {
        assert!(queue.latencies.count() <= queue.taken_back, "{queue:?}");
        assert!(queue.latencies.count() <= queue.added, "{queue:?}");
        assert!(queue.cut <= queue.added, "{queue:?}");
    }
    let sources = vec!["bytes".to_owned()];
    render(&VirtioReport { sources, virtio, recorder_cost: None });
}

/// The rows of a vCPU add up to its time, and so do stacks.
fn check_profile(recording: &Recording, times_ns: &[u64]) {
    let samples = [Samples::for_recording(recording).ok().flatten()];
    let profile = profile(
        View::on_own_clocks(std::slice::from_ref(recording)),
        ProfileQuestion { samples: &samples, given: &[], stacks: GuestStacks::Corrected },
        &|_| (),
    );
    let sums = profile.vcpus.iter().map(|vcpu| vcpu.time_ns);
    assert!(sums.eq(times_ns.iter().copied()), "times of vCPUs are not those of cpu");
    for (at, vcpu) in profile.vcpus.iter().enumerate() {
        let rows = profile.rows.iter().filter(|row| row.vcpu == at);
        let sum = rows.fold(0, |sum: u64, row| sum.saturating_add(row.time.ns));
        assert_eq!(sum, vcpu.time_ns, "{vcpu:?}");
    }
    let within =
        |row: &ProfileRow| row.time.low_ns <= row.time.ns && row.time.ns <= row.time.high_ns;
    assert!(profile.rows.iter().all(within), "a time outside its interval");
    let (sources, top) = (vec!["bytes".to_owned()], usize::MAX);
    let mut report = ProfileReport {
        sources,
        profile,
        symbol: None,
        by: ProfileBy::Vm,
        top,
        idle: true,
        threads: true,
        raw: false,
        recorder_cost: None,
    };
    for by in ProfileBy::ALL {
        report.by = by;
        render(&report);
    }
    assert!(report.flame("bytes").ends_with("</svg>\n") && !report.folded().contains('\0'));
}

pub(crate) fn render(report: &impl Report) {
    for format in [
        Format::Table { width: None },
        Format::Table { width: Some(40) },
        Format::Json,
        Format::Csv,
    ] {
        let text = report.render(format);
        if format == Format::Json {
            let parsed = serde_json::from_str::<serde_json::Value>(&text);
            assert!(parsed.is_ok(), "a report that is no JSON: {text}");
        }
    }
}

fn print(recording: &Recording, contents: &Contents) {
    for style in [Style::Text, Style::Raw, Style::Jsonl] {
        let (summary, text) = printed(recording, style);
        assert_eq!(summary.printed, contents.total(), "events are missing in {style:?}");
        let lines = text.iter().filter(|&&byte| byte == b'\n').count() as u64;
        assert!(lines >= summary.printed, "lines are missing in {style:?}");
        if style == Style::Jsonl && text.len() <= MAX_PARSED {
            check_json(&text);
        }
    }
}

fn printed(recording: &Recording, style: Style<'_>) -> (EventsSummary, Vec<u8>) {
    let recordings = std::slice::from_ref(recording);
    let machines = [Machine { name: "host".to_owned(), level: 0, threads: None }];
    let mut out = Vec::new();
    let filter = Filter::default();
    match write_events(recordings, &machines, &filter, style, &mut out, &|_| ()) {
        Ok(summary) => (summary, out),
        Err(error) => panic!("memory can't be written: {error}"),
    }
}

/// Every line is a JSON object.
fn check_json(text: &[u8]) {
    for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let parsed = serde_json::from_slice::<serde_json::Value>(line);
        let is_object = parsed.is_ok_and(|value| value.is_object());
        assert!(is_object, "no JSON object: {}", String::from_utf8_lossy(line));
    }
}
