//! `hyperscope events`: the text of all events, merged by time.

use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use analyses::vms::find_vms;
use anyhow::{Context, bail};
use clap::{Args, value_parser};
use printable::messages;
use report::events::{EventsSummary, Machine, Near, Style, write_events_near};
use session::{Selection, Session, say_losses};
use sources::Recording;
use timeline::Vm;
use timeline::event_filter::{Condition, CpuSet, Filter};

pub(crate) use command::event_names::{check_names, no_event};

use crate::args::{EventsFormatArg, MemoryArgs, MethodArgs, NameArgs, RangeArgs};
use command::output;
use command::progress::Progress;
use command::verb::{Memory, Range, VerbArgs};

/// Arguments of `events`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope events trace.dat | less\n  \
    hyperscope events -e 'kvm:*' -e sched:sched_switch --cpu 0-1 trace.dat\n  \
    hyperscope events -e kvm:kvm_exit --where 'exit_reason == 12' trace.dat\n  \
    hyperscope events --where 'reason == EXIT_MSR' -B 2 -A 5 trace.dat   with events before and after\n  \
    hyperscope events --format jsonl host.dat guest.dat")]
pub(crate) struct EventsArgs {
    /// Recordings, merged by time
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// Only these events: SYSTEM:NAME, NAME or SYSTEM, with * and ?
    #[arg(short, long = "event", value_name = "EVENT")]
    pub(crate) events: Vec<String>,
    /// Only these CPUs, such as 0,2-3
    #[arg(long, value_name = "LIST", value_parser = CpuSet::parse)]
    pub(crate) cpu: Option<CpuSet>,
    /// Only events of these threads, separated by commas
    #[arg(long, value_name = "TID", value_delimiter = ',')]
    pub(crate) pid: Vec<u32>,
    /// Only events of this VM's vCPU threads, and of the VM's own recording; named as in exits
    #[arg(long, value_name = "VM")]
    pub(crate) vm: Option<String>,
    #[command(flatten)]
    pub(crate) names: NameArgs,
    /// Only events of the threads of these vCPUs, such as 0,2-3, and of guests' own recordings
    #[arg(long, value_name = "LIST", value_parser = CpuSet::parse)]
    pub(crate) vcpu: Option<CpuSet>,
    /// Only events whose field meets this condition: FIELD OP VALUE, with == != < <= > >= & ~;
    /// VALUE may be a printed name instead of its number, as in 'reason == EXIT_MSR'
    #[arg(long = "where", value_name = "CONDITION", value_parser = Condition::parse)]
    pub(crate) conditions: Vec<Condition>,
    /// Also N events of any kind before each match, with -- between groups; --cpu, --pid, --vm,
    /// --vcpu, --from and --to restrict them
    #[arg(short = 'B', long = "before", value_name = "N", value_parser = value_parser!(u32).range(..=MAX_NEAR))]
    pub(crate) before: Option<u32>,
    /// Also N events after each match
    #[arg(short = 'A', long = "after", value_name = "N", value_parser = value_parser!(u32).range(..=MAX_NEAR))]
    pub(crate) after: Option<u32>,
    /// Also N events before and after each match
    #[arg(short = 'C', long = "context", value_name = "N", value_parser = value_parser!(u32).range(..=MAX_NEAR))]
    pub(crate) context: Option<u32>,
    /// Print recorded fields instead of the kernel's text
    #[arg(long)]
    pub(crate) raw: bool,
    /// Print all events with the kernel's own format, as trace-cmd report -N does
    #[arg(long, conflicts_with = "raw")]
    pub(crate) numeric: bool,
    #[command(flatten)]
    pub(crate) method: MethodArgs,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: EventsFormatArg,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Maximum number of events around a match.
const MAX_NEAR: i64 = 100_000;

impl EventsArgs {
    /// The events to print around matches; none by default.
    pub(crate) fn near(&self) -> Option<Near> {
        let Self { before, after, context, .. } = self;
        let lines = |count: &Option<u32>| count.or(*context).map(|lines| lines as usize);
        let (before, after) = (lines(before), lines(after));
        let is_asked = before.is_some() || after.is_some();
        is_asked.then(|| Near { before: before.unwrap_or(0), after: after.unwrap_or(0) })
    }
}

impl VerbArgs for EventsArgs {
    fn memory(&self) -> Memory {
        Memory::Limits(self.memory)
    }

    fn range(&self) -> Range {
        self.range.into()
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self).map(|()| ExitCode::SUCCESS)
    }
}

fn run(args: &EventsArgs) -> anyhow::Result<()> {
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
    // On a terminal, lines (or their pager) and a progress bar would overwrite each other.
    let on_progress = |bytes| {
        if args.output.is_some() {
            progress.advance(bytes);
        }
    };
    let mut out = output::open(args.output.as_deref(), recordings)?;
    let wanted = (&filter, args.near());
    let summary = write_events_near(recordings, &machines, wanted, style, &mut out, &on_progress)
        .context("cannot write the events")?;
    progress.finish();
    out.complete()?;
    report(&summary, recordings);
    Ok(())
}

/// Reports on standard error what the printed lines lack.
pub(super) fn report(summary: &EventsSummary, recordings: &[Recording]) {
    let mut err = messages();
    for recording in recordings {
        for note in &recording.info().notes {
            let _ = writeln!(err, "hyperscope: {}: {note}", recording.path().display());
        }
    }
    for (name, count) in &summary.unprintable {
        let _ =
            writeln!(err, "hyperscope: {count} {name} printed raw: they have no usable print fmt");
    }
    drop(err);
    say_losses(recordings);
    let mut err = messages();
    if summary.printed == 0 {
        let _ = writeln!(
            err,
            "hyperscope: no event to print; hyperscope info shows the recorded events"
        );
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

/// Selects the threads of each machine: on a host, those that run the VM's vCPUs; in the VM itself,
/// all.
fn choose_threads(
    args: &EventsArgs,
    recordings: &[Recording],
    machines: &mut [Machine],
) -> anyhow::Result<()> {
    let pids: Option<HashSet<u32>> =
        (!args.pid.is_empty()).then(|| args.pid.iter().copied().collect());
    let are_chosen = args.vm.is_some() || args.vcpu.is_some();
    let vcpus = are_chosen.then(|| vcpu_threads(args, recordings, machines)).transpose()?;
    for (at, machine) in machines.iter_mut().enumerate() {
        let is_own = args.vm.as_ref().map_or(machine.level > 0, |vm| *vm == machine.name);
        let of_vm = vcpus.as_ref().filter(|_| !is_own);
        let of_vm = of_vm.map(|vcpus| vcpus.get(at).cloned().unwrap_or_default());
        machine.threads = match (pids.clone(), of_vm) {
            (Some(pids), Some(of_vm)) => Some(pids.intersection(&of_vm).copied().collect()),
            (pids, of_vm) => pids.or(of_vm),
        };
    }
    Ok(())
}

/// The threads that run the requested vCPUs, by recording.
fn vcpu_threads(
    args: &EventsArgs,
    recordings: &[Recording],
    machines: &[Machine],
) -> anyhow::Result<Vec<HashSet<u32>>> {
    let vms: Vec<_> = recordings.iter().map(|recording| find_vms(recording, &|_| ())).collect();
    let mut names: Vec<&str> = vms.iter().flatten().map(|vm| vm.name.as_str()).collect();
    let is_known =
        |vm: &str| names.contains(&vm) || machines.iter().any(|machine| machine.name == vm);
    if let Some(vm) = args.vm.as_deref().filter(|vm| !is_known(vm)) {
        names.sort_unstable();
        names.dedup();
        bail!("no VM has the name {vm}; use one of: {}", names.join(", "));
    }
    let threads = |vms: &Vec<Vm>| {
        let named =
            vms.iter().filter(|candidate| args.vm.as_ref().is_none_or(|vm| candidate.name == *vm));
        let vcpus = named.flat_map(|vm| &vm.vcpus);
        let wanted =
            vcpus.filter(|vcpu| args.vcpu.as_ref().is_none_or(|wanted| wanted.contains(vcpu.vcpu)));
        wanted.map(|vcpu| vcpu.thread).collect()
    };
    Ok(vms.iter().map(threads).collect())
}
