//! The columns of hosts' CPUs: the time of each by kind of thread.

use analyses::cpu::HostCpuUse;
use analyses::states::Part;

use super::row::{self, PARTS};
use crate::column::{self, Column, Described, Unit};

pub(super) type Row<'r> = row::Row<'r, HostCpuUse>;
/// The table of CPUs.
pub(super) const TABLE: &str = "cpus";

impl<'r> Described for Row<'r> {
    const ABOUT: Option<&'static str> = Some("One CPU.");
    fn all_columns() -> Vec<Column<Self>> {
        columns(false)
    }
}

pub(super) fn columns<'r>(several_recordings: bool) -> Vec<Column<Row<'r>>> {
    let parts = || PARTS.into_iter().chain([Part::Recorder, Part::Other, Part::Idle]);
    let part_ns = |part| move |row: &Row<'_>| row.subject.by_part.get(&part).copied().unwrap_or(0);
    let unknown_ns = |row: &Row<'_>| row.subject.unknown_ns;
    let mut columns = vec![
        row::source(TABLE, several_recordings),
        Column::number(("cpu", "CPU"), Unit::Id, "The CPU.", |row: &Row<'_>| {
            Some(row.subject.cpu.into())
        })
        .shown(TABLE, 0),
        Column::time(("time", "time"), "The CPU's total time.", |row: &Row<'_>| {
            Some(total_ns(row))
        })
        .only_in_tables()
        .shown(TABLE, 1),
    ];
    columns.extend(parts().map(|part| share(part.name(), part_ns(part))));
    columns.push(share("unknown", unknown_ns));
    columns.extend(parts().map(|part| {
        let help = "Time of threads with this role.";
        Column::time((part.name(), part.name()), help, move |row| Some(part_ns(part)(row)))
    }));
    columns.push(Column::time(("unknown", "unknown"), "Time of unknown threads.", move |row| {
        Some(unknown_ns(row))
    }));
    columns
}

fn total_ns(row: &Row<'_>) -> u64 {
    row.subject.by_part.values().fold(row.subject.unknown_ns, |sum, ns| sum.saturating_add(*ns))
}

/// The share of some time, unless it is zero.
fn share<'r>(title: &str, time_of: impl Fn(&Row<'_>) -> u64 + Copy + 'static) -> Column<Row<'r>> {
    Column::ratio((title, title), "Share of the CPU's time.", move |row: &Row<'_>| {
        column::ratio(time_of(row), total_ns(row))
    })
    .only_in_tables()
    .shown_if(TABLE, 0, move |row| time_of(row) > 0)
    .missing("-")
}
