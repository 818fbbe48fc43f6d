//! The columns of waits for futexes: the futex, the releasing thread, and the waiting threads.

use analyses::vmm::VmmLock;

use super::row::{self, Row};
use crate::column::{Column, Described, Unit};

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
    let nobody =
        "The waking thread was not in a futex call for that address, or it was not recorded.";
    vec![
        Column::text(("vm", "VM"), "The VM.", |row: &Of<'_>| Some(row.subject.vm.clone()))
            .shown(TABLE, 0),
        Column::number(
            ("futex", "futex"),
            Unit::Hex,
            "Address of the lock in the VMM.",
            |row: &Of<'_>| Some(row.subject.address),
        )
        .shown(TABLE, 0),
        Column::text(
            ("released", "released by"),
            "The thread that released the lock.",
            |row: &Of<'_>| row.subject.holder.as_ref().map(row::thread),
        )
        .only_in_tables()
        .shown(TABLE, 0),
        Column::number(
            ("holder_tid", "released by"),
            Unit::Id,
            "The thread that released the lock, or signalled the condition.",
            |row: &Of<'_>| row.subject.holder.as_ref().map(|holder| holder.tid.into()),
        )
        .null(nobody),
        Column::text(("holder", "released by"), "Its name.", |row: &Of<'_>| {
            row.subject.holder.as_ref().and_then(|holder| holder.name.clone())
        })
        .null(nobody),
    ]
}

fn waits<'r>() -> Vec<Column<Of<'r>>> {
    let time = |names: (&str, &str), help: &str, time_of: fn(&VmmLock) -> u64| {
        Column::time(names, help, move |row: &Of<'_>| Some(time_of(row.subject)))
    };
    vec![
        Column::number(
            ("waits", "waits"),
            Unit::Count,
            "Waits that the thread ended.",
            |row: &Of<'_>| Some(row.subject.waits),
        )
        .shown(TABLE, 0),
        Column::number(
            ("waiters", "threads"),
            Unit::Count,
            "Threads that waited.",
            |row: &Of<'_>| Some(row.subject.waiters),
        )
        .shown(TABLE, 2),
        time(("exits_waited", "exits waited"), "Time asleep while exits were handled.", |lock| {
            lock.exits_waited_ns
        })
        .shown(TABLE, 0),
        time(
            ("threads_waited", "others waited"),
            "Time asleep in threads that run no vCPU.",
            |lock| lock.threads_waited_ns,
        )
        .shown(TABLE, 1),
        time(("longest", "longest"), "The longest wait.", |lock| lock.longest_ns).shown(TABLE, 1),
    ]
}
