//! Ladders as tables.

use report::Table;

use super::{count, spread, times};
use crate::exits::ladder::{Ladder, Ladders, Rung};
use crate::render::{NONE, interval, plain};

/// A table for each kind, with its title.
pub(super) fn tables(of: &Ladders) -> Vec<(String, Table)> {
    let against = if of.is_cumulative { "the step before" } else { "nothing switched" };
    let titled = |ladder: &Ladder| {
        let title = format!("{} ({})\n", ladder.kind.name(), of.name);
        (title, table(ladder, against))
    };
    of.ladders.iter().map(titled).collect()
}

fn table(ladder: &Ladder, against: &str) -> Table {
    let cells = |of: fn(&Rung) -> String| ladder.steps.iter().map(of).collect();
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

/// What was not measured, and how steps were compared.
pub(super) fn notes(of: &Ladders) -> String {
    let steps = of.ladders.first().map(|ladder| ladder.steps.as_slice()).unwrap_or_default();
    let refused = steps.iter().filter_map(|rung| {
        let why = rung.not_measured.as_deref()?;
        Some(format!("not measured, {}: {}: {why}\n", of.name, rung.name))
    });
    let options = if of.is_cumulative {
        "each step keeps what those before it switched"
    } else {
        "one thing is switched at a time"
    };
    format!(
        "{}{}: {options}; {} operations a run, steps in an order from seed {}; differences of the same round,\n\
         Student's t, p for all steps of a ladder together (Holm).\n",
        refused.collect::<String>(),
        of.name,
        of.operations,
        of.seed
    )
}

/// All steps of all ladders.
pub(super) fn csv(all: &[Ladders]) -> Table {
    let rows: Vec<(&Ladders, &Ladder, &Rung)> = all
        .iter()
        .flat_map(|of| of.ladders.iter().map(move |ladder| (of, ladder)))
        .flat_map(|(of, ladder)| ladder.steps.iter().map(move |rung| (of, ladder, rung)))
        .collect();
    let of_rung = |of: fn(&Rung) -> String| rows.iter().map(|(_, _, rung)| of(rung)).collect();
    let number = |of: fn(&Rung) -> Option<f64>| {
        rows.iter().map(|(_, _, rung)| plain(of(rung))).collect::<Vec<String>>()
    };
    let mut table = Table::default();
    table.names("place", 0, rows.iter().map(|(of, ..)| of.name.clone()).collect());
    table.names("kind", 0, rows.iter().map(|(_, ladder, _)| ladder.kind.name().into()).collect());
    table.names("step", 0, of_rung(|rung| rung.name.clone()));
    table.numbers("mean_cycles", 0, number(|rung| Some(rung.cycles.as_ref()?.mean)));
    table.numbers("sd_cycles", 0, number(|rung| rung.cycles.as_ref()?.sd));
    table.numbers("relative_to_first", 0, number(|rung| rung.relative_to_first));
    table.numbers("difference_cycles", 0, number(|rung| Some(rung.difference_cycles?.mean)));
    table.numbers("difference_cycles_low", 0, number(|rung| rung.difference_cycles?.low));
    table.numbers("difference_cycles_high", 0, number(|rung| rung.difference_cycles?.high));
    table.numbers("p", 0, number(|rung| rung.p));
    table.names("not_measured", 0, of_rung(|rung| rung.not_measured.clone().unwrap_or_default()));
    table
}
