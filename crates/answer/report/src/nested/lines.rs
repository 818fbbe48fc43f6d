//! The lines of the nested report, for tables and CSV: reasons of level 2, each with the level-1 exits under
//! it, and their columns.

use analyses::msr_names::msr_name;
use analyses::nested::{AncillaryRow, ExitCost, Nested, NestedRow};

use super::per_exit;
use crate::column::{self, Column, Unit};
use crate::units::{count, share};

/// The tree of reasons.
pub(super) const TABLE: &str = "nested";

/// A level-2 reason, or a level-1 reason under it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'n> {
    path: &'n str,
    nanoseconds: bool,
    row: &'n NestedRow,
    under: Option<&'n AncillaryRow>,
    is_last: bool,
}

impl column::Row for Line<'_> {
    fn is_nanoseconds(&self) -> bool {
        self.nanoseconds
    }
}

/// The lines of a recording, in order.
pub(super) fn lines<'n>(path: &'n str, nested: &'n Nested) -> impl Iterator<Item = Line<'n>> {
    nested.rows.iter().flat_map(move |row| {
        let nanoseconds = nested.nanoseconds;
        let make_line = move |under, is_last| Line { path, nanoseconds, row, under, is_last };
        let last = row.ancillary.len().saturating_sub(1);
        let under = row.ancillary.iter().enumerate();
        std::iter::once(make_line(None, false))
            .chain(under.map(move |(at, ancillary)| make_line(Some(ancillary), at == last)))
    })
}

impl<'n> Line<'n> {
    /// The level-2 reason, unless the line is one below it.
    fn level2_row(&self) -> Option<&'n NestedRow> {
        self.under.is_none().then_some(self.row)
    }

    fn name(&self) -> String {
        match (self.under, self.is_last) {
            (None, _) => self.row.reason.clone(),
            (Some(ancillary), true) => format!("└─ {}", ancillary.reason),
            (Some(ancillary), false) => format!("├─ {}", ancillary.reason),
        }
    }

    fn per_exit(&self) -> Option<f64> {
        per_exit(self.row, self.under?)
    }

    fn cost(&self) -> ExitCost {
        self.under.map_or_else(|| self.row.cost(), |ancillary| ancillary.cost)
    }
}

/// All columns, in the order of CSV. Tables name the VM if there are several.
pub(super) fn columns<'n>(several_vms: bool) -> Vec<Column<Line<'n>>> {
    let mut columns = names(several_vms);
    columns.extend(counts());
    columns.extend(times());
    columns.extend(details());
    columns.push(Column::text(
        ("source", "recording"),
        "Path of the recording, as given.",
        |line: &Line<'_>| Some(line.path.to_owned()),
    ));
    columns
}

fn names<'n>(several_vms: bool) -> Vec<Column<Line<'n>>> {
    let text = |name, help, text_of: fn(&Line<'_>) -> Option<String>| {
        Column::text((name, name), help, move |line: &Line<'n>| text_of(line))
    };
    let vm = text("vm", "Name of the VM.", |line| Some(line.row.vm.clone()));
    vec![
        if several_vms { vm.shown(TABLE, 0) } else { vm },
        text("isa", "Architecture of the exit.", |line| Some(line.row.isa.name().to_owned())),
        text("reason", "The level-2 reason.", |line| Some(line.row.reason.clone()))
            .drawn_as(Line::name)
            .shown(TABLE, 0),
        text("code", "Its number.", |line| Some(line.row.code.to_string())),
        text("ancillary", "The level-1 reason.", |line| {
            line.under.map(|ancillary| ancillary.reason.clone())
        }),
        text("ancillary_code", "Its number.", |line| {
            line.under.map(|ancillary| ancillary.code.to_string())
        }),
    ]
}

fn counts<'n>() -> Vec<Column<Line<'n>>> {
    vec![
        Column::number(("count", "exits"), Unit::Count, "How many.", |line: &Line<'_>| {
            Some(line.under.map_or(line.row.count, |ancillary| ancillary.count))
        })
        .shown(TABLE, 0),
        Column::ratio(("to L1", "to L1"), "Share reflected to level 1.", |line: &Line<'_>| {
            line.level2_row().and_then(|row| column::ratio(row.reflected, row.count))
        })
        .only_in_tables()
        .shown(TABLE, 1)
        .missing(""),
        Column::number(
            ("reflected", "reflected"),
            Unit::Count,
            "Level-2 exits reflected to level 1.",
            |line: &Line<'_>| Some(line.row.reflected),
        ),
        Column::number(
            ("handled_by_host", "handled by host"),
            Unit::Count,
            "Level-2 exits that level 1 never saw.",
            |line: &Line<'_>| Some(line.row.count - line.row.reflected),
        ),
        Column::text(
            ("per_exit", "per exit"),
            "Level-1 exits per level-2 exit reflected to level 1.",
            |line: &Line<'_>| line.per_exit().map(|mean| format!("{mean:.4}")),
        )
        .drawn_as(|line| line.per_exit().map_or_else(String::new, |mean| format!("{mean:.2}x")))
        .at_the_right()
        .shown(TABLE, 0),
    ]
}

fn times<'n>() -> Vec<Column<Line<'n>>> {
    let factor = |line: &Line<'_>| line.level2_row().and_then(NestedRow::factor);
    vec![
        Column::time(("time", "time"), "Time from exit to entry.", |line: &Line<'_>| {
            Some(
                line.under
                    .map_or_else(|| line.row.time_ns(), |ancillary| ancillary.durations.sum()),
            )
        })
        .after("factor")
        .shown(TABLE, 1),
        Column::text(
            ("factor", "factor"),
            "Exits that the host handled per level-2 exit, including that exit.",
            move |line: &Line<'_>| factor(line).map(|factor| format!("{factor:.4}")),
        )
        .drawn_as(move |line| {
            // While level 2 waits, level 1's other work causes the exits.
            let factor = factor(line).filter(|_| !line.row.waiting);
            factor.map_or_else(String::new, |factor| format!("{factor:.2}x"))
        })
        .at_the_right()
        .shown(TABLE, 1),
        Column::time(("mean", "mean"), "Mean time of an exit.", |line: &Line<'_>| {
            let durations =
                line.under.map_or(&line.row.durations, |ancillary| &ancillary.durations);
            durations.mean().map(|mean| mean.round() as u64)
        })
        .only_in_tables()
        .shown(TABLE, 4)
        .missing(""),
        Column::time(
            ("until L2 runs", "until L2 runs"),
            "Mean time from a reflected exit until level 2 runs again.",
            |line: &Line<'_>| line.level2_row()?.round_trips.mean().map(|mean| mean.round() as u64),
        )
        .only_in_tables()
        .shown(TABLE, 3)
        .missing(""),
        Column::time(
            ("cost", "cost"),
            "CPU time within the round trip and the work before the exit event.",
            |line: &Line<'_>| line.cost().cost_ns,
        )
        .null("The recording does not separate it from waiting.")
        .after("time")
        .shown_if_known(TABLE, 1)
        .missing(""),
        Column::time(
            ("waited", "waited"),
            "Part of the time: off the CPU, and halt polling before that.",
            |line: &Line<'_>| line.cost().waited_ns,
        )
        .null("The recording does not show it.")
        .after("cost")
        .shown_if_known(TABLE, 2)
        .missing(""),
    ]
}

fn details<'n>() -> Vec<Column<Line<'n>>> {
    let touched = |line: &Line<'_>| line.under.map_or_else(String::new, touches);
    vec![
        Column::text(
            ("injected as", "injected as"),
            "The reason that exits were injected as, if it differs from the hardware's reason.",
            |line: &Line<'_>| Some(line.level2_row().map_or_else(String::new, injected)),
        )
        .only_in_tables()
        .shown(TABLE, 5),
        Column::text(
            ("touches", "touches"),
            "Registers that were read and written, and changes by level 1 to its guest's control block.",
            move |line: &Line<'_>| Some(touched(line)),
        )
        .only_in_tables()
        .shown_if(TABLE, 6, move |line| !touched(line).is_empty()),
    ]
}

/// The injected reasons of the row's exits, if they differ from the hardware's reason.
fn injected(row: &NestedRow) -> String {
    let others = row.injected_as.iter().filter(|(_, code, _)| *code != row.code);
    let named: Vec<String> =
        others.map(|(reason, _, number)| format!("{reason} {}", count(*number))).collect();
    named.join(", ")
}

/// Max items in a line of the table; the others are counted.
const MAX_TOUCHED: usize = 2;

/// The registers that the row's exits read or wrote, and the parts of its guest's control block that level 1
/// had changed, with their shares of exits.
fn touches(ancillary: &AncillaryRow) -> String {
    let msr = |number: u64| match msr_name(number) {
        Some(name) => name.trim_start_matches("IA32_").to_owned(),
        None => format!("{number:#x}"),
    };
    let msrs = ancillary.msrs.iter().map(|(number, count)| (msr(*number), *count, ancillary.count));
    let groups = ancillary.vmcb.groups().into_iter();
    let groups = groups.map(|(group, count)| (group.to_owned(), count, ancillary.vmcb.runs));
    let all: Vec<(String, u64, u64)> = msrs.chain(groups).collect();
    let shown = all.iter().take(MAX_TOUCHED);
    let mut named: Vec<String> =
        shown.map(|(name, count, all)| format!("{name} {}", share(*count, *all))).collect();
    match all.len().saturating_sub(MAX_TOUCHED) {
        0 => {}
        more => named.push(format!("{more} more")),
    }
    named.join(", ")
}
