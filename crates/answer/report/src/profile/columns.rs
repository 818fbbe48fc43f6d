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
    // Kernels of host and guest have functions of the same names.
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
            "Bytes from the function's beginning.",
            |line: &Line<'_>| line.instruction().map(|at| at.into),
        )
        .drawn_as(|line: &Line<'_>| {
            let named = line.instruction().filter(|_| line.function().is_some_and(CodeFrame::is_named));
            named.map_or_else(|| "-".to_owned(), |at| format!("+{:#x}", at.into))
        })
        .null("no sample says")
        .only_in_csv()
        .shown_if_known(TABLE, 0)
        .missing("-"),
        Column::text(("instruction", "instruction"), "The instruction.", |line: &Line<'_>| {
            line.instruction()?.text.clone()
        })
        .null("its code is not to be had here")
        .only_in_csv()
        .shown_if_known(TABLE, 0)
        .missing("-"),
        Column::flag(
            ("after_guest", "after the guest"),
            "Samples land here whatever took the time: the instruction before it ran the guest, or lets \
             interrupts in.",
            |line: &Line<'_>| line.instruction().is_some_and(|at| at.is_after_guest),
        )
        .only_in_csv()
        .shown_if(TABLE, 1, |line| line.instruction().is_some_and(|at| at.is_after_guest)),
    ]
}

/// Columns that say nothing of rows with several states.
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
        mode("sys", "sys", "In the host's kernel.", |modes| modes.sys_ns),
        mode("usr", "usr", "In the VMM.", |modes| modes.usr_ns),
        mode("guest_sys", "guest sys", "In the guest's kernel.", |modes| modes.guest_sys_ns),
        mode("guest_usr", "guest usr", "In the guest's user space.", |modes| modes.guest_usr_ns),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn who<'r>() -> Vec<Column<Line<'r>>> {
    vec![
        Column::text(
            ("machine", "machine"),
            "The VM, or host: whose code it is.",
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
            "1: the VM; 2: a guest inside it ran, or left by this exit.",
            |line: &Line<'_>| line.key.level.map(u64::from),
        )
        .null("rows are of all levels")
        .shown_if(TABLE, 4, |line| line.key.level.is_some_and(|level| level > 1))
        .after("vm"),
        Column::text(("vm", "VM"), "The VM; null: it is a host's thread, and no vCPU is recorded.", |line: &Line<'_>| {
            Some(line.key.vm.to_owned()).filter(|vm| !vm.is_empty())
        })
        .null("it is a host's thread, and no vCPU is recorded")
        .shown_if_known(TABLE, 3)
        .missing("-"),
        Column::number(("vcpu", "vCPU"), Unit::Id, "Number of the vCPU.", |line: &Line<'_>| {
            line.key.vcpu.map(u64::from)
        }).null("it is another thread, or no vCPU is recorded")
        .only_in_json(),
        Column::text(
            ("comm", "thread"),
            "The guest's thread that ran, where its recording says; of the host's states the vCPU's thread.",
            |line: &Line<'_>| line.key.comm.map(str::to_owned),
        )
        .null("it is not known, or rows are not of threads")
        .shown_if_known(TABLE, 0)
        .missing("-"),
    ]
}

fn what<'r>() -> Vec<Column<Line<'r>>> {
    vec![
        Column::text(("state", "state"), "What the vCPU did: the states of `hyperscope cpu`. Of a guest without a recording of its own that says, guest_user or guest_kernel by the address of the code: the upper half of addresses is taken for the kernel's. host: a thread that is no vCPU ran (`--threads`); those rows are on top of the time of vCPUs.", |line: &Line<'_>| {
            let state = line.key.state.map(|state| state.name().to_owned());
            state.or_else(|| line.key.part.map(|_| "host".to_owned()))
        })
        .shown_if_known(TABLE, 0),
        Column::text(
            ("reason", "exit"),
            "The exit that was handled, by the kernel's name.",
            |line: &Line<'_>| line.key.reason.map(str::to_owned),
        )
        .null("no exit was handled, or rows are not of exits")
        .shown_if_known(TABLE, 0)
        .missing("-"),
        Column::text(("function", "function"), "The function, or its module.", |line: &Line<'_>| {
            line.function().map(CodeFrame::name)
        })
        .null("no sample says")
        .only_in_csv()
        .shown_if_known(TABLE, 0)
        .missing("-"),
    ]
}

fn times<'r>() -> Vec<Column<Line<'r>>> {
    vec![
        Column::time(("time", "time"), "Its time.", |line: &Line<'_>| Some(line.time.ns))
            .shown(TABLE, 0),
        Column::ratio(("share", "share"), "Share of what the table is of.", |line: &Line<'_>| {
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
        Column::ratio(("to", "to"), "Its upper end.", |line: &Line<'_>| {
            let share = column::ratio(line.time.high_ns, line.whole_ns).map(|share| share.min(1.0));
            share.filter(|_| line.evidence.has_samples())
        })
        .only_in_tables()
        .shown_if_known(TABLE, 2)
        .missing("-"),
        Column::number(
            ("samples", "samples"),
            Unit::Count,
            "Samples that the row is made of; 0: its time is known without.",
            |line: &Line<'_>| Some(line.time.samples),
        )
        .shown(TABLE, 1),
        Column::time(
            ("ci_low", "from"),
            "Lower end of an interval of 95% of the time, if each sample were drawn by itself. The time itself where it needs no sample.",
            |line: &Line<'_>| Some(line.time.low_ns),
        ),
        Column::time(("ci_high", "to"), "Its upper end.", |line: &Line<'_>| Some(line.time.high_ns)),
        Column::text(
            ("evidence", "evidence"),
            "What says which code ran. host: samples that the host took. agent: samples that the guest took of itself, with the shares of functions that the host saw. exits: where the guest was when interrupts of the host ended its run. none: nothing; `stack` is empty.",
            |line: &Line<'_>| Some(line.evidence.name()),
        ).one_of(["host", "agent", "exits", "none"]),
    ]
}
