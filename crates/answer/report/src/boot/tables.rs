//! The tables of a boot: a line a phase, a line for each of the slowest initcalls.

use analyses::boot::{BootedMachine, EventCost, HostCost, Initcall, Phase, PhaseKind, TracingCost};
use printable::line;

use super::{BootReport, begin_ns, call_name, goes_down, slowest};
use crate::losses;
use crate::table::Table;
use crate::units::{count, plural, share, time, unit};

/// Letters of a phase's name that tables show.
const MOST_NAME: usize = 28;

pub(super) fn text(report: &BootReport, width: Option<usize>) -> String {
    let mut out: String =
        report.sources.iter().map(|source| format!("{}\n", line(source))).collect();
    report.alignment.iter().for_each(|text| out += &format!("{}\n", line(text)));
    if report.boot.machines.is_empty() {
        return out
            + "\nno machine boots or goes down here: it takes events of a guest's kernel from its \
               command line on (trace_event=initcall:*), or a host's exits of it\n";
    }
    for machine in &report.boot.machines {
        out += &machine_text(report, machine, width);
    }
    let notes = report.boot.losses.iter().flat_map(|one| losses::notes(one, 0));
    out + &notes.map(|note| format!("{note}\n")).collect::<String>()
}

fn machine_text(report: &BootReport, machine: &BootedMachine, width: Option<usize>) -> String {
    let mut out = format!("\n{}: {}\n\n", line(report.name(machine)), line(&summary(machine)));
    let (drawn, mut left_out) = phases(machine).draw(width);
    out += &drawn;
    let all = slowest(machine);
    if !all.is_empty() && report.top > 0 {
        let shown: Vec<&Initcall> = all.iter().copied().take(report.top).collect();
        let known = left_out.clone();
        let (drawn, more) = initcalls(machine, &shown).draw(width);
        out += &format!("\nslowest of {} initcalls\n{drawn}", count(all.len() as u64));
        left_out.extend(more.into_iter().filter(|title| !known.contains(title)));
    }
    for note in notes(machine) {
        out += &format!("{note}\n");
    }
    if !left_out.is_empty() {
        out += &format!("left out for width: {}; csv and json have all\n", left_out.join(", "));
    }
    out
}

/// What came when, in a sentence.
pub(super) fn summary(machine: &BootedMachine) -> String {
    let (ns, begin_ns) = (machine.nanoseconds, begin_ns(machine));
    let since = |at_ns: u64| time(at_ns.saturating_sub(begin_ns), ns);
    let begins = match machine.phases.first().map(|phase| phase.kind) {
        Some(PhaseKind::Before) => "its first entry",
        _ => "its first event",
    };
    let mut parts = Vec::new();
    if let Some((program, at_ns)) = &machine.init {
        parts.push(format!("{} from {begins} to {program}", since(*at_ns)));
    }
    if let Some((text, at_ns)) = &machine.mark {
        parts.push(format!("{} to the mark {text:?}", since(*at_ns)));
    }
    if goes_down(machine) {
        let down = machine
            .phases
            .iter()
            .filter(|one| matches!(one.kind, PhaseKind::Shutdown | PhaseKind::After));
        let sum_ns = down.map(Phase::duration_ns).fold(0, u64::saturating_add);
        parts.push(format!("{} on its way down", time(sum_ns, ns)));
    }
    let end_ns = machine.phases.last().map_or(begin_ns, |phase| phase.to_ns);
    parts.push(format!("{} in all", since(end_ns)));
    parts.join(", ")
}

fn notes(machine: &BootedMachine) -> Vec<String> {
    let mut notes = Vec::new();
    let sum = |of: &dyn Fn(&Phase) -> u64| machine.phases.iter().map(of).sum::<u64>();
    let of_guest =
        |of: fn(&analyses::boot::InPhase) -> u64| sum(&|phase| phase.guest.as_ref().map_or(0, of));
    let unfinished = of_guest(|guest| guest.unfinished);
    if unfinished > 0 {
        notes.push(format!("{} initcalls have no end", count(unfinished)));
    }
    if machine.strays > 0 {
        notes.push(format!("{} initcalls have no beginning", count(machine.strays)));
    }
    let (losses, lost) = (of_guest(|one| one.weight.losses), of_guest(|one| one.weight.lost));
    if losses > 0 {
        notes.push(format!(
            "the guest's kernel dropped events at {} places, {} of them counted: a larger \
             trace_buf_size keeps more",
            count(losses),
            count(lost)
        ));
    }
    if machine.damaged > 0 {
        notes.push(format!("{} of the guest can't be read", plural(machine.damaged, "page")));
    }
    if machine.phases.iter().any(|phase| phase.host.is_some()) {
        notes.push(
            "exit time: of all vCPUs, without exits that wait for work; kernel, user, off CPU: of \
             all exits"
                .into(),
        );
    }
    notes.extend(machine.event_cost.as_ref().map(|cost| tracing_note(machine, cost)));
    if machine.initcalls.is_empty() && machine.guest.is_none() {
        notes.push("initcall levels need a recording of the guest: trace_event=initcall:*".into());
    }
    notes
}

/// What events have cost, and how sure that is.
fn tracing_note(machine: &BootedMachine, cost: &EventCost) -> String {
    let events =
        machine.phases.iter().filter_map(|phase| Some(phase.guest.as_ref()?.weight.events));
    let all = cost.of(events.fold(0, u64::saturating_add));
    let one = |ps: i64| time(u64::try_from(ps).unwrap_or(0) / 1000, true);
    format!(
        "tracing: events times {}, what one cost this guest afterwards ({} to {} with 95% confidence, \
         {} rounds of {}); {} to {} in all",
        one(cost.median_ps),
        one(cost.low_ps),
        one(cost.high_ps),
        cost.rounds,
        cost.event,
        time(all.low_ns, true),
        time(all.high_ns, true)
    )
}

/// A column of what phases cost the host; `None` where it is not known.
type OfHost = (&'static str, u8, fn(&HostCost) -> Option<u64>);

const OF_HOST: [OfHost; 7] = [
    ("exits", 0, |cost| Some(cost.exits)),
    ("exit time", 0, |cost| Some(cost.working_ns())),
    ("waiting", 2, |cost| Some(cost.waiting_ns)),
    ("kernel", 1, |cost| cost.parts.kernel_ns),
    ("user", 1, user_ns),
    ("off CPU", 2, |cost| cost.parts.off_cpu_ns),
    ("not split", 1, |cost| Some(cost.parts.not_split_ns).filter(|&ns| ns > 0)),
];

/// In the VMM, with the way back where that is not told apart.
fn user_ns(cost: &HostCost) -> Option<u64> {
    cost.parts.user_ns.or(cost.parts.user_and_return_ns)
}

fn phases(machine: &BootedMachine) -> Table {
    let ns = machine.nanoseconds;
    let all = &machine.phases;
    let whole_ns = all.iter().map(Phase::duration_ns).fold(0, u64::saturating_add);
    let cells = |of: &dyn Fn(&Phase) -> String, sum: String| -> Vec<String> {
        all.iter().map(of).chain([sum]).collect()
    };
    let mut table = Table::default();
    table.names("phase", 0, cells(&label, "all".into()));
    let begin_ns = begin_ns(machine);
    let since = |phase: &Phase| time(phase.from_ns.saturating_sub(begin_ns), ns);
    table.numbers("begins", 2, cells(&since, String::new()));
    table.numbers("lasts", 0, cells(&|one| time(one.duration_ns(), ns), time(whole_ns, ns)));
    let part = |one: &Phase| share(one.duration_ns(), whole_ns);
    table.numbers("share", 3, cells(&part, String::new()));
    if machine.guest.is_some() {
        add_guest(&mut table, machine);
    }
    add_host(&mut table, machine);
    table
}

fn add_host(table: &mut Table, machine: &BootedMachine) {
    let costs: Vec<Option<&HostCost>> =
        machine.phases.iter().map(|phase| phase.host.as_ref()).collect();
    for (title, rank, of) in OF_HOST {
        let numbers: Vec<Option<u64>> = costs.iter().map(|cost| cost.and_then(of)).collect();
        if numbers.iter().all(Option::is_none) {
            continue;
        }
        let shown = |number: u64| match title {
            "exits" => count(number),
            _ => time(number, machine.nanoseconds),
        };
        let sum = numbers.iter().flatten().copied().fold(0, u64::saturating_add);
        let cell = |number: Option<u64>| number.map_or_else(String::new, shown);
        table.numbers(title, rank, numbers.into_iter().map(cell).chain([shown(sum)]).collect());
    }
    if costs.iter().any(Option::is_some) {
        let cells = costs.iter().map(|cost| cost.map_or_else(String::new, most));
        table.numbers("most time in", 3, cells.collect());
    }
}

/// The reason whose exits took longest, those that wait for work left out.
fn most(cost: &HostCost) -> String {
    let first = cost.reasons.iter().find(|one| !one.waiting);
    first.map_or_else(String::new, |one| format!("{} {}", one.reason, count(one.exits)))
}

fn add_guest(table: &mut Table, machine: &BootedMachine) {
    let ns = machine.nanoseconds;
    let of_guest = |of: &dyn Fn(&analyses::boot::InPhase) -> u64, shown: &dyn Fn(u64) -> String| {
        let number = |phase: &Phase| phase.guest.as_ref().map(of);
        let sum = machine.phases.iter().filter_map(number).fold(0, u64::saturating_add);
        let cell = |phase: &Phase| match number(phase) {
            None | Some(0) => String::new(),
            Some(number) => shown(number),
        };
        machine.phases.iter().map(cell).chain([shown(sum)]).collect::<Vec<_>>()
    };
    table.numbers("initcalls", 1, of_guest(&|one| one.initcalls, &count));
    table.numbers("in them", 2, of_guest(&|one| one.initcalls_ns, &|value| time(value, ns)));
    table.numbers("modules", 3, of_guest(&|one| one.modules, &count));
    table.numbers("forks", 4, of_guest(&|one| one.forks, &count));
    table.numbers("execs", 4, of_guest(&|one| one.execs, &count));
    table.numbers("events", 2, of_guest(&|one| one.weight.events, &count));
    table.numbers("bytes", 3, of_guest(&|one| one.weight.bytes, &count));
    if let Some(cost) = &machine.event_cost {
        // Nanoseconds of the guest's own, whatever its recording has.
        let of_phase = |one: &analyses::boot::InPhase| cost.of(one.weight.events).ns;
        table.numbers("tracing", 1, of_guest(&of_phase, &|value| time(value, true)));
    }
}

/// What a line of the table is called.
pub(super) fn label(phase: &Phase) -> String {
    let name = match phase.kind {
        // What has no boot before it begins with the recording.
        PhaseKind::Running if phase.name != "recorded" => format!("after {:?}", phase.name),
        PhaseKind::Shutdown => format!("down: {}", phase.name),
        _ => phase.name.clone(),
    };
    match name.char_indices().nth(MOST_NAME) {
        Some((at, _)) => format!("{}…", name.get(..at).unwrap_or_default()),
        None => name,
    }
}

fn initcalls(machine: &BootedMachine, shown: &[&Initcall]) -> Table {
    let ns = machine.nanoseconds;
    let cells = |of: &dyn Fn(&Initcall) -> String| shown.iter().map(|one| of(one)).collect();
    let optional = |text: &Option<String>| text.clone().unwrap_or_default();
    let begin_ns = begin_ns(machine);
    let mut table = Table::default();
    table.names("initcall", 0, cells(&call_name));
    table.names("of", 2, cells(&|one| optional(&one.module)));
    table.names(
        "level",
        1,
        cells(&|one| match one.is_loaded {
            true => "module".into(),
            false => optional(&one.level),
        }),
    );
    table.names("section", 3, cells(&|one| optional(&one.section)));
    table.numbers("begins", 2, cells(&|one| time(one.from_ns.saturating_sub(begin_ns), ns)));
    let lasts = |one: &Initcall| one.duration_ns().map_or("no end".into(), |took| time(took, ns));
    table.numbers("lasts", 0, cells(&lasts));
    if machine.host.is_some() {
        let of_host = |of: &dyn Fn(&HostCost) -> String| -> Vec<String> {
            cells(&|one| one.host.as_ref().map_or_else(String::new, of))
        };
        table.numbers("exits", 0, of_host(&|cost| count(cost.exits)));
        table.numbers("exit time", 1, of_host(&|cost| time(cost.working_ns(), ns)));
        table.numbers("most time in", 3, of_host(&most));
    }
    let result = |one: &Initcall| one.result.map_or_else(String::new, |result| result.to_string());
    table.numbers("returned", 4, cells(&result));
    table
}

/// Phases and initcalls as rows of one table.
pub(super) fn csv(report: &BootReport) -> Table {
    let rows: Vec<Row<'_>> =
        report.boot.machines.iter().flat_map(|one| rows(report, one)).collect();
    let ns = report.boot.machines.iter().all(|one| one.nanoseconds);
    let unit = unit(ns);
    let mut table = Table::default();
    let mut add = |title: &str, of: &dyn Fn(&Row<'_>) -> Option<String>| {
        table.names(title, 0, rows.iter().map(|row| of(row).unwrap_or_default()).collect());
    };
    let number = |value: u64| Some(value.to_string());
    add("machine", &|row| Some(row.machine.to_owned()));
    add("kind", &|row| Some(row.kind.to_owned()));
    add("name", &|row| Some(row.name.clone()));
    add("level", &|row| row.call?.level.clone());
    add("section", &|row| row.call?.section.clone());
    add("module", &|row| row.call?.module.clone());
    add(&format!("since_begin_{unit}"), &|row| number(row.since_ns));
    add(&format!("duration_{unit}"), &|row| number(row.duration_ns?));
    add("result", &|row| Some(row.call?.result?.to_string()));
    add("initcalls", &|row| number(row.phase?.guest.as_ref()?.initcalls));
    add(&format!("initcalls_{unit}"), &|row| number(row.phase?.guest.as_ref()?.initcalls_ns));
    add("forks", &|row| number(row.phase?.guest.as_ref()?.forks));
    add("execs", &|row| number(row.phase?.guest.as_ref()?.execs));
    add("modules", &|row| number(row.phase?.guest.as_ref()?.modules));
    add("events", &|row| number(row.weight?.events));
    add("event_bytes", &|row| number(row.weight?.bytes));
    add("tracing_ns", &|row| number(row.tracing?.ns));
    add("tracing_low_ns", &|row| number(row.tracing?.low_ns));
    add("tracing_high_ns", &|row| number(row.tracing?.high_ns));
    add("exits", &|row| number(row.host?.exits));
    add(&format!("exit_time_{unit}"), &|row| number(row.host?.time_ns));
    add(&format!("kernel_{unit}"), &|row| number(row.host?.parts.kernel_ns?));
    add(&format!("user_{unit}"), &|row| number(user_ns(row.host?)?));
    add(&format!("off_cpu_{unit}"), &|row| number(row.host?.parts.off_cpu_ns?));
    add(&format!("halt_poll_{unit}"), &|row| number(row.host?.parts.halt_poll_ns?));
    add(&format!("not_split_{unit}"), &|row| number(row.host?.parts.not_split_ns));
    table
}

struct Row<'r> {
    machine: &'r str,
    kind: &'static str,
    name: String,
    since_ns: u64,
    duration_ns: Option<u64>,
    phase: Option<&'r Phase>,
    call: Option<&'r Initcall>,
    weight: Option<&'r analyses::boot::Weight>,
    tracing: Option<TracingCost>,
    host: Option<&'r HostCost>,
}

fn rows<'r>(report: &'r BootReport, machine: &'r BootedMachine) -> Vec<Row<'r>> {
    let begin_ns = begin_ns(machine);
    let tracing = |weight: Option<&analyses::boot::Weight>| {
        Some(machine.event_cost.as_ref()?.of(weight?.events))
    };
    let of_phase = |phase: &'r Phase| Row {
        machine: report.name(machine),
        kind: phase.kind.name(),
        name: phase.name.clone(),
        since_ns: phase.from_ns.saturating_sub(begin_ns),
        duration_ns: Some(phase.duration_ns()),
        phase: Some(phase),
        call: None,
        weight: phase.guest.as_ref().map(|guest| &guest.weight),
        tracing: tracing(phase.guest.as_ref().map(|guest| &guest.weight)),
        host: phase.host.as_ref(),
    };
    let of_call = |call: &'r Initcall| Row {
        machine: report.name(machine),
        kind: "initcall",
        name: call_name(call),
        since_ns: call.from_ns.saturating_sub(begin_ns),
        duration_ns: call.duration_ns(),
        phase: None,
        call: Some(call),
        weight: call.weight.as_ref(),
        tracing: tracing(call.weight.as_ref()),
        host: call.host.as_ref(),
    };
    let phases = machine.phases.iter().map(of_phase);
    phases.chain(machine.initcalls.iter().map(of_call)).collect()
}
