//! The columns of a profile.

use analyses::profile::CodeFrame;

use super::lines::{Line, Modes};
use crate::column::{self, Column, Described, Unit};

/// The one table there is.
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
    columns.retain(|one| !ONLY_OF_ONE_STATE.contains(&one.name.as_str()));
    columns
}

/// The columns of tables and CSV whose rows are instructions.
pub(super) fn of_instructions<'r>() -> Vec<Column<Line<'r>>> {
    // Kernels of host and guest have functions of the same names.
    let shown = |one: Column<Line<'r>>| match one.name.as_str() {
        "machine" => one.shown(TABLE, 2),
        _ => one,
    };
    let mut columns: Vec<_> = who().into_iter().map(shown).collect();
    columns.extend(what());
    columns.extend(instructions());
    columns.extend(times());
    columns.retain(|one| !["level", "comm", "state", "reason"].contains(&one.name.as_str()));
    columns
}

fn instructions<'r>() -> Vec<Column<Line<'r>>> {
    vec![
        Column::number(
            ("offset", "at"),
            Unit::Id,
            "Bytes from the function's beginning.",
            |one: &Line<'_>| one.instruction().map(|at| at.into),
        )
        .drawn_as(|one: &Line<'_>| {
            let named = one.instruction().filter(|_| one.function().is_some_and(CodeFrame::is_named));
            named.map_or_else(|| "-".to_owned(), |at| format!("+{:#x}", at.into))
        })
        .null("no sample says")
        .only_in_csv()
        .shown_if_known(TABLE, 0)
        .missing("-"),
        Column::text(("instruction", "instruction"), "The instruction.", |one: &Line<'_>| {
            one.instruction()?.text.clone()
        })
        .null("its code is not to be had here")
        .only_in_csv()
        .shown_if_known(TABLE, 0)
        .missing("-"),
        Column::flag(
            ("after_guest", "after the guest"),
            "Samples land here whatever took the time: the instruction before it ran the guest, or lets \
             interrupts in.",
            |one: &Line<'_>| one.instruction().is_some_and(|at| at.is_after_guest),
        )
        .only_in_csv()
        .shown_if(TABLE, 1, |one| one.instruction().is_some_and(|at| at.is_after_guest)),
    ]
}

/// Columns that say nothing of rows with several states.
const ONLY_OF_ONE_STATE: [&str; 5] = ["machine", "level", "ci_low", "ci_high", "evidence"];

fn modes<'r>() -> Vec<Column<Line<'r>>> {
    let mode = |name: &str, title: &str, help: &str, of: fn(&Modes) -> u64| {
        let share = move |one: &Line<'_>| column::ratio(of(&one.modes), one.whole_ns);
        let title_of_share = format!("{title}%");
        [
            Column::time((name, title), help, move |one: &Line<'_>| Some(of(&one.modes))),
            Column::ratio((&format!("{name}%"), &title_of_share), help, share)
                .only_in_tables()
                .shown(TABLE, 0),
        ]
    };
    [
        mode("sys", "sys", "In the host's kernel.", |one| one.sys_ns),
        mode("usr", "usr", "In the VMM.", |one| one.usr_ns),
        mode("guest_sys", "guest sys", "In the guest's kernel.", |one| one.guest_sys_ns),
        mode("guest_usr", "guest usr", "In the guest's user space.", |one| one.guest_usr_ns),
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
            |one: &Line<'_>| {
                if one.key.part.is_some() {
                    return Some("host".to_owned());
                }
                let is_guests = match one.key.state {
                    Some(state) => state.is_guest() && !one.host_code,
                    None => one.function().map(|_| !one.host_code)?,
                };
                Some(if is_guests { one.key.vm } else { "host" }.to_owned())
            },
        ),
        Column::number(
            ("level", "level"),
            Unit::Level,
            "1: the VM; 2: a guest inside it ran, or left by this exit.",
            |one: &Line<'_>| one.key.level.map(u64::from),
        )
        .null("rows are of all levels")
        .shown_if(TABLE, 4, |one| one.key.level.is_some_and(|level| level > 1))
        .after("vm"),
        Column::text(("vm", "VM"), "The VM; null: it is a host's thread, and no vCPU is recorded.", |one: &Line<'_>| {
            Some(one.key.vm.to_owned()).filter(|vm| !vm.is_empty())
        })
        .null("it is a host's thread, and no vCPU is recorded")
        .shown_if_known(TABLE, 3)
        .missing("-"),
        Column::number(("vcpu", "vCPU"), Unit::Id, "Number of the vCPU.", |one: &Line<'_>| {
            one.key.vcpu.map(u64::from)
        }).null("it is another thread, or no vCPU is recorded")
        .only_in_json(),
        Column::text(
            ("comm", "thread"),
            "The guest's thread that ran, where its recording says; of the host's states the vCPU's thread.",
            |one: &Line<'_>| one.key.comm.map(str::to_owned),
        )
        .null("it is not known, or rows are not of threads")
        .shown_if_known(TABLE, 0)
        .missing("-"),
    ]
}

fn what<'r>() -> Vec<Column<Line<'r>>> {
    vec![
        Column::text(("state", "state"), "What the vCPU did: the states of `hyperscope cpu`. Of a guest without a recording of its own that says, guest_user or guest_kernel by the address of the code: the upper half of addresses is taken for the kernel's. host: a thread that is no vCPU ran (`--threads`); those rows are on top of the time of vCPUs.", |one: &Line<'_>| {
            let state = one.key.state.map(|state| state.name().to_owned());
            state.or_else(|| one.key.part.map(|_| "host".to_owned()))
        })
        .shown_if_known(TABLE, 0),
        Column::text(
            ("reason", "exit"),
            "The exit that was handled, by the kernel's name.",
            |one: &Line<'_>| one.key.reason.map(str::to_owned),
        )
        .null("no exit was handled, or rows are not of exits")
        .shown_if_known(TABLE, 0)
        .missing("-"),
        Column::text(("function", "function"), "The function, or its module.", |one: &Line<'_>| {
            one.function().map(CodeFrame::name)
        })
        .null("no sample says")
        .only_in_csv()
        .shown_if_known(TABLE, 0)
        .missing("-"),
    ]
}

fn times<'r>() -> Vec<Column<Line<'r>>> {
    vec![
        Column::time(("time", "time"), "Its time.", |one: &Line<'_>| Some(one.time.ns))
            .shown(TABLE, 0),
        Column::ratio(("share", "share"), "Share of what the table is of.", |one: &Line<'_>| {
            column::ratio(one.time.ns, one.whole_ns)
        })
        .only_in_tables()
        .shown(TABLE, 0),
        Column::ratio(("from", "from"), "Lower end of the share's interval.", |one: &Line<'_>| {
            column::ratio(one.time.low_ns, one.whole_ns).filter(|_| one.evidence.has_samples())
        })
        .only_in_tables()
        .shown_if_known(TABLE, 2)
        .missing("-"),
        Column::ratio(("to", "to"), "Its upper end.", |one: &Line<'_>| {
            let share = column::ratio(one.time.high_ns, one.whole_ns).map(|share| share.min(1.0));
            share.filter(|_| one.evidence.has_samples())
        })
        .only_in_tables()
        .shown_if_known(TABLE, 2)
        .missing("-"),
        Column::number(
            ("samples", "samples"),
            Unit::Count,
            "Samples that the row is made of; 0: its time is known without.",
            |one: &Line<'_>| Some(one.time.samples),
        )
        .shown(TABLE, 1),
        Column::time(
            ("ci_low", "from"),
            "Lower end of an interval of 95% of the time, if each sample were drawn by itself. The time itself where it needs no sample.",
            |one: &Line<'_>| Some(one.time.low_ns),
        ),
        Column::time(("ci_high", "to"), "Its upper end.", |one: &Line<'_>| Some(one.time.high_ns)),
        Column::text(
            ("evidence", "evidence"),
            "What says which code ran. host: samples that the host took. agent: samples that the guest took of itself, with the shares of functions that the host saw. exits: where the guest was when interrupts of the host ended its run. none: nothing; `stack` is empty.",
            |one: &Line<'_>| Some(one.evidence.name()),
        ).one_of(["host", "agent", "exits", "none"]),
    ]
}
