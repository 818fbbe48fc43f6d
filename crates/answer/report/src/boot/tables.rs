//! The tables of a boot: one line per phase, and one for each of the slowest initcalls.

use analyses::boot::{BootedMachine, EventCost, Phase, PhaseKind};
use printable::line;

use super::columns::{INITCALLS, PHASES, columns};
use super::lines::{Line, initcalls, label, phases};
use super::{BootReport, begin_ns, goes_down, slowest};
use crate::column;
use crate::greatest::greatest;
use crate::losses;
use crate::table::Table;
use crate::units::{counted, plural, time};

/// The machine that took longest, with its longest phase.
pub(super) fn headline(report: &BootReport) -> String {
    let machines = &report.boot.machines;
    let lasted = |machine: &BootedMachine| {
        let end_ns = machine.phases.last().map_or(0, |phase| phase.to_ns);
        end_ns.saturating_sub(begin_ns(machine))
    };
    let slowest = greatest(machines.iter().map(|machine| (lasted(machine), machine)));
    let Some((_, machine)) = slowest else {
        return "No machine boots or shuts down in this recording.".to_owned();
    };
    let name = line(report.name(machine)).into_owned();
    let result = line(&summary(machine)).into_owned();
    let result = match machines.len() {
        1 => format!("{name}: {result}"),
        number => {
            format!("{}, {name} longest: {result}", plural(number as u64, "machine"))
        }
    };
    format!("{result}{}.", longest_phase(machine))
}

/// The longest phase of a boot, or of a shutdown if that is all there is.
fn longest_phase(machine: &BootedMachine) -> String {
    let counts = |phase: &&Phase| !matches!(phase.kind, PhaseKind::Running | PhaseKind::After);
    let phases = machine.phases.iter().filter(counts);
    let longest = greatest(phases.map(|phase| (phase.duration_ns(), phase)));
    longest.map_or_else(
        || "; no phase of a boot or shutdown was seen".to_owned(),
        |(ns, phase)| {
            let lasts = time(ns, machine.nanoseconds);
            format!("; the longest phase is {} ({lasts})", line(&label(phase)))
        },
    )
}

/// The tables of all machines.
pub(super) fn tables(report: &BootReport, width: Option<usize>) -> String {
    let mut out: String =
        report.sources.iter().map(|source| format!("{}\n", line(source))).collect();
    report.alignment.iter().for_each(|text| out += &format!("{}\n", line(text)));
    if report.boot.machines.is_empty() {
        out += "Record the guest's kernel from its command line on (trace_event=initcall:*), or its exits on the host.\n";
    }
    for machine in &report.boot.machines {
        out += &machine_text(report, machine, width);
    }
    let notes = report.boot.losses.iter().flat_map(|losses| losses::notes(losses, 0));
    out + &notes.map(|note| format!("{note}\n")).collect::<String>()
}

fn machine_text(report: &BootReport, machine: &BootedMachine, width: Option<usize>) -> String {
    let mut out = "\n".to_owned();
    if report.boot.machines.len() > 1 {
        out += &format!("{}: {}\n\n", line(report.name(machine)), line(&summary(machine)));
    }
    let (drawn, mut left_out) = table(PHASES, &phases(report, machine)).draw(width);
    out += &drawn;
    let all = slowest(machine);
    if !all.is_empty() && report.top > 0 {
        let shown = all.iter().copied().take(report.top);
        let known = left_out.clone();
        let (drawn, more) = table(INITCALLS, &initcalls(report, machine, shown)).draw(width);
        out += &format!("\nslowest of {}\n{drawn}", plural(all.len() as u64, "initcall"));
        left_out.extend(more.into_iter().filter(|title| !known.contains(title)));
    }
    for note in notes(machine) {
        out += &format!("{note}\n");
    }
    if !left_out.is_empty() {
        out +=
            &format!("hidden to fit the width: {}; csv and json show all\n", left_out.join(", "));
    }
    out
}

/// The course of events, in a sentence.
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
            .filter(|phase| matches!(phase.kind, PhaseKind::Shutdown | PhaseKind::After));
        let sum_ns = down.map(Phase::duration_ns).fold(0, u64::saturating_add);
        parts.push(format!("{} shutting down", time(sum_ns, ns)));
    }
    let end_ns = machine.phases.last().map_or(begin_ns, |phase| phase.to_ns);
    parts.push(format!("{} in all", since(end_ns)));
    parts.join(", ")
}

fn notes(machine: &BootedMachine) -> Vec<String> {
    let mut notes = Vec::new();
    let sum = |value_of: &dyn Fn(&Phase) -> u64| machine.phases.iter().map(value_of).sum::<u64>();
    let of_guest = |value_of: fn(&analyses::boot::InPhase) -> u64| {
        sum(&|phase| phase.guest.as_ref().map_or(0, value_of))
    };
    let unfinished = of_guest(|guest| guest.unfinished);
    if unfinished > 0 {
        notes.push(counted(unfinished, "initcall has", "initcalls have") + " no end");
    }
    if machine.strays > 0 {
        notes.push(counted(machine.strays, "initcall has", "initcalls have") + " no beginning");
    }
    let (losses, lost) =
        (of_guest(|guest| guest.weight.losses), of_guest(|guest| guest.weight.lost));
    if losses > 0 {
        notes.push(format!(
            "the guest's kernel dropped events at {}, {} counted: increase trace_buf_size to keep more",
            plural(losses, "place"),
            plural(lost, "event")
        ));
    }
    if machine.damaged > 0 {
        notes.push(format!("{} of the guest cannot be read", plural(machine.damaged, "page")));
    }
    notes.extend(machine.event_cost.as_ref().map(|cost| tracing_note(machine, cost)));
    if machine.initcalls.is_empty() && machine.guest.is_none() {
        notes.push(
            "initcall levels need a recording of the guest: boot it with trace_event=initcall:*"
                .into(),
        );
    }
    notes
}

/// Cost of events, with its uncertainty.
fn tracing_note(machine: &BootedMachine, cost: &EventCost) -> String {
    let events =
        machine.phases.iter().filter_map(|phase| Some(phase.guest.as_ref()?.weight.events));
    let all = cost.cost_of(events.fold(0, u64::saturating_add));
    let time_of_ps = |ps: i64| time(u64::try_from(ps).unwrap_or(0) / 1000, true);
    format!(
        "tracing: number of events times {}, the cost per event measured in this guest afterwards ({} to {} with 95% confidence, \
         {} rounds of {}); {} to {} in total",
        time_of_ps(cost.median_ps),
        time_of_ps(cost.low_ps),
        time_of_ps(cost.high_ps),
        cost.rounds,
        cost.event,
        time(all.low_ns, true),
        time(all.high_ns, true)
    )
}

fn table(name: &'static str, lines: &[Line<'_>]) -> Table {
    let mut table = Table::default();
    column::draw(&columns(), &mut table, name, lines);
    table
}

/// Phases and initcalls as rows of one table.
pub(super) fn csv(report: &BootReport) -> Table {
    let of_machine = |machine| {
        let phases = phases(report, machine).into_iter().filter(|line| line.kind.is_some());
        phases.chain(initcalls(report, machine, &machine.initcalls)).collect::<Vec<_>>()
    };
    let lines: Vec<Line<'_>> = report.boot.machines.iter().flat_map(of_machine).collect();
    let mut in_ns: Vec<bool> =
        report.boot.machines.iter().map(|machine| machine.nanoseconds).collect();
    in_ns.dedup();
    if in_ns.is_empty() {
        in_ns.push(true);
    }
    column::csv(&columns(), &lines, &in_ns)
}
