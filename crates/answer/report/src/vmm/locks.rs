//! The columns of waits for futexes: which, released by whom, and who waited.

use analyses::vmm::VmmLock;

use super::row::{self, Row};
use crate::column::{Column, Described, Unit};

/// The table of locks.
pub(super) const TABLE: &str = "locks";

pub(super) type Of<'r> = Row<'r, VmmLock>;

impl<'r> Described for Of<'r> {
    fn all_columns() -> Vec<Column<Self>> {
        columns()
    }
}

pub(super) fn columns<'r>() -> Vec<Column<Of<'r>>> {
    let mut columns = names();
    columns.extend(waits());
    columns
}

fn names<'r>() -> Vec<Column<Of<'r>>> {
    let nobody = "Whoever woke them was in no futex call of that address, or it was not recorded.";
    vec![
        Column::text(("vm", "VM"), "The VM.", |row: &Of<'_>| Some(row.of.vm.clone()))
            .shown(TABLE, 0),
        Column::number(("futex", "futex"), Unit::Hex, "Its address in the VMM.", |row: &Of<'_>| {
            Some(row.of.address)
        })
        .shown(TABLE, 0),
        Column::text(("released", "released by"), "Who released it.", |row: &Of<'_>| {
            row.of.holder.as_ref().map(row::thread)
        })
        .only_in_tables()
        .shown(TABLE, 0),
        Column::number(
            ("holder_tid", "released by"),
            Unit::Id,
            "The thread that released it: that held it, or that brought about what was waited for.",
            |row: &Of<'_>| row.of.holder.as_ref().map(|one| one.tid.into()),
        )
        .null(nobody),
        Column::text(("holder", "released by"), "Its name.", |row: &Of<'_>| {
            row.of.holder.as_ref().and_then(|one| one.name.clone())
        })
        .null(nobody),
    ]
}

fn waits<'r>() -> Vec<Column<Of<'r>>> {
    let time = |names: (&str, &str), help: &str, of: fn(&VmmLock) -> u64| {
        Column::time(names, help, move |row: &Of<'_>| Some(of(row.of)))
    };
    vec![
        Column::number(("waits", "waits"), Unit::Count, "Waits that it ended.", |row: &Of<'_>| {
            Some(row.of.waits)
        })
        .shown(TABLE, 0),
        Column::number(
            ("waiters", "threads"),
            Unit::Count,
            "Threads that waited.",
            |row: &Of<'_>| Some(row.of.waiters),
        )
        .shown(TABLE, 2),
        time(("exits_waited", "exits waited"), "Asleep while exits were handled.", |one| {
            one.exits_waited_ns
        })
        .shown(TABLE, 0),
        time(("threads_waited", "others waited"), "Asleep in threads that run no vCPU.", |one| {
            one.threads_waited_ns
        })
        .shown(TABLE, 1),
        time(("longest", "longest"), "The longest wait.", |one| one.longest_ns).shown(TABLE, 1),
    ]
}
