//! `hyperscope hypertrace`: events that guests sent by hypercall, or in memory.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use analyses::hypertrace::{
    HypertraceFiles, HypertraceSummary, Route, StoredFrames, StreamSummary, VcpuThread, hypertrace,
};
use analyses::vms::find_vms;
use anyhow::{Context, bail};
use printable::messages;
use report::events::{GuestEventStyle, GuestEventWriter};
use report::{count, counted, plural, time};
use session::{Selection, Session};
use sources::{Collected, Recording};

use crate::args::EventsFormatArg;
use crate::args::hypertrace::{HypertraceArgs, SourceArg};
use crate::stored_frames::{self, Frames};
use command::output;
use command::progress::Progress;
use command::verb::{Memory, Range, VerbArgs};

impl VerbArgs for HypertraceArgs {
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

fn run(args: &HypertraceArgs) -> anyhow::Result<()> {
    let (files, frames) = stored_frames::find(&args.files)?;
    let mut session = Session::open(&files, &args.part.vms.names.of_one_session())?;
    let stored = frames
        .iter()
        .map(|found| found.read(session.recordings()))
        .collect::<Result<Vec<_>, _>>()?;
    let collected = collected(args.source, session.recordings())?;
    let selection = Selection::from(&args.part);
    session.select_vms(&selection)?;
    let times = selection.range_of(session.view())?;
    let recordings = session.recordings();
    let files = HypertraceFiles { collected: &collected, stored: &stored, times };
    if !files.may_have_events(recordings) {
        bail!(nothing_sent(recordings));
    }
    let style = match args.format {
        EventsFormatArg::Text => GuestEventStyle::Text,
        EventsFormatArg::Jsonl => GuestEventStyle::Jsonl,
    };
    let mut out = output::open(args.output.as_deref(), recordings)?;
    let mut writer = GuestEventWriter::new(
        BufWriter::new(&mut out),
        style,
        machines(recordings, &frames, &stored),
    );
    let progress = Progress::new(session.view().stored_len());
    let on_progress = |bytes| {
        if args.output.is_some() {
            progress.advance(bytes);
        }
    };
    let summary = hypertrace(recordings, files, args.number, &mut writer, &on_progress);
    progress.finish();
    writer.finish().context("cannot write the events")?;
    out.complete()?;
    session.say_losses();
    report(&summary);
    collected.iter().flatten().for_each(report_collected);
    for (frames, stored) in frames.iter().zip(&stored) {
        report_frames(frames, stored, recordings);
    }
    Ok(())
}

/// Why there is nothing to read, and what to record instead.
fn nothing_sent(recordings: &[Recording]) -> &'static str {
    let of_arm = |recording: &Recording| recording.formats().by_name("kvm:kvm_hvc_arm64").is_some();
    if recordings.iter().any(of_arm) {
        "kvm:kvm_hvc_arm64 lacks the arguments of hypercalls; record the host with --hypercalls"
    } else {
        "no recording has kvm:kvm_hypercall; record the host with --hypercalls, with -e kvm:kvm_hypercall, or with --hypertrace GUEST if the guest's module runs with channel=shm"
    }
}

/// By recording, the files that collectors wrote next to it.
pub(crate) fn collected(
    source: Option<SourceArg>,
    recordings: &[Recording],
) -> anyhow::Result<Vec<Option<Collected>>> {
    if source == Some(SourceArg::Events) {
        return Ok(recordings.iter().map(|_| None).collect());
    }
    let all = recordings.iter().map(Collected::for_recording).collect::<Result<Vec<_>, _>>()?;
    if source == Some(SourceArg::Collector) && all.iter().all(Option::is_none) {
        bail!("no recording has a host.collected next to it; record the host with --hypercalls");
    }
    Ok(all)
}

/// By vCPU thread, the name of its guest, if the recording, its exits or the file name has it.
pub(crate) fn machines(
    recordings: &[Recording],
    frames: &[Frames],
    stored: &[StoredFrames<'_>],
) -> Vec<(VcpuThread, String)> {
    let mut machines = Vec::new();
    for (recording, source) in (0_u16..).zip(recordings) {
        for (thread, name) in source.guest_threads() {
            machines.push((VcpuThread { recording, thread }, name.to_owned()));
        }
        for vm in find_vms(source, &|_| ()) {
            let thread = |thread| (VcpuThread { recording, thread }, vm.name.clone());
            machines.extend(vm.vcpus.iter().map(|vcpu| thread(vcpu.thread)));
        }
    }
    for (number, (guest_frames, stored)) in (recordings.len()..).zip(frames.iter().zip(stored)) {
        let (Some(name), Ok(recording)) = (guest_frames.guest(), u16::try_from(number)) else {
            continue;
        };
        let thread = |thread| (VcpuThread { recording, thread }, name.to_owned());
        machines.extend(stored.stored.cpus.keys().map(|&cpu| thread(cpu.into())));
    }
    machines
}

/// Reports on standard error what the printed lines lack.
fn report(summary: &HypertraceSummary) {
    let mut err = messages();
    for (route, unit, [frame, frames_of]) in [
        (Route::Hypercall, "hypercall", ["hypercall", "hypercalls"]),
        (Route::Memory, "frame", ["frame of memory", "frames of memory"]),
    ] {
        let streams: Vec<_> =
            summary.streams.iter().filter(|stream| stream.route == route).collect();
        // Without any input, the host has had no hypercalls.
        if streams.is_empty() && (route == Route::Memory || !summary.streams.is_empty()) {
            continue;
        }
        let sum = |of_one: &dyn Fn(&StreamSummary) -> u64| {
            streams.iter().map(|stream| of_one(stream)).sum()
        };
        let (frames, events): (u64, u64) =
            (sum(&|stream| stream.frames), sum(&|stream| stream.events));
        let each = if frames == 0 { 0.0 } else { events as f64 / frames as f64 };
        let _ = writeln!(
            err,
            "hyperscope: {} in {} of {}: {each:.1} a {unit}",
            plural(events, "event"),
            counted(frames, frame, frames_of),
            plural(streams.len() as u64, "vCPU"),
        );
    }
    if let [Some(median), Some(max)] = summary.overheads_ns.percentiles([500, 990]) {
        let _ = writeln!(
            err,
            "hyperscope: hypercalls took {} (median) and {} (99th percentile) from exit to entry",
            time(median, true),
            time(max, true),
        );
    }
    let late_ns = &summary.late_ns;
    if let ([Some(median), Some(nearly_all)], Some(max)) =
        (late_ns.percentiles([500, 990]), late_ns.max())
    {
        let _ = writeln!(
            err,
            "hyperscope: the host stamped hypercalls {} late (median), {} (99th percentile), {} (maximum), by the guest's counter; event times are corrected for that",
            time(median, true),
            time(nearly_all, true),
            time(max, true),
        );
    }
    for (what, lost) in losses(summary).into_iter().filter(|(_, lost)| *lost > 0) {
        let _ = writeln!(err, "hyperscope: {what}: {}", count(lost));
    }
}

/// Reports errors of frames from memory.
fn report_frames(frames: &Frames, stored: &StoredFrames<'_>, recordings: &[Recording]) {
    let mut err = messages();
    let path = frames.path().display();
    if !stored.is_on_host_clock(recordings) {
        let _ = writeln!(err, "hyperscope: {path}: times are in the guest's own TSC");
    }
    if stored.stored.damaged > 0 {
        let damaged = count(stored.stored.damaged);
        let _ = writeln!(err, "hyperscope: {path}: damaged records: {damaged}");
    }
}

/// Reports a collector's own messages.
fn report_collected(collected: &Collected) {
    let mut err = messages();
    let (clock, counts) = (collected.conversion(), collected.counts().unwrap_or_default());
    let _ = writeln!(
        err,
        "hyperscope: {} of {} collected; times on the clock {} known to {} by {}",
        count(collected.len()),
        plural(counts.hypercalls, "hypercall"),
        collected.begin().clock,
        time(clock.bound_ns(), true),
        plural(clock.pairs() as u64, "reading"),
    );
    let lost = [
        ("hypercalls dropped because the collector's ring was full", counts.ring_full),
        ("hypercalls whose exit happened before the collector started", counts.no_exit),
        ("exits of vCPUs beyond the collector's capacity", counts.no_room),
        ("hypercalls whose registers could not be read", counts.unreadable),
        ("damaged bytes in the collector's file", collected.damaged_bytes()),
        ("implausible clock readings", clock.left_out()),
    ];
    for (what, lost) in lost.into_iter().filter(|(_, lost)| *lost > 0) {
        let _ = writeln!(err, "hyperscope: {what}: {}", count(lost));
    }
}

fn losses(summary: &HypertraceSummary) -> Vec<(&'static str, u64)> {
    let sum = summary.sum();
    vec![
        ("missing frames", sum.frames_lost),
        ("frames before the first description of their format", sum.frames_early),
        ("malformed frames", sum.frames_damaged),
        ("frames in an unknown version of the format", sum.frames_unknown),
        ("frames with more words than the host recorded", sum.frames_cut),
        ("events dropped by guests", sum.events_dropped),
        ("events sent by guests and lost", sum.events_missing),
        ("events for which only the latest possible time is known", sum.stamps_at_latest),
        ("missing pieces of marks", summary.marks_damaged),
        ("lines out of order", summary.late),
        ("hypercalls without a known time", summary.untimed),
    ]
}
