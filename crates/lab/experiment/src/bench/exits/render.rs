//! The outcome as tables, JSON and CSV.

mod ladders;

use lab::Accelerator;
use labguest::exitcost::Kind;
use report::{Report, Table, plural};

use crate::bench::exits::outcome::{MeasuredSystem, Outcome, Row, Spread};
use crate::bench::render::{NONE, draw, number, plain};

impl Report for Outcome {
    fn headline(&self) -> String {
        match (self.places.len(), self.ablations.len()) {
            (0, 0) => "Nothing was measured.".to_owned(),
            (0, machines) => format!("Exits on {}.", plural(machines as u64, "machine")),
            (systems, _) => format!("Exits on {}.", plural(systems as u64, "system")),
        }
    }

    fn tables(&self, width: Option<usize>) -> String {
        let tables = match self.places.as_slice() {
            [] => self.ablations.iter().flat_map(ladders::tables).collect(),
            [place] => vec![(String::new(), place_table(place))],
            places => vec![(String::new(), levels(places))],
        };
        let mut text = String::new();
        for (title, table) in tables {
            text.push_str(&title);
            text.push_str(&draw(&table, width));
        }
        text.push_str(&self.notes());
        text
    }

    fn document(&self) -> impl serde::Serialize {
        self
    }

    fn csv(&self) -> Table {
        if self.places.is_empty() {
            return ladders::csv(&self.ablations);
        }
        let rows: Vec<(&MeasuredSystem, &Row)> = self
            .places
            .iter()
            .flat_map(|place| place.rows.iter().map(move |row| (place, row)))
            .collect();
        let cells = |cell: fn(&MeasuredSystem, &Row) -> String| {
            rows.iter().map(|(place, row)| cell(place, row)).collect()
        };
        let mut table = Table::default();
        table.names("place", 0, cells(|place, _| place.name.clone()));
        table.names("kind", 0, cells(|_, row| row.kind.name().into()));
        table.names(
            "handled_by",
            0,
            cells(|_, row| row.handled_by.map_or("", |by| by.name()).into()),
        );
        table.numbers("mean_cycles", 0, cells(|_, row| plain(row.mean())));
        let sd =
            |_: &MeasuredSystem, row: &Row| plain(row.cycles.as_ref().and_then(|cycles| cycles.sd));
        table.numbers("sd_cycles", 0, cells(sd));
        let min =
            |_: &MeasuredSystem, row: &Row| plain(row.cycles.as_ref().map(|cycles| cycles.min));
        table.numbers("min_cycles", 0, cells(min));
        table.numbers("relative_to_first", 0, cells(|_, row| plain(row.relative_to_first)));
        table.numbers(
            "relative_to_level_above",
            0,
            cells(|_, row| plain(row.relative_to_level_above)),
        );
        table.numbers("operations", 0, cells(|_, row| row.operations.to_string()));
        table.numbers("made", 0, cells(|_, row| row.made.to_string()));
        table.numbers("exits_per_operation", 0, cells(|_, row| plain(row.exits_per_operation)));
        table.numbers(
            "user_exits_per_operation",
            0,
            cells(|_, row| plain(row.user_exits_per_operation)),
        );
        table.names(
            "not_measured",
            0,
            cells(|_, row| row.not_measured.clone().unwrap_or_default()),
        );
        table
    }
}

fn place_table(place: &MeasuredSystem) -> Table {
    let cells = |cell: fn(&Row) -> String| place.rows.iter().map(cell).collect();
    let mut table = Table::default();
    table.names("exit", 0, cells(|row| row.kind.name().into()));
    table.numbers("cycles ± sd", 0, cells(|row| spread(row.cycles.as_ref())));
    let min = |row: &Row| row.cycles.as_ref().map_or(NONE.into(), |cycles| count(cycles.min));
    table.numbers("min", 2, cells(min));
    table.numbers("× first", 0, cells(|row| times(row.relative_to_first)));
    table.names("handled by", 0, cells(|row| row.handled_by.map_or(NONE, |by| by.name()).into()));
    table.numbers("exits each", 2, cells(|row| number(row.exits_per_operation, 3)));
    table.names("what", 3, cells(|row| row.what.clone()));
    table
}

/// A table of kinds by systems.
fn levels(places: &[MeasuredSystem]) -> Table {
    let kinds: Vec<Kind> = Kind::ALL
        .into_iter()
        .filter(|kind| places.iter().any(|place| place.row(*kind).is_some()))
        .collect();
    let mut table = Table::default();
    table.names("exit", 0, kinds.iter().map(|kind| kind.name().to_owned()).collect());
    for (at, place) in places.iter().enumerate() {
        let cells = |cell: fn(&Row) -> String| {
            let row = |kind: &Kind| place.row(*kind).map_or(NONE.into(), cell);
            kinds.iter().map(row).collect()
        };
        table.numbers(&place.name, 0, cells(|row| spread(row.cycles.as_ref())));
        table.numbers("× first", 1, cells(|row| times(row.relative_to_first)));
        if places.iter().take(at).any(|above| above.way == place.way) {
            table.numbers("× above", 0, cells(|row| times(row.relative_to_level_above)));
        } else {
            let by = |row: &Row| row.handled_by.map_or(NONE, |by| by.name()).into();
            table.names("by", 0, cells(by));
        }
    }
    table
}

fn spread(cycles: Option<&Spread>) -> String {
    let Some(cycles) = cycles else { return NONE.into() };
    match cycles.sd {
        Some(sd) => format!("{} ± {}", count(cycles.mean), count(sd)),
        None => count(cycles.mean),
    }
}

/// Cycles as an integer, or with a decimal if there are few.
fn count(cycles: f64) -> String {
    if cycles.abs() < 10.0 { format!("{cycles:.1}") } else { format!("{cycles:.0}") }
}

fn times(ratio: Option<f64>) -> String {
    number(ratio, 2)
}

impl Outcome {
    /// Explains missing measurements, the numbers, and what executed the machines.
    fn notes(&self) -> String {
        let mut text = String::new();
        for place in &self.places {
            text.push_str(&not_measured(place));
        }
        for ladders in &self.ablations {
            text.push_str(&ladders::notes(ladders));
        }
        let conditions = &self.conditions;
        let here = &conditions.surroundings;
        let unit = if here.counts_instructions {
            "A cycle is an instruction, at any level"
        } else {
            "Cycles are ticks of the time stamp counter"
        };
        text.push_str(&format!(
            "{unit}; mean ± sample sd of {}.\n\
             {}\n{}",
            self.runs(),
            here.load(),
            self.executed_by(),
        ));
        text
    }

    fn runs(&self) -> String {
        let conditions = &self.conditions;
        if self.places.is_empty() {
            return format!(
                "{}, each of which runs all steps",
                plural(conditions.runs.into(), "round")
            );
        }
        let empty = self.places.iter().map(|place| {
            let cycles = spread(place.empty_cycles.as_ref());
            let mhz =
                place.system.tsc_khz.map_or(NONE.into(), |khz| format!("{:.0}", khz / 1000.0));
            format!("{} {cycles} a turn at {mhz} MHz", place.name)
        });
        let empty = empty.collect::<Vec<_>>().join(", ");
        format!(
            "{} of about {} ms each, after a warm-up run;\nwithout the empty loop: {empty}",
            plural(conditions.runs.into(), "run"),
            conditions.run_ms
        )
    }

    fn executed_by(&self) -> &'static str {
        let here = &self.conditions.surroundings;
        match (here.accelerator, here.counts_instructions) {
            (Some(Accelerator::Tcg), true) => {
                "QEMU's emulator runs level 1 and all machines in it, one instruction after the other. The numbers\n\
                 exclude a real processor's own work on exits and entries, caches and stalls.\n"
            }
            (Some(Accelerator::Tcg), false) => {
                "QEMU's emulator runs level 1 and all machines in it: only ratios between levels are meaningful, since\n\
                 absolute numbers are those of the emulator.\n"
            }
            _ => "",
        }
    }
}

fn not_measured(place: &MeasuredSystem) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in &place.rows {
        let Some(why) = row.not_measured.as_deref() else { continue };
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, kinds)) => kinds.push(row.kind.name()),
            None => reasons.push((why, vec![row.kind.name()])),
        }
    }
    let lines = reasons
        .into_iter()
        .map(|(why, kinds)| format!("not measured, {}: {}: {why}\n", place.name, kinds.join(", ")));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_runs_have_a_mean_and_a_sample_deviation() {
        let cycles = Spread::from_runs(vec![757.0, 779.0, 768.0, 757.0, 779.0, 768.0]).unwrap();
        assert_eq!(spread(Some(&cycles)), "768 ± 9.8");
        assert_eq!(spread(Spread::from_runs(vec![5.25]).as_ref()), "5.2");
        assert_eq!(spread(None), "–");
    }
}
