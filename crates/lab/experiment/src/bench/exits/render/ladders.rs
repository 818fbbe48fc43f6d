//! Ladders as tables.

use std::collections::BTreeMap;

use report::Table;

use super::{count, spread, times};
use crate::bench::exits::counts::ReasonShare;
use crate::bench::exits::ladder::{Ladder, Ladders, Rung};
use crate::bench::render::{NONE, interval, number, plain};

/// A table for each kind, with its title.
pub(super) fn tables(ladders: &Ladders) -> Vec<(String, Table)> {
    let against = if ladders.is_cumulative { "the step before" } else { "nothing switched" };
    let titled = |ladder: &Ladder| {
        let title = format!("{} ({})\n", ladder.kind.name(), ladders.name);
        let exits = exits(ladder).map(|exits| {
            (
                format!("exits of level 1 for each {} ({})\n", ladder.kind.name(), ladders.name),
                exits,
            )
        });
        std::iter::once((title, table(ladder, against))).chain(exits)
    };
    ladders.ladders.iter().flat_map(titled).collect()
}

/// Exits of steps by reason, most frequent reasons first. Reasons below one exit per hundred operations in all steps
/// appear only in the sum. `None` if nothing was counted.
fn exits(ladder: &Ladder) -> Option<Table> {
    let counted: Vec<&[ReasonShare]> =
        ladder.steps.iter().map(|rung| rung.exits.as_deref().unwrap_or_default()).collect();
    let mut most: BTreeMap<&str, f64> = BTreeMap::new();
    for share in counted.iter().copied().flatten() {
        let max = most.entry(&share.reason).or_default();
        *max = max.max(share.per_operation);
    }
    let mut reasons: Vec<(&str, f64)> = most.into_iter().filter(|&(_, max)| max >= 0.01).collect();
    reasons.sort_by(|a, b| b.1.total_cmp(&a.1));
    if counted.iter().all(|shares| shares.is_empty()) {
        return None;
    }
    let mut table = Table::default();
    table.names("step", 0, ladder.steps.iter().map(|rung| rung.name.clone()).collect());
    table.numbers("exits", 0, ladder.steps.iter().map(|rung| number(sum(rung), 2)).collect());
    for (at, (reason, _)) in reasons.into_iter().enumerate() {
        let cell = |shares: &&[ReasonShare]| {
            let share = shares.iter().find(|share| share.reason == reason);
            number(share.map(|share| share.per_operation), 2)
        };
        let rank = u8::try_from(at / 4).unwrap_or(u8::MAX);
        table.numbers(reason, rank, counted.iter().map(cell).collect());
    }
    Some(table)
}

/// Exits per operation, of all reasons.
fn sum(rung: &Rung) -> Option<f64> {
    let exits = rung.exits.as_ref()?;
    Some(exits.iter().map(|share| share.per_operation).sum())
}

fn table(ladder: &Ladder, against: &str) -> Table {
    let cells = |cell: fn(&Rung) -> String| ladder.steps.iter().map(cell).collect();
    let mut table = Table::default();
    table.names("step", 0, cells(|rung| rung.name.clone()));
    table.numbers("cycles ± sd", 0, cells(|rung| spread(rung.cycles.as_ref())));
    table.numbers("× nothing", 0, cells(|rung| times(rung.relative_to_first)));
    let title = format!("more than {against} [95%]");
    table.numbers(&title, 0, cells(|rung| interval(rung.difference_cycles, count)));
    table.numbers("p", 2, cells(|rung| rung.p.map_or(NONE.into(), chance)));
    table.names("matters", 0, cells(|rung| verdict(rung).into()));
    table
}

fn chance(p: f64) -> String {
    if p < 0.0001 { "<0.0001".into() } else { format!("{p:.4}") }
}

fn verdict(rung: &Rung) -> &'static str {
    match rung.is_significant {
        Some(true) => "yes",
        Some(false) => "not significant",
        None => "",
    }
}

/// Explains missing measurements, and how steps were compared.
pub(super) fn notes(ladders: &Ladders) -> String {
    let steps = ladders.ladders.first().map(|ladder| ladder.steps.as_slice()).unwrap_or_default();
    let refused = steps.iter().filter_map(|rung| {
        let why = rung.not_measured.as_deref()?;
        Some(format!("not measured, {}: {}: {why}\n", ladders.name, rung.name))
    });
    let options = if ladders.is_cumulative {
        "each step keeps earlier switches"
    } else {
        "one switch at a time"
    };
    format!(
        "{}{}: {options}; {} operations a run, steps in an order from seed {}; differences of the same round,\n\
         Student's t, p for all steps of a ladder together (Holm).\n",
        refused.collect::<String>(),
        ladders.name,
        ladders.operations,
        ladders.seed
    )
}

/// All steps of all ladders.
pub(super) fn csv(all: &[Ladders]) -> Table {
    let rows: Vec<(&Ladders, &Ladder, &Rung)> = all
        .iter()
        .flat_map(|ladders| ladders.ladders.iter().map(move |ladder| (ladders, ladder)))
        .flat_map(|(ladders, ladder)| ladder.steps.iter().map(move |rung| (ladders, ladder, rung)))
        .collect();
    let of_rung = |cell: fn(&Rung) -> String| rows.iter().map(|(_, _, rung)| cell(rung)).collect();
    let number = |value: fn(&Rung) -> Option<f64>| {
        rows.iter().map(|(_, _, rung)| plain(value(rung))).collect::<Vec<String>>()
    };
    let mut table = Table::default();
    table.names("place", 0, rows.iter().map(|(ladders, ..)| ladders.name.clone()).collect());
    table.names("kind", 0, rows.iter().map(|(_, ladder, _)| ladder.kind.name().into()).collect());
    table.names("step", 0, of_rung(|rung| rung.name.clone()));
    table.numbers("mean_cycles", 0, number(|rung| Some(rung.cycles.as_ref()?.mean)));
    table.numbers("sd_cycles", 0, number(|rung| rung.cycles.as_ref()?.sd));
    table.numbers("relative_to_first", 0, number(|rung| rung.relative_to_first));
    table.numbers("difference_cycles", 0, number(|rung| Some(rung.difference_cycles?.mean)));
    table.numbers("difference_cycles_low", 0, number(|rung| rung.difference_cycles?.low));
    table.numbers("difference_cycles_high", 0, number(|rung| rung.difference_cycles?.high));
    table.numbers("p", 0, number(|rung| rung.p));
    table.numbers("exits_of_level_1", 0, number(sum));
    table.names("exits_by_reason", 0, of_rung(by_reason));
    table.names("not_measured", 0, of_rung(|rung| rung.not_measured.clone().unwrap_or_default()));
    table
}

/// `vmload=2.00 vmrun=1.00`.
fn by_reason(rung: &Rung) -> String {
    let shares = rung.exits.iter().flatten();
    let shares = shares.map(|share| format!("{}={:.3}", share.reason, share.per_operation));
    shares.collect::<Vec<_>>().join(" ")
}
