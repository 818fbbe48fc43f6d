//! The columns of VMMs' system calls: for exits, and in their other threads.

use analyses::vmm::{CallSum, CalledBy, VmmCalls, VmmExits, VmmThread};

use super::row::{self, Row, kind};
use crate::column::{Column, Described, Unit};

pub(super) const TABLE: &str = "calls";

pub(super) type Of<'r> = Row<'r, VmmCalls>;

/// The exits for which calls were made.
fn exits<'r>(row: &Of<'r>) -> Option<&'r VmmExits> {
    match row.subject.by {
        CalledBy::Exits(at) => row.source.vmm.exits.get(at),
        CalledBy::Thread(_) => None,
    }
}

/// The thread that made calls.
fn thread<'r>(row: &Of<'r>) -> Option<&'r VmmThread> {
    match row.subject.by {
        CalledBy::Thread(at) => row.source.vmm.threads.get(at),
        CalledBy::Exits(_) => None,
    }
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
    let of_thread = "The calls were made for exits.";
    let of_exits = "A thread that runs no vCPU made the calls, or no event shows it.";
    vec![
        Column::text(("vm", "VM"), "The VM.", |row: &Of<'_>| {
            exits(row).map(|exits| &exits.vm).or(thread(row).map(|thread| &thread.vm)).cloned()
        })
        .shown(TABLE, 0),
        Column::text(("on", "on"), "The caller: the handling of an exit, or a thread.", |row: &Of<'_>| {
            let exit = exits(row).map(row::exits);
            exit.or_else(|| thread(row).map(|thread| row::thread(&thread.thread)))
        })
        .only_in_tables()
        .shown(TABLE, 0),
        Column::text(("reason", "reason"), "Reason of the exits.", |row: &Of<'_>| {
            exits(row).map(|exits| exits.reason.clone())
        })
        .null(of_exits),
        Column::text(("about", "about"), "Kind of the exits' address.", |row: &Of<'_>| {
            exits(row).and_then(|exits| kind(exits.about)).map(str::to_owned)
        })
        .null(of_exits),
        Column::number(("address", "address"), Unit::Hex, "Address of the exits.", |row: &Of<'_>| {
            exits(row).and_then(|exits| exits.about).map(|(_, value)| value)
        })
        .null(of_exits),
        Column::number(("tid", "tid"), Unit::Id, "The thread.", |row: &Of<'_>| {
            thread(row).map(|thread| thread.thread.tid.into())
        })
        .null(of_thread),
        Column::text(("thread", "thread"), "Its name.", |row: &Of<'_>| {
            thread(row).and_then(|thread| thread.thread.name.clone())
        })
        .null(of_thread),
        Column::text(
            ("call", "call"),
            "The call; an ioctl with its request, and an 8-byte write (as to an eventfd) with its length.",
            |row: &Of<'_>| Some(row.subject.name.clone()),
        )
        .shown(TABLE, 0),
    ]
}

fn sums<'r>() -> Vec<Column<Of<'r>>> {
    let time = |names: (&str, &str), help: &str, time_of: fn(&CallSum) -> u64| {
        Column::time(names, help, move |row: &Of<'_>| Some(time_of(&row.subject.sum)))
    };
    vec![
        Column::number(("count", "calls"), Unit::Count, "How many.", |row: &Of<'_>| {
            Some(row.subject.sum.count)
        })
        .shown(TABLE, 0),
        time(("running", "ran"), "Time running in these calls.", |sum| sum.running_ns)
            .shown(TABLE, 0),
        time(("waited", "asleep"), "Time asleep in these calls.", |sum| sum.waited_ns)
            .shown(TABLE, 1),
    ]
}
