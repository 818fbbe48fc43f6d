//! The columns of exits' times and of their parts.

use analyses::known_parts::KnownParts;
use analyses::tally::Tally;

use super::{HOW_LONG, Row, WHO_PAYS};
use crate::column::{self, Column, Unit};
use crate::exits::rounded;

pub(super) fn durations<'r>() -> Vec<Column<Row<'r>>> {
    let time = |names, help, time_of: fn(&Tally) -> Option<u64>| {
        Column::time(names, help, move |row: &Row<'r>| time_of(row.tally))
    };
    let percentile = |names, help, at: usize| {
        Column::time(names, help, move |row: &Row<'r>| row.percentiles.get(at).copied().flatten())
    };
    vec![
        Column::ratio(
            ("time_share", "time%"),
            "Share of the time of the table.",
            |row: &Row<'r>| column::ratio(row.tally.durations.sum(), row.totals.time_ns),
        )
        .only_in_tables()
        .shown(HOW_LONG, 6),
        time(("time", "time"), "Sum of the times from exit to entry.", |tally| {
            Some(tally.durations.sum())
        })
        .shown(HOW_LONG, 1),
        time(("min", "min"), "Shortest; null if no exit is paired.", |tally| tally.durations.min())
            .shown(HOW_LONG, 4),
        time(("max", "max"), "Longest; null if no exit is paired.", |tally| tally.durations.max())
            .shown(HOW_LONG, 2)
            .after("p999"),
        time(("mean", "mean"), "Mean, rounded; null if no exit is paired.", |tally| {
            tally.durations.mean().map(rounded)
        })
        .shown(HOW_LONG, 5),
        time(
            ("sd", "sd"),
            "Sample standard deviation, rounded; null if fewer than two exits are paired.",
            |tally| tally.durations.standard_deviation().map(rounded),
        )
        .shown(HOW_LONG, 9)
        .after("relative_error"),
        Column::ratio(
            ("relative_error", "±"),
            "Standard error of the mean divided by the mean; null if fewer than two exits are paired.",
            |row: &Row<'r>| row.tally.durations.relative_error(),
        )
        .shown(HOW_LONG, 8),
        percentile(
            ("p50", "p50"),
            "Median. Exact up to 4096 exits, otherwise at most 1/256 too large.",
            0,
        )
        .shown(HOW_LONG, 1),
        percentile(("p90", "p90"), "90th percentile, as exact as p50_ns.", 1).shown(HOW_LONG, 2),
        percentile(("p99", "p99"), "99th percentile, as exact as p50_ns.", 2).shown(HOW_LONG, 1),
        percentile(("p999", "p99.9"), "99.9th percentile, as exact as p50_ns.", 3).shown(HOW_LONG, 3),
    ]
}

pub(super) fn parts<'r>() -> Vec<Column<Row<'r>>> {
    let stays = "the recording has no events for it, and the time stays in another part";
    let part = |names, help, time_of: fn(&KnownParts) -> Option<u64>| {
        Column::time(names, help, move |row: &Row<'r>| time_of(&row.parts))
    };
    let known = |names, help, time_of| part(names, help, time_of).null(stays);
    vec![
        part(
            ("kernel", "kernel"),
            "The thread ran in the kernel. Includes CPU time that belongs to no other part.",
            |parts| parts.kernel_ns,
        )
        .null("it cannot be distinguished from user space or from waiting; not_split_ns contains the time")
        .shown_if_known(WHO_PAYS, 0),
        known(("user", "user space"), "The thread ran in the VMM.", |parts| parts.user_ns)
            .shown_if_known(WHO_PAYS, 0),
        known(
            ("user_and_return", "user space + return"),
            "Replaces user_ns if the event for the return to the kernel is missing: time in the VMM and on the way back.",
            |parts| parts.user_and_return_ns,
        )
        .shown_if_known(WHO_PAYS, 0),
        known(("off_cpu", "off CPU"), "The thread was off the CPU.", |parts| parts.off_cpu_ns),
        known(
            ("off_cpu_runnable", "run queue"),
            "Part of off_cpu_ns: the thread could have run (preempted, or woken and waiting for a CPU).",
            |parts| parts.runnable_ns,
        )
        .shown_if_known(WHO_PAYS, 1),
        known(("off_cpu_blocked", "blocked"), "Part of off_cpu_ns: the thread was blocked.", |parts| {
            parts.blocked_ns
        })
        .shown_if_known(WHO_PAYS, 1),
        // If the parts are known separately, their sum adds no information.
        part(("off_cpu_whole", "off CPU"), "The thread was off the CPU.", |parts| {
            parts.off_cpu_ns.filter(|_| parts.runnable_ns.is_none())
        })
        .only_in_tables()
        .shown_if_known(WHO_PAYS, 1),
        known(
            ("halt_poll", "halt poll"),
            "The kernel polled for work before it gave up the CPU.",
            |parts| parts.halt_poll_ns,
        )
        .shown_if(WHO_PAYS, 3, |row| row.exits().recorded.halt_poll),
        known(
            ("before_exit", "before exit"),
            "Not part of time_ns: host work between the hardware exit and kvm_exit, such as interrupt handlers, from its first event on.",
            |parts| parts.before_exit_ns,
        )
        .shown_if_known(WHO_PAYS, 2)
        .after("cost"),
        Column::time(
            ("guest", "guest"),
            "Not part of time_ns: time for which the guest ran before these exits, since the previous entry.",
            |row: &Row<'r>| Some(row.tally.guest_ns),
        ),
        Column::number(
            ("dropped", "dropped"),
            Unit::Count,
            "Exits during which events were lost: part of count, but not of paired.",
            |row: &Row<'r>| Some(row.tally.dropped),
        ),
        // After its parts, just as the cost is before its own.
        Column::time(("time_of_parts", "time"), "Sum of the times from exit to entry.", |row: &Row<'r>| {
            Some(row.tally.durations.sum())
        })
        .only_in_tables()
        .shown(WHO_PAYS, 6),
        Column::text(("handled_by", "exits handled by"), "Number of exits by handler.", |row: &Row<'r>| {
            Some(handled_by(row))
        })
        .only_in_tables()
        .shown(WHO_PAYS, 4),
    ]
}

/// CPU time of handling, and the time of which that is unknown.
pub(super) fn costs<'r>() -> Vec<Column<Row<'r>>> {
    let unknown = "sched_switch was not recorded, so running cannot be distinguished from waiting";
    let percentile = |names, help, at: usize| {
        let cost_of = move |row: &Row<'r>| {
            row.parts.cost_ns.and(row.cost_percentiles.get(at).copied().flatten())
        };
        Column::time(names, help, cost_of).null(unknown)
    };
    vec![
        Column::time(
            ("cost", "cost"),
            "CPU time spent on handling the exits: before_exit_ns + kernel_ns + user_ns, with user_and_return_ns or not_split_ns \
             instead of null parts.",
            |row: &Row<'r>| row.parts.cost_ns,
        )
        .null(unknown)
        .shown_if(HOW_LONG, 1, |row| row.parts.cost_ns.is_some() && !row.waiting)
        .shown_if_known(WHO_PAYS, 5)
        .after("time"),
        Column::ratio(
            ("cost_share", "cost%"),
            "Share of the cost of all exits of the recording, without waiting exits.",
            |row: &Row<'r>| {
                let cost_ns = row.parts.cost_ns.filter(|_| !row.waiting)?;
                column::ratio(cost_ns, row.totals.cost_ns?)
            },
        )
        .null("the cost is unknown, or these are waiting exits")
        .shown_if_known(HOW_LONG, 4)
        .after("cost"),
        percentile(("cost_p50", "cost p50"), "Median of the exits' costs, as exact as p50_ns.", 0),
        percentile(("cost_p99", "cost p99"), "99th percentile of the exits' costs, as exact as p50_ns.", 1),
        Column::time(
            ("not_split", "not split"),
            "Time that cannot be split into kernel, user space and waiting; 0 if kernel_ns is known. For waiting exits in a \
             recording without sched_switch: halted time.",
            |row: &Row<'r>| Some(row.parts.not_split_ns),
        )
        .shown_if(WHO_PAYS, 0, |row| row.parts.not_split_ns > 0 && !row.halted())
        .after("user_and_return"),
        Column::time(("halted", "halted"), "The guest waited for work.", |row: &Row<'r>| {
            Some(row.parts.not_split_ns)
        })
        .only_in_tables()
        .shown_if(WHO_PAYS, 0, |row| row.parts.not_split_ns > 0 && row.halted())
        .after("user_and_return"),
    ]
}

/// Handlers of a row's exits, by share of their number.
fn handled_by(row: &Row<'_>) -> String {
    let tally = row.tally;
    if !row.exits().recorded.user && tally.by_l1 == 0 {
        return "not recorded".to_owned();
    }
    let all = tally.paired();
    let classes = [("kernel", tally.by_kernel), ("user space", tally.by_user), ("L1", tally.by_l1)];
    let named: Vec<String> = classes
        .into_iter()
        .filter(|(_, number)| *number > 0)
        .map(|(name, number)| match number as f64 * 100.0 / all as f64 {
            _ if number == all => name.to_owned(),
            percent if percent < 0.5 => format!("{name} <1%"),
            percent if percent >= 99.5 => format!("{name} >99%"),
            percent => format!("{name} {percent:.0}%"),
        })
        .collect();
    named.join(", ")
}
