//! The columns of a boot's phases and initcalls, for tables and CSV.

use super::lines::{GuestNumbers, HostNumbers, Line};
use crate::column::{Cell, Column, Kind, Unit};
use crate::units::{count, time};

/// The table of phases, and that of the slowest initcalls.
pub(super) const PHASES: &str = "phases";
pub(super) const INITCALLS: &str = "initcalls";

type Of<T> = fn(&Line<'_>) -> Option<T>;

/// All columns, in the order of CSV.
pub(super) fn columns<'b>() -> Vec<Column<Line<'b>>> {
    [names(), times(), of_guest(), tracing(), of_host()].into_iter().flatten().collect()
}

fn text<'b>(names: (&str, &str), help: &str, text_of: Of<String>) -> Column<Line<'b>> {
    Column::text(names, help, move |line: &Line<'b>| text_of(line))
}

fn names<'b>() -> Vec<Column<Line<'b>>> {
    vec![
        text(
            ("machine", "machine"),
            "The machine: its VM, or its recording if the VM is unknown.",
            |line| Some(line.machine.to_owned()),
        ),
        text(("kind", "kind"), "The kind of phase, or initcall.", |line| {
            line.kind.map(str::to_owned)
        }),
        text(("name", "phase"), "The phase, or the initcall's function.", |line| {
            Some(line.name.clone())
        })
        .drawn_as(|line| line.label.clone())
        .shown(PHASES, 0),
        text(("initcall", "initcall"), "The initcall's function.", |line| Some(line.label.clone()))
            .only_in_tables()
            .shown(INITCALLS, 0),
        text(("level", "level"), "The level of the initcall.", |line| line.call?.level.clone())
            .drawn_as(|line| match line.call {
                Some(call) if call.is_loaded => "module".to_owned(),
                call => call.and_then(|call| call.level.clone()).unwrap_or_default(),
            })
            .shown(INITCALLS, 1)
            .after("module"),
        text(("section", "section"), "The section of the initcall.", |line| {
            line.call?.section.clone()
        })
        .shown(INITCALLS, 3)
        .missing("")
        .after("module"),
        text(("module", "of"), "The module whose initcall it is.", |line| {
            line.call?.module.clone()
        })
        .shown(INITCALLS, 2)
        .missing(""),
    ]
}

fn times<'b>() -> Vec<Column<Line<'b>>> {
    let since = |line: &Line<'b>| line.since_ns;
    let result = |line: &Line<'b>| Cell::Signed(line.call.and_then(|call| call.result));
    vec![
        Column::time(
            ("since_begin", "begins"),
            "Time from the first event to the beginning of the phase.",
            since,
        )
        .shown(PHASES, 2)
        .missing("")
        .shown(INITCALLS, 2),
        Column::time(("duration", "lasts"), "Duration.", |line: &Line<'b>| line.duration_ns)
            .shown(PHASES, 0)
            .shown(INITCALLS, 0)
            .missing("no end"),
        Column::ratio(("share", "share"), "Share of all phases.", |line: &Line<'b>| line.share)
            .only_in_tables()
            .shown(PHASES, 3)
            .missing(""),
        Column::any(
            ("result", "returned"),
            (Unit::Id, Kind::Signed),
            "Return value of the initcall.",
            result,
        )
        .shown(INITCALLS, 4)
        .missing("")
        .after("most"),
    ]
}

/// A number from the guest's recording; for single phases, tables leave out zeros.
fn guest_number<'b>(
    names: (&str, &str),
    unit: Unit,
    help: &str,
    number_of: fn(&GuestNumbers) -> Option<u64>,
) -> Column<Line<'b>> {
    let shown = move |number, line: &Line<'b>| match unit {
        Unit::Time => time(number, line.is_in_ns()),
        _ => count(number),
    };
    let value = move |line: &Line<'b>| number_of(line.guest.as_ref()?);
    Column::number(names, unit, help, value).drawn_as(move |line: &Line<'b>| {
        line.of_guest(number_of).map_or_else(String::new, |number| shown(number, line))
    })
}

fn of_guest<'b>() -> Vec<Column<Line<'b>>> {
    let number = guest_number;
    let known = |column: Column<Line<'b>>, rank| column.shown_if_known(PHASES, rank);
    vec![
        known(
            number(("initcalls", "initcalls"), Unit::Count, "Initcalls.", |guest| guest.initcalls),
            2,
        ),
        known(
            number(("initcalls", "in them"), Unit::Time, "Time in initcalls.", |guest| {
                guest.initcalls_ns
            }),
            2,
        ),
        known(number(("forks", "forks"), Unit::Count, "Processes made.", |guest| guest.forks), 4)
            .after("modules"),
        known(number(("execs", "execs"), Unit::Count, "Programs started.", |guest| guest.execs), 4)
            .after("modules"),
        known(
            number(("modules", "modules"), Unit::Count, "Modules loaded.", |guest| guest.modules),
            3,
        ),
        known(
            number(("events", "events"), Unit::Count, "Events recorded.", |guest| guest.events),
            2,
        ),
        known(
            number(
                ("event_bytes", "bytes"),
                Unit::Count,
                "Bytes of these events in the buffer.",
                |guest| guest.bytes,
            ),
            3,
        ),
    ]
}

/// Nanoseconds of the guest's CPU time, whatever the unit of the recording's clock.
fn tracing<'b>() -> Vec<Column<Line<'b>>> {
    let drawn = |line: &Line<'b>| {
        let cost_ns = line.of_guest(|guest| guest.tracing_ns.map(|[ns, ..]| ns));
        cost_ns.map_or_else(String::new, |ns| time(ns, true))
    };
    let number = |name: &str, title: &str, help: &str, at: usize| {
        let value_of = move |line: &Line<'b>| line.guest?.tracing_ns?.get(at).copied();
        Column::number((name, title), Unit::Count, help, value_of)
    };
    vec![
        number("tracing_ns", "tracing", "Cost of the events.", 0)
            .drawn_as(drawn)
            .shown_if_known(PHASES, 1),
        number("tracing_low_ns", "tracing, at least", "Lowest possible cost of the events.", 1),
        number("tracing_high_ns", "tracing, at most", "Highest possible cost of the events.", 2),
    ]
}

fn host_time<'b>(
    names: (&str, &str),
    help: &str,
    time_of: fn(&HostNumbers) -> Option<u64>,
) -> Column<Line<'b>> {
    Column::time(names, help, move |line: &Line<'b>| line.of_host(time_of))
}

fn of_host<'b>() -> Vec<Column<Line<'b>>> {
    let is_split_short = |line: &Line<'b>| line.of_host(|host| host.not_split_ns) > Some(0);
    let not_split = |line: &Line<'b>| {
        let ns = line.of_host(|host| host.not_split_ns).filter(|&ns| ns > 0);
        ns.map_or_else(String::new, |ns| time(ns, line.is_in_ns()))
    };
    let most = |line: &Line<'b>| line.host.as_ref()?.most.clone();
    let has_host = |line: &Line<'b>| line.host.is_some();
    let known = |column: Column<Line<'b>>, rank| column.shown_if_known(PHASES, rank).missing("");
    let exits = |line: &Line<'b>| line.of_host(|host| host.exits);
    vec![
        known(Column::number(("exits", "exits"), Unit::Count, "Exits on the host.", exits), 0)
            .shown_if(INITCALLS, 0, has_host)
            .missing(""),
        host_time(("exit_time", "exit time"), "Time of exits.", |host| host.time_ns).only_in_csv(),
        known(
            host_time(("working", "exit time"), "Time of exits, without waiting exits.", |host| {
                host.working_ns
            }),
            0,
        )
        .shown_if(INITCALLS, 1, has_host)
        .missing("")
        .only_in_tables(),
        known(
            host_time(("waiting", "waiting"), "Time of waiting exits.", |host| host.waiting_ns),
            2,
        )
        .only_in_tables(),
        known(
            host_time(("kernel", "kernel"), "Part of the exits' time in the kernel.", |host| {
                host.kernel_ns
            }),
            1,
        ),
        known(
            host_time(("user", "user"), "Part of the exits' time in the VMM.", |host| host.user_ns),
            1,
        ),
        known(
            host_time(("off_cpu", "off CPU"), "Part of the exits' time off the CPU.", |host| {
                host.off_cpu_ns
            }),
            1,
        ),
        host_time(
            ("halt_poll", "halt poll"),
            "Part of the exits' time spent on halt polling.",
            |host| host.halt_poll_ns,
        ),
        host_time(
            ("not_split", "not split"),
            "Part of the exits' time that cannot be split.",
            |host| host.not_split_ns,
        )
        .drawn_as(not_split)
        .shown_if(PHASES, 1, is_split_short),
        Column::text(
            ("most", "most time in"),
            "The reason with the most time, and its exits.",
            most,
        )
        .only_in_tables()
        .at_the_right()
        .shown_if(PHASES, 3, has_host)
        .missing("")
        .shown_if(INITCALLS, 3, has_host)
        .missing(""),
    ]
}
