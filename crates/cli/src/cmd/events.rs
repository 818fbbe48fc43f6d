//! `hyperscope events`: the text of all events, merged by time.

use std::collections::HashSet;
use std::io::{self, Write};

use analyses::find_vms;
use anyhow::{Context, bail};
use report::events::{Condition, CpuSet, EventsSummary, Filter, Machine, Style, write_events};
use sources::{Container, Recording};

use crate::args::{EventsArgs, EventsFormatArg};
use crate::inputs::open_all;
use crate::output;
use crate::progress::Progress;

pub(crate) fn run(args: &EventsArgs) -> anyhow::Result<()> {
    let recordings = open_all(&args.files)?;
    let filter = filter(args, &recordings)?;
    let style = match (args.format, args.raw) {
        (EventsFormatArg::Jsonl, _) => Style::Jsonl,
        (EventsFormatArg::Text, true) => Style::Raw,
        (EventsFormatArg::Text, false) => Style::Text,
    };
    let machines: Vec<Machine> = recordings.iter().map(|one| machine(one, &recordings)).collect();
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    // A bar and lines would be written over each other on one terminal.
    let tick = |bytes| {
        if args.output.is_some() {
            progress.advance(bytes);
        }
    };
    let mut out = output::open(args.output.as_deref())?;
    let summary = write_events(&recordings, &machines, &filter, style, &mut out, &tick)
        .context("cannot write the events")?;
    progress.finish();
    tell(&summary);
    Ok(())
}

/// Tells on standard error what the lines do not.
fn tell(summary: &EventsSummary) {
    let mut err = io::stderr().lock();
    for (name, count) in &summary.unprintable {
        let _ = writeln!(err, "hyperscope: {count} {name} printed raw: no usable print fmt");
    }
    if summary.damaged > 0 {
        let _ = writeln!(
            err,
            "hyperscope: {} places could not be read; hyperscope info lists them",
            summary.damaged
        );
    }
}

fn filter(args: &EventsArgs, recordings: &[Recording]) -> anyhow::Result<Filter> {
    let mut threads: Option<HashSet<u32>> =
        (!args.pid.is_empty()).then(|| args.pid.iter().copied().collect());
    if let Some(vm) = &args.vm {
        let of_vm = threads_of(vm, recordings)?;
        threads = Some(match threads {
            Some(asked) => asked.intersection(&of_vm).copied().collect(),
            None => of_vm,
        });
    }
    let filter = Filter {
        events: args.events.clone(),
        cpus: args.cpu.as_deref().map(CpuSet::parse).transpose()?,
        threads,
        from_ns: args.from.as_deref().map(nanoseconds).transpose()?,
        to_ns: args.to.as_deref().map(nanoseconds).transpose()?,
        conditions: args
            .conditions
            .iter()
            .map(|text| Condition::parse(text))
            .collect::<Result<_, _>>()?,
    };
    check_names(&filter, recordings)?;
    Ok(filter)
}

/// A filter that no event of any recording can pass is a slip of the pen, not a wish for silence.
fn check_names(filter: &Filter, recordings: &[Recording]) -> anyhow::Result<()> {
    let formats = || recordings.iter().flat_map(|one| one.formats().iter());
    for pattern in &filter.events {
        if !formats().any(|(_, format)| Filter::matches_name(pattern, format)) {
            bail!("no event matches {pattern}; hyperscope info lists those recorded");
        }
    }
    for condition in &filter.conditions {
        if !formats().any(|(_, format)| format.field(condition.field()).is_some()) {
            bail!(
                "no event has a field {}; hyperscope events --raw shows their fields",
                condition.field()
            );
        }
    }
    Ok(())
}

fn threads_of(vm: &str, recordings: &[Recording]) -> anyhow::Result<HashSet<u32>> {
    let vms: Vec<_> = recordings.iter().flat_map(|one| find_vms(one, &|_| ())).collect();
    let named: Vec<_> = vms.iter().filter(|one| one.name == vm).collect();
    if named.is_empty() {
        let known: Vec<&str> = vms.iter().map(|one| one.name.as_str()).collect();
        bail!("no VM is called {vm}; there are: {}", known.join(", "));
    }
    Ok(named.iter().flat_map(|vm| &vm.vcpus).map(|vcpu| vcpu.thread).collect())
}

/// Seconds with a fraction, as events are printed, in nanoseconds.
fn nanoseconds(text: &str) -> anyhow::Result<u64> {
    let wrong = || format!("\"{text}\" is no time; write seconds, such as 42.342151");
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds: u64 = seconds.parse().with_context(wrong)?;
    if fraction.len() > 9 || !fraction.chars().all(|one| one.is_ascii_digit()) {
        bail!(wrong());
    }
    let fraction: u64 = format!("{fraction:0<9}").parse().with_context(wrong)?;
    seconds.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(fraction)).with_context(wrong)
}

/// What a recording's machine is called: a guest if it was aligned to a host or another recording
/// names it as its guest.
fn machine(recording: &Recording, all: &[Recording]) -> Machine {
    let guests = all.iter().filter_map(|one| match one.container() {
        Container::TraceDat(dat) => Some(&dat.metadata.guests),
        Container::RawPages => None,
    });
    let named = guests.flatten().find(|guest| Some(guest.trace_id) == recording.trace_id());
    match named {
        Some(guest) if !guest.name.is_empty() => Machine { name: guest.name.clone(), level: 1 },
        Some(_) => Machine { name: "guest".to_owned(), level: 1 },
        None if recording.peer().is_some() => Machine { name: "guest".to_owned(), level: 1 },
        None => Machine { name: "host".to_owned(), level: 0 },
    }
}
