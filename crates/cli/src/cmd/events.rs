//! `hyperscope events`: the text of all events, merged by time.

use std::collections::{BTreeSet, HashSet};
use std::io::Write;

use analyses::vms::find_vms;
use anyhow::{Context, anyhow, bail};
use eventfmt::EventFormat;
use printable::messages;
use report::events::{EventsSummary, Machine, Style, write_events_near};
use session::{Misuse, Selection, Session, say_losses};
use sources::Recording;
use timeline::Vm;
use timeline::event_filter::{Condition, Filter, Unfit};

use crate::args::{EventsArgs, EventsFormatArg};
use crate::output;
use crate::progress::Progress;

pub(crate) fn run(args: &EventsArgs) -> anyhow::Result<()> {
    let mut session = Session::open(&args.files, &args.names.of_one_session())?;
    let filter = filter(args, session.recordings())?;
    let style = match (args.format, args.raw) {
        (EventsFormatArg::Jsonl, _) => Style::Jsonl,
        (EventsFormatArg::Text, true) => Style::Raw,
        (EventsFormatArg::Text, false) if args.numeric => Style::Text,
        (EventsFormatArg::Text, false) => Style::TraceCmd,
    };
    let times = Selection::of_times(args.range.from, args.range.to);
    session.select_on_host_clock(&times, args.method.method())?;
    session.say_alignment();
    let recordings = session.recordings();
    let mut machines = Machine::of_all(session.view());
    choose_threads(args, recordings, &mut machines)?;
    let progress = Progress::new(session.view().stored_len());
    // A bar and lines would be written over each other on one terminal, or on that of a pager.
    let tick = |bytes| {
        if args.output.is_some() {
            progress.advance(bytes);
        }
    };
    let mut out = output::open(args.output.as_deref(), recordings)?;
    let wanted = (&filter, args.near());
    let summary = write_events_near(recordings, &machines, wanted, style, &mut out, &tick)
        .context("cannot write the events")?;
    progress.finish();
    out.complete()?;
    report(&summary, recordings);
    Ok(())
}

/// Reports on standard error what the lines do not show.
pub(super) fn report(summary: &EventsSummary, recordings: &[Recording]) {
    let mut err = messages();
    for recording in recordings {
        for note in &recording.info().notes {
            let _ = writeln!(err, "hyperscope: {}: {note}", recording.path().display());
        }
    }
    for (name, count) in &summary.unprintable {
        let _ = writeln!(err, "hyperscope: {count} {name} printed raw: no usable print fmt");
    }
    drop(err);
    say_losses(recordings);
    let mut err = messages();
    if summary.printed == 0 {
        let _ = writeln!(err, "hyperscope: no event to print; hyperscope info shows what there is");
    }
}

fn filter(args: &EventsArgs, recordings: &[Recording]) -> anyhow::Result<Filter> {
    let filter = Filter {
        events: args.events.clone(),
        cpus: args.cpu.clone(),
        from_ns: None,
        to_ns: None,
        conditions: args.conditions.clone(),
    };
    check_names(&filter, recordings)?;
    Ok(filter)
}

/// Leaves to each machine the threads that are asked for: of a host, those that run the VM's
/// vCPUs; of the VM itself, all.
fn choose_threads(
    args: &EventsArgs,
    recordings: &[Recording],
    machines: &mut [Machine],
) -> anyhow::Result<()> {
    let asked: Option<HashSet<u32>> =
        (!args.pid.is_empty()).then(|| args.pid.iter().copied().collect());
    let are_chosen = args.vm.is_some() || args.vcpu.is_some();
    let vcpus = are_chosen.then(|| vcpu_threads(args, recordings, machines)).transpose()?;
    for (at, machine) in machines.iter_mut().enumerate() {
        let is_own = args.vm.as_ref().map_or(machine.level > 0, |vm| *vm == machine.name);
        let of_vm = vcpus.as_ref().filter(|_| !is_own);
        let of_vm = of_vm.map(|vcpus| vcpus.get(at).cloned().unwrap_or_default());
        machine.threads = match (asked.clone(), of_vm) {
            (Some(asked), Some(of_vm)) => Some(asked.intersection(&of_vm).copied().collect()),
            (asked, of_vm) => asked.or(of_vm),
        };
    }
    Ok(())
}

/// The error of a pattern that no event of these recordings matches, with those that it may have meant.
pub(super) fn no_event(pattern: &str, recordings: &[Recording]) -> anyhow::Error {
    let formats = recordings.iter().flat_map(|one| one.formats().iter());
    let names = formats.map(|(_, format)| match pattern.contains([':', '/']) {
        true => format!("{}:{}", format.system(), format.name()),
        false => format.name().to_owned(),
    });
    let names: BTreeSet<String> = names.collect();
    let similar = tracefs::similar(pattern, names.iter().map(String::as_str));
    let end = if similar.is_empty() { ";".to_owned() } else { tracefs::did_you_mean(&similar) };
    anyhow!("no event matches {pattern}{end} hyperscope info lists those recorded")
}

/// A filter that no event of any recording can pass is a slip of the pen, not a wish for silence.
pub(crate) fn check_names(filter: &Filter, recordings: &[Recording]) -> anyhow::Result<()> {
    let formats = || recordings.iter().flat_map(|one| one.formats().iter());
    for pattern in &filter.events {
        if !formats().any(|(_, format)| format.is_named(pattern)) {
            return Err(no_event(pattern, recordings));
        }
    }
    filter
        .conditions
        .iter()
        .try_for_each(|condition| check_condition(condition, filter, recordings))
}

/// Whether some event of those asked for may meet the condition.
fn check_condition(
    condition: &Condition,
    filter: &Filter,
    recordings: &[Recording],
) -> anyhow::Result<()> {
    let is_named = |format: &EventFormat| {
        filter.events.is_empty() || filter.events.iter().any(|pattern| format.is_named(pattern))
    };
    let mut unfit: Option<Unfit> = None;
    for recording in recordings {
        let formats = recording.formats().iter().map(|(_, format)| format);
        for format in formats.filter(|format| is_named(format)) {
            match condition.compile(format, recording.abi()) {
                Ok(_) => return Ok(()),
                Err(Unfit::NoField(_)) => {}
                Err(error) => unfit = Some(merged(unfit, error)),
            }
        }
    }
    let text = condition.text();
    match unfit {
        None => bail!(
            "\"{text}\": no event has such a field; hyperscope events --raw shows their fields"
        ),
        Some(Unfit::NoSuchName { field, wanted, names }) => {
            let similar = tracefs::similar(&wanted, names.iter().map(String::as_str));
            let all = names.join(", ");
            let end = match similar.is_empty() {
                true => format!("; it is printed as {all}"),
                false => tracefs::did_you_mean(&similar),
            };
            bail!(Misuse(format!("\"{text}\": {field} is never printed as {wanted}{end}")))
        }
        Some(unfit) => bail!(Misuse(format!("\"{text}\": {unfit}"))),
    }
}

/// Names of all events with the field are known together.
fn merged(before: Option<Unfit>, next: Unfit) -> Unfit {
    match (before, next) {
        (
            Some(Unfit::NoSuchName { field, wanted, mut names }),
            Unfit::NoSuchName { names: more, .. },
        ) => {
            let new: Vec<String> = more.into_iter().filter(|name| !names.contains(name)).collect();
            names.extend(new);
            Unfit::NoSuchName { field, wanted, names }
        }
        (Some(before @ Unfit::NoSuchName { .. }), _) => before,
        (_, next) => next,
    }
}

/// The threads that run the vCPUs asked for, by recording.
fn vcpu_threads(
    args: &EventsArgs,
    recordings: &[Recording],
    machines: &[Machine],
) -> anyhow::Result<Vec<HashSet<u32>>> {
    let vms: Vec<_> = recordings.iter().map(|one| find_vms(one, &|_| ())).collect();
    let mut names: Vec<&str> = vms.iter().flatten().map(|one| one.name.as_str()).collect();
    let is_known =
        |vm: &str| names.contains(&vm) || machines.iter().any(|machine| machine.name == vm);
    if let Some(vm) = args.vm.as_deref().filter(|vm| !is_known(vm)) {
        names.sort_unstable();
        names.dedup();
        bail!("no VM is called {vm}; there are: {}", names.join(", "));
    }
    let threads = |vms: &Vec<Vm>| {
        let named = vms.iter().filter(|one| args.vm.as_ref().is_none_or(|vm| one.name == *vm));
        let vcpus = named.flat_map(|vm| &vm.vcpus);
        let wanted =
            vcpus.filter(|one| args.vcpu.as_ref().is_none_or(|wanted| wanted.contains(one.vcpu)));
        wanted.map(|vcpu| vcpu.thread).collect()
    };
    Ok(vms.iter().map(threads).collect())
}
