//! The columns of a profile.

use analyses::profile::CodeFrame;

use super::lines::{Line, Modes};
use crate::column::{self, Column, Described, Unit};

pub(super) const TABLE: &str = "profile";

impl<'r> Described for Line<'r> {
    fn all_columns() -> Vec<Column<Self>> {
        columns()
    }
}

/// All columns, in the order of JSON and CSV.
pub(super) fn columns<'r>() -> Vec<Column<Line<'r>>> {
    let mut columns = who();
    columns.extend(what());
    columns.extend(times());
    columns
}

/// The columns of tables and CSV whose rows are threads.
pub(super) fn of_threads<'r>() -> Vec<Column<Line<'r>>> {
    let mut columns = who();
    columns.extend(modes());
    columns.extend(times());
    columns.retain(|column| !ONLY_OF_ONE_STATE.contains(&column.name.as_str()));
    columns
}

/// The columns of tables and CSV whose rows are instructions.
pub(super) fn of_instructions<'r>() -> Vec<Column<Line<'r>>> {
    // Kernels of host and guest have functions with the same names.
    let shown = |column: Column<Line<'r>>| match column.name.as_str() {
        "machine" => column.shown(TABLE, 2),
        _ => column,
    };
    let mut columns: Vec<_> = who().into_iter().map(shown).collect();
    columns.extend(what());
    columns.extend(instructions());
    columns.extend(times());
    columns.retain(|column| !["level", "comm", "state", "reason"].contains(&column.name.as_str()));
    columns
}

fn instructions<'r>() -> Vec<Column<Line<'r>>> {
    vec![
        Column::number(
            ("offset", "at"),
            Unit::Id,
            "Offset from the beginning of the function, in bytes.",
            |line: &Line<'_>| line.instruction().map(|at| at.into),
        )
        .drawn_as(|line: &Line<'_>| {
            let named = line.instruction().filter(|_| line.function().is_some_and(CodeFrame::is_named));
            named.map_or_else(|| "-".to_owned(), |at| format!("+{:#x}", at.into))
        })
        .null("no sample shows it")
        .only_in_csv()
        .shown_if_known(TABLE, 0)
        .missing("-"),
        Column::text(("instruction", "instruction"), "The instruction.", |line: &Line<'_>| {
            line.instruction()?.text.clone()
        })
        .null("its code is not available on this machine")
        .only_in_csv()
        .shown_if_known(TABLE, 0)
        .missing("-"),
        Column::flag(
            ("after_guest", "after the guest"),
            "Samples land here regardless of what took the time: the instruction before it ran the guest or enabled interrupts.",
            |line: &Line<'_>| line.instruction().is_some_and(|at| at.is_after_guest),
        )
        .only_in_csv()
        .shown_if(TABLE, 1, |line| line.instruction().is_some_and(|at| at.is_after_guest)),
    ]
}

/// Columns without meaning for rows of several states.
const ONLY_OF_ONE_STATE: [&str; 5] = ["machine", "level", "ci_low", "ci_high", "evidence"];

fn modes<'r>() -> Vec<Column<Line<'r>>> {
    let mode = |name: &str, title: &str, help: &str, time_of: fn(&Modes) -> u64| {
        let share = move |line: &Line<'_>| column::ratio(time_of(&line.modes), line.whole_ns);
        let title_of_share = format!("{title}%");
        [
            Column::time((name, title), help, move |line: &Line<'_>| Some(time_of(&line.modes))),
            Column::ratio((&format!("{name}%"), &title_of_share), help, share)
                .only_in_tables()
                .shown(TABLE, 0),
        ]
    };
    [
        mode("sys", "sys", "Time in the host's kernel.", |modes| modes.sys_ns),
        mode("usr", "usr", "Time in the VMM.", |modes| modes.usr_ns),
        mode("guest_sys", "guest sys", "Time in the guest's kernel.", |modes| modes.guest_sys_ns),
        mode("guest_usr", "guest usr", "Time in the guest's user space.", |modes| {
            modes.guest_usr_ns
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn who<'r>() -> Vec<Column<Line<'r>>> {
    vec![
        Column::text(
            ("machine", "machine"),
            "The machine whose code ran: the VM, or host.",
            |line: &Line<'_>| {
                if line.key.part.is_some() {
                    return Some("host".to_owned());
                }
                let is_guests = match line.key.state {
                    Some(state) => state.is_guest() && !line.host_code,
                    None => line.function().map(|_| !line.host_code)?,
                };
                Some(if is_guests { line.key.vm } else { "host" }.to_owned())
            },
        ),
        Column::number(
            ("level", "level"),
            Unit::Level,
            "1: the VM; 2: a guest inside it, while it ran or for its exit.",
            |line: &Line<'_>| line.key.level.map(u64::from),
        )
        .null("rows cover all levels")
        .shown_if(TABLE, 4, |line| line.key.level.is_some_and(|level| level > 1))
        .after("vm"),
        Column::text(("vm", "VM"), "The VM; null: a host thread without a recorded vCPU.", |line: &Line<'_>| {
            Some(line.key.vm.to_owned()).filter(|vm| !vm.is_empty())
        })
        .null("it is a host thread without a recorded vCPU")
        .shown_if_known(TABLE, 3)
        .missing("-"),
        Column::number(("vcpu", "vCPU"), Unit::Id, "Number of the vCPU.", |line: &Line<'_>| {
            line.key.vcpu.map(u64::from)
        }).null("it is another thread, or no vCPU was recorded")
        .only_in_json(),
        Column::text(
            ("comm", "thread"),
            "The guest's thread that ran, if its recording shows it; for host states, the vCPU's thread.",
            |line: &Line<'_>| line.key.comm.map(str::to_owned),
        )
        .null("it is unknown, or rows are not grouped by thread")
        .shown_if_known(TABLE, 0)
        .missing("-"),
    ]
}

fn what<'r>() -> Vec<Column<Line<'r>>> {
    vec![
        Column::text(("state", "state"), "State of the vCPU, as in `hyperscope cpu`. If the guest's own recording does not show \
                                          guest_user or guest_kernel, the code's address decides: the upper half of addresses \
                                          counts as kernel. host: a thread that is not a vCPU ran (`--threads`); these rows are \
                                          in addition to the time of vCPUs.", |line: &Line<'_>| {
            let state = line.key.state.map(|state| state.name().to_owned());
            state.or_else(|| line.key.part.map(|_| "host".to_owned()))
        })
        .shown_if_known(TABLE, 0),
        Column::text(
            ("reason", "exit"),
            "The handled exit, by the kernel's name.",
            |line: &Line<'_>| line.key.reason.map(str::to_owned),
        )
        .null("no exit was handled, or rows are not grouped by exit")
        .shown_if_known(TABLE, 0)
        .missing("-"),
        Column::text(("function", "function"), "The function, or its module.", |line: &Line<'_>| {
            line.function().map(CodeFrame::name)
        })
        .null("no sample shows it")
        .only_in_csv()
        .shown_if_known(TABLE, 0)
        .missing("-"),
    ]
}

fn times<'r>() -> Vec<Column<Line<'r>>> {
    vec![
        Column::time(("time", "time"), "Its time.", |line: &Line<'_>| Some(line.time.ns))
            .shown(TABLE, 0),
        Column::ratio(("share", "share"), "Share of the table's total.", |line: &Line<'_>| {
            column::ratio(line.time.ns, line.whole_ns)
        })
        .only_in_tables()
        .shown(TABLE, 0),
        Column::ratio(("from", "from"), "Lower end of the share's interval.", |line: &Line<'_>| {
            column::ratio(line.time.low_ns, line.whole_ns).filter(|_| line.evidence.has_samples())
        })
        .only_in_tables()
        .shown_if_known(TABLE, 2)
        .missing("-"),
        Column::ratio(("to", "to"), "Upper end of the interval.", |line: &Line<'_>| {
            let share = column::ratio(line.time.high_ns, line.whole_ns).map(|share| share.min(1.0));
            share.filter(|_| line.evidence.has_samples())
        })
        .only_in_tables()
        .shown_if_known(TABLE, 2)
        .missing("-"),
        Column::number(
            ("samples", "samples"),
            Unit::Count,
            "Samples behind the row; 0: its time is known without samples.",
            |line: &Line<'_>| Some(line.time.samples),
        )
        .shown(TABLE, 3),
        Column::time(
            ("ci_low", "from"),
            "Lower end of a 95% interval of the time, assuming independent samples. Equals the time if no samples are needed.",
            |line: &Line<'_>| Some(line.time.low_ns),
        ),
        Column::time(("ci_high", "to"), "Upper end of the interval.", |line: &Line<'_>| Some(line.time.high_ns)),
        Column::text(
            ("evidence", "evidence"),
            "Evidence for the code that ran. host: samples by the host. agent: samples by the guest, with the functions' shares \
             that the host saw. exits: the guest's instruction when a host interrupt ended its run. none: no evidence; `stack` \
             is empty.",
            |line: &Line<'_>| Some(line.evidence.name()),
        ).one_of(["host", "agent", "exits", "none"]),
    ]
}
