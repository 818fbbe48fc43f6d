//! The columns of functions: number of calls, times, and callers.

use analyses::calls::Function;

use super::row::{self, timed};
use crate::column::{self, Column, Described, Unit};
use crate::units::count;

pub(super) type Row<'r> = row::Row<'r, Function>;

/// The table of functions where calls have times.
pub(super) const TIMED: &str = "timed";
/// The table of functions where calls have no times.
pub(super) const COUNTED: &str = "counted";

/// Max callers of a function in tables, the most frequent first; JSON has all.
const MAX_CALLERS: usize = 1;

impl<'r> Described for Row<'r> {
    fn all_columns() -> Vec<Column<Self>> {
        columns()
    }
}

/// All columns, in the order of CSV; newer ones at the end.
pub(super) fn columns<'r>() -> Vec<Column<Row<'r>>> {
    let mut columns = names();
    columns.extend(counts());
    columns.extend(times());
    columns.extend(shares());
    columns.extend(events());
    columns
}

fn names<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::text(("machine", "machine"), "The recorded machine.", |row: &Row<'_>| {
            Some(row.source.machine.clone())
        })
        .only_in_csv(),
        Column::text(
            ("function", "function"),
            "Name, or the address if no name is known.",
            |row: &Row<'_>| {
                Some(
                    row.subject
                        .name
                        .clone()
                        .unwrap_or_else(|| format!("{:#x}", row.subject.address)),
                )
            },
        )
        .drawn_as(|row| row.subject.title())
        .only_in_csv()
        .shown(TIMED, 0)
        .shown(COUNTED, 0),
        Column::text(
            ("name", "name"),
            "The function's name; null where the recording has no symbol for it.",
            |row: &Row<'_>| row.subject.name.clone(),
        )
        .null("the recording has no symbol for it")
        .only_in_json(),
        Column::text(
            ("module", "module"),
            "The kernel module that contains the function; null: the kernel itself.",
            |row: &Row<'_>| row.subject.module.clone(),
        )
        .null("the function is in the kernel itself"),
        Column::text(
            ("address", "address"),
            "Address of the function, in hexadecimal.",
            |row: &Row<'_>| Some(format!("{:#x}", row.subject.address)),
        )
        .only_in_json(),
    ]
}

fn counts<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::number(
            ("count", "calls"),
            Unit::Count,
            "Calls that returned without a loss between call and return. Function \
                                                         tracer: all calls.",
            |row: &Row<'_>| Some(row.subject.count),
        )
        .shown(TIMED, 0)
        .shown(COUNTED, 0),
        Column::ratio(("share", "share"), "Share of all calls.", |row: &Row<'_>| {
            column::ratio(row.subject.count, row.totals.calls)
        })
        .only_in_tables()
        .shown(COUNTED, 0),
    ]
}

/// Self time without the tracer's cost.
fn self_ns(row: &Row<'_>) -> u64 {
    row.subject.self_ns - row.subject.tracer_ns(row.per_call)
}

fn times<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        timed(("self", "self"), "CPU time in the function itself, without its callees, and without the tracer's cost if \
                                 --correct is given. Null if the tracer records no times, or if times are cycles.", self_ns).shown(TIMED, 0),
        timed(("total", "total"), "From call to return, including callees and time off the CPU; of recursive calls, only the \
                                   outermost. Null if the tracer records no times, or if times are cycles.", |row: &Row<'_>| row.subject.total_ns)
            .shown(TIMED, 0)
            .after("off_cpu"),
        Column::time(
            ("off_cpu", "off CPU"),
            "Time off the CPU while this was the innermost function. Null also if sched_switch was not recorded.",
            |row: &Row<'_>| row.off_cpu(row.subject.off_cpu_ns),
        )
        .null("sched_switch was not recorded")
        .shown_if_known(TIMED, 2)
        .after("tracer"),
        timed(("max", "max"), "The longest call. Null if the tracer records no times, or if times are cycles.", |row: &Row<'_>| row.subject.max_ns)
            .shown(TIMED, 2)
            .after("mean"),
    ]
}

fn shares<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::ratio(
            ("self%", "self%"),
            "Share of the time of all functions.",
            |row: &Row<'_>| column::ratio(self_ns(row), row.totals.self_ns),
        )
        .only_in_tables()
        .shown(TIMED, 4)
        .after("self"),
        Column::time(("mean", "mean"), "Mean time from call to return.", |row: &Row<'_>| {
            row.subject.total_ns.checked_div(row.subject.count)
        })
        .only_in_tables()
        .shown(TIMED, 5)
        .after("total"),
    ]
}

fn events<'r>() -> Vec<Column<Row<'r>>> {
    let number = |name: &str, help: &str, count_of: fn(&Function) -> u64| {
        Column::number((name, name), Unit::Count, help, move |row: &Row<'_>| {
            Some(count_of(row.subject))
        })
    };
    vec![
        number("events", "Events that the tracer wrote for the function.", |function| function.events),
        number("without_call", "Returns whose call was not recorded.", |function| function.without_call),
        number("without_return", "Calls whose return was not recorded.", |function| function.without_return),
        Column::time(
            ("tracer", "tracer"),
            "The tracer's cost that --correct subtracted from `self_ns`. Null unless --correct is given.",
            |row: &Row<'_>| row.per_call.and(row.timed(row.subject.tracer_ns(row.per_call))),
        )
        .null("--correct was not given")
        .shown_if_known(TIMED, 1)
        .after("self%"),
        Column::number(
            ("calls_made", "calls made"),
            Unit::Count,
            "Traced calls that the function made itself. Null for the function tracer.",
            |row: &Row<'_>| row.timed(row.subject.calls_made),
        )
        .null("the tracer records no returns"),
        Column::text(("callers", "callers"), "Callers, most frequent first. Only for the function tracer.", |row: &Row<'_>| {
            Some(callers(row))
        })
        .only_in_tables()
        .shown(COUNTED, 1),
    ]
}

fn callers(row: &Row<'_>) -> String {
    let callers = &row.subject.callers;
    let names = callers.iter().take(MAX_CALLERS).map(|(caller, times)| {
        let caller = row.source.calls.functions.get(*caller as usize);
        format!("{} {}", caller.map_or_else(String::new, Function::title), count(*times))
    });
    let mut names: Vec<String> = names.collect();
    if callers.len() > MAX_CALLERS {
        names.push("…".to_owned());
    }
    names.join(", ")
}
