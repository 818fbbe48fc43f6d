//! The result of the exits report in one sentence: how many exits, what they cost, and which cost most.

use analyses::group::By;
use analyses::tally::Tally;
use printable::line;

use super::Source;
use super::columns::{self, Row, Whole};
use crate::column::Column;
use crate::greatest::greatest;
use crate::losses;
use crate::units::{counted, plural, share, time};

/// The sentence about some recordings.
pub(super) fn headline(sources: &[Source]) -> String {
    match sources {
        [source] => of_source(source),
        sources => {
            let recordings = plural(sources.len() as u64, "recording");
            let with_exits: Vec<&Source> =
                sources.iter().filter(|source| exits(&[source]) > 0).collect();
            match with_exits.as_slice() {
                [] => format!("{recordings}: no VM exits."),
                [source] => of_source(source),
                some => format!("{recordings}: {}.", result(some)),
            }
        }
    }
}

/// The sentence about one recording.
pub(super) fn of_source(source: &Source) -> String {
    let result =
        if exits(&[source]) == 0 { without_exits(source).to_owned() } else { result(&[source]) };
    format!("{}: {result}.", line(&source.path))
}

fn without_exits(source: &Source) -> &'static str {
    if !losses::notes(&source.exits.losses, 0).is_empty() {
        "no VM exits could be read"
    } else if source.of_guest {
        "recorded in a guest; the recording of its host contains its exits"
    } else {
        "no VM exits, because there are no kvm_exit events"
    }
}

/// How many exits some recordings have.
pub(super) fn exits(sources: &[&Source]) -> u64 {
    tallies(sources).map(|tally| tally.count).fold(0, u64::saturating_add)
}

fn tallies<'r>(sources: &[&'r Source]) -> impl Iterator<Item = &'r Tally> + use<'r> {
    let rows: Vec<_> = sources.iter().flat_map(|source| &source.exits.rows).collect();
    rows.into_iter().map(|row| &row.tally)
}

fn result(sources: &[&Source]) -> String {
    let (count, waiting) = (exits(sources), waiting(sources));
    let mut out = format!("{} made {}", who(sources), plural(count, "exit"));
    if let [source] = sources {
        out += &format!(" in {}", time(source.exits.span_ns, source.exits.nanoseconds));
    }
    let (rest, separator) = (count.saturating_sub(waiting), if waiting > 0 { ", " } else { "; " });
    if waiting > 0 {
        out += &match (rest, waiting) {
            (0, 1) => return out + ", a waiting exit",
            (0, _) => return out + ", all of them waiting exits",
            _ => format!("; {}", counted(waiting, "is a waiting exit", "are waiting exits")),
        };
    }
    let subject = match (waiting, rest) {
        (0, 1) => "it",
        (0, _) => "they",
        (_, 1) => "the other",
        _ => "the others",
    };
    out + separator + &handling(sources, (subject, rest == 1))
}

/// Exits by which guests wait.
fn waiting(sources: &[&Source]) -> u64 {
    let rows = sources.iter().flat_map(|source| &source.exits.rows);
    rows.filter(|row| row.waiting).map(|row| row.tally.count).fold(0, u64::saturating_add)
}

fn who(sources: &[&Source]) -> String {
    let vms: Vec<_> = sources.iter().flat_map(|source| &source.exits.vms).collect();
    let vcpus = vms.iter().map(|vm| vm.vcpus.len() as u64).sum();
    match vms.as_slice() {
        [] => "vCPUs".to_owned(),
        [vm] => format!("{} of {}", plural(vcpus, "vCPU"), line(&vm.name)),
        vms => format!("{} of {}", plural(vcpus, "vCPU"), plural(vms.len() as u64, "VM")),
    }
}

/// What handling the exits took that don't wait, and which of them took most.
fn handling(sources: &[&Source], (subject, is_singular): (&str, bool)) -> String {
    let ns = sources.iter().all(|source| source.exits.nanoseconds);
    let all: Vec<(&Source, Whole)> =
        sources.iter().map(|&source| (source, Whole::working(&source.exits))).collect();
    let timed = tallies(sources).any(|tally| tally.paired() > 0);
    if !timed || sources.iter().any(|source| source.exits.nanoseconds != ns) {
        return format!("how long {subject} took is unknown");
    }
    let is_cost = all.iter().all(|(_, totals)| totals.cost_ns.is_some());
    let weight = |totals: &Whole| if is_cost { totals.weight_ns() } else { totals.time_ns };
    let sum_ns = all.iter().map(|(_, totals)| weight(totals)).fold(0, u64::saturating_add);
    let verb = match (is_cost, is_singular) {
        (true, true) => "costs",
        (true, false) => "cost",
        (false, _) => "took",
    };
    let unit = if is_cost { " of CPU time" } else { "" };
    let mut out = format!(
        "{subject} {verb} {}{unit} ({} of vCPU time)",
        time(sum_ns, ns),
        share(sum_ns, vcpu_time_ns(sources))
    );
    if let Some((name, ns)) = most(&all, &weight).filter(|_| sum_ns > 0) {
        out += &format!(", {name} most ({})", share(ns, sum_ns));
    }
    out
}

/// Time of vCPUs as far as it is divided by exits and entries.
fn vcpu_time_ns(sources: &[&Source]) -> u64 {
    let time_ns = |tally: &Tally| {
        let host_ns = tally.durations.sum().saturating_add(tally.before_exit_ns);
        host_ns.saturating_add(tally.guest_ns)
    };
    tallies(sources).map(time_ns).fold(0, u64::saturating_add)
}

/// The group of exits that took most, by its name; `None` if it has none.
fn most(all: &[(&Source, Whole)], weight: &dyn Fn(&Whole) -> u64) -> Option<(String, u64)> {
    let rows = all.iter().flat_map(|(source, totals)| {
        source.exits.rows.iter().filter(|row| !row.waiting).map(move |row| {
            let row_totals = Whole::from_tally(&row.tally, &source.exits.recorded);
            (weight(&row_totals), (*source, row, *totals))
        })
    });
    let (ns, (source, row, totals)) = greatest(rows)?;
    let columns = columns::columns(&source.exits.by);
    let several_vms = all.iter().map(|(source, _)| source.exits.vms.len()).sum::<usize>() > 1;
    let row = Row::new(source, row, totals);
    let name = name_of_row(&columns, &source.exits.by, &row, several_vms);
    (!name.is_empty()).then_some((name, ns))
}

fn name_of_row<'r>(
    columns: &[Column<Row<'r>>],
    by: &[By],
    row: &Row<'r>,
    several_vms: bool,
) -> String {
    let says = |by: &&By| match by {
        By::Vm => several_vms,
        By::Level => row.is_nested(),
        _ => true,
    };
    let cells = by.iter().filter(says).filter_map(|&by| {
        let cell = columns::named_by(columns, by)?.drawn(row, "");
        let cell = line(&cell).into_owned();
        Some(match by {
            By::Vcpu if !cell.is_empty() => format!("vCPU {cell}"),
            _ => cell,
        })
    });
    let cells: Vec<String> = cells.filter(|cell| !cell.is_empty()).collect();
    cells.join(" ")
}
