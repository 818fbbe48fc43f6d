//! The columns of code that ran while VMMs handled exits, by samples.

use analyses::vmm::{VmmCode, VmmExits};

use super::row::{self, Row, kind};
use crate::column::{Column, Described, Unit};

pub(super) const TABLE: &str = "code";

pub(super) type Of<'r> = Row<'r, VmmCode>;

fn exits<'r>(row: &Of<'r>) -> Option<&'r VmmExits> {
    row.source.vmm.exits.get(row.subject.exits)
}

impl<'r> Described for Of<'r> {
    fn all_columns() -> Vec<Column<Self>> {
        columns()
    }
}

pub(super) fn columns<'r>() -> Vec<Column<Of<'r>>> {
    let mut columns = names();
    columns.extend(sums());
    columns
}

fn names<'r>() -> Vec<Column<Of<'r>>> {
    vec![
        Column::text(("vm", "VM"), "The VM.", |row: &Of<'_>| {
            exits(row).map(|exits| exits.vm.clone())
        })
        .shown(TABLE, 0),
        Column::text(("on", "on"), "The exits.", |row: &Of<'_>| exits(row).map(row::exits))
            .only_in_tables()
            .shown(TABLE, 0),
        Column::text(("reason", "reason"), "Reason of the exits.", |row: &Of<'_>| {
            exits(row).map(|exits| exits.reason.clone())
        }),
        Column::text(("about", "about"), "Kind of the exits' address.", |row: &Of<'_>| {
            exits(row).and_then(|exits| kind(exits.about)).map(str::to_owned)
        })
        .null("No event shows the exits' details."),
        Column::number(("address", "address"), Unit::Hex, "Address of the exits.", |row: &Of<'_>| {
            exits(row).and_then(|exits| exits.about).map(|(_, value)| value)
        })
        .null("See about."),
        Column::text(
            ("part", "part"),
            "Part of the exits' time: return, signals, device, lock, calls, back, not_split.",
            |row: &Of<'_>| Some(row.subject.part.name().to_owned()),
        )
        .one_of(["return", "signals", "device", "lock", "calls", "back", "not_split"])
        .shown(TABLE, 0),
        Column::text(
            ("function", "function"),
            "The innermost function with its file or module, or only the file if the function has no name.",
            |row: &Of<'_>| row.subject.function.clone(),
        )
        .null("No stack was sampled, or there were more stacks than the limit.")
        .shown(TABLE, 0),
    ]
}

fn sums<'r>() -> Vec<Column<Of<'r>>> {
    vec![
        Column::number(
            ("samples", "samples"),
            Unit::Count,
            "Samples in the function.",
            |row: &Of<'_>| Some(row.subject.samples),
        )
        .at_least(1)
        .shown(TABLE, 0),
        Column::time(
            ("time", "about"),
            "Estimated time: the function's share of the samples, applied to the part's time.",
            |row: &Of<'_>| Some(row.subject.time_ns),
        )
        .shown(TABLE, 0),
    ]
}
