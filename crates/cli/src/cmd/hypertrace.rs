//! `hyperscope hypertrace`: what guests told by hypercall.

use std::io::{self, BufWriter, Write};

use analyses::{HypertraceSummary, VcpuThread, find_vms, hypertrace};
use anyhow::{Context, bail};
use report::count;
use report::events::{ToldStyle, ToldWriter};
use sources::Recording;

use crate::args::EventsFormatArg;
use crate::args::hypertrace::HypertraceArgs;
use crate::inputs::open_all;
use crate::output;
use crate::progress::Progress;

pub(crate) fn run(args: &HypertraceArgs) -> anyhow::Result<()> {
    let recordings = open_all(&args.files)?;
    let has = |one: &Recording| one.formats().iter().any(|(_, one)| one.name() == "kvm_hypercall");
    if !recordings.iter().any(has) {
        bail!("no recording has kvm:kvm_hypercall; record the host with -e kvm:kvm_hypercall");
    }
    let style = match args.format {
        EventsFormatArg::Text => ToldStyle::Text,
        EventsFormatArg::Jsonl => ToldStyle::Jsonl,
    };
    let out = output::open(args.output.as_deref(), &recordings)?;
    let mut writer = ToldWriter::new(BufWriter::new(out), style, machines(&recordings));
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    let tick = |bytes| {
        if args.output.is_some() {
            progress.advance(bytes);
        }
    };
    let summary = hypertrace(&recordings, args.number, &mut writer, &tick);
    progress.finish();
    writer.finish().context("cannot write the events")?;
    tell(&summary);
    Ok(())
}

/// What the guest of each vCPU's thread is called, where exits tell of it.
fn machines(recordings: &[Recording]) -> Vec<(VcpuThread, String)> {
    let mut machines = Vec::new();
    for (recording, one) in (0_u16..).zip(recordings) {
        for vm in find_vms(one, &|_| ()) {
            let thread = |thread| (VcpuThread { recording, thread }, vm.name.clone());
            machines.extend(vm.vcpus.iter().map(|vcpu| thread(vcpu.thread)));
        }
    }
    machines
}

/// Tells on standard error what the lines do not.
fn tell(summary: &HypertraceSummary) {
    let mut err = io::stderr().lock();
    let hypercalls: u64 = summary.streams.iter().map(|stream| stream.hypercalls).sum();
    let events: u64 = summary.streams.iter().map(|stream| stream.events).sum();
    let each = if hypercalls == 0 { 0.0 } else { events as f64 / hypercalls as f64 };
    let _ = writeln!(
        err,
        "hyperscope: {} events in {} hypercalls of {} vCPUs: {each:.1} a hypercall",
        count(events),
        count(hypercalls),
        count(summary.streams.len() as u64),
    );
    for (what, lost) in losses(summary).into_iter().filter(|(_, lost)| *lost > 0) {
        let _ = writeln!(err, "hyperscope: {what}: {}", count(lost));
    }
}

fn losses(summary: &HypertraceSummary) -> Vec<(&'static str, u64)> {
    let sum = summary.sum();
    let lost: u64 = summary.losses.iter().map(|losses| losses.events_lost).sum();
    vec![
        ("events that the host's recorder lost, of any kind", lost),
        ("frames that are missing", sum.frames_lost),
        ("frames before the first that says how to read them", sum.frames_early),
        ("frames that make no sense", sum.frames_damaged),
        ("frames in a version of the format that is not known", sum.frames_unknown),
        ("frames with more words than the host recorded", sum.frames_cut),
        ("events that guests dropped", sum.events_dropped),
        ("events that guests sent and that are missing", sum.events_missing),
        ("events with a stamp that is only the latest possible", sum.stamps_at_latest),
        ("pieces of marks that are missing", summary.marks_damaged),
        ("lines out of order", summary.late),
    ]
}
