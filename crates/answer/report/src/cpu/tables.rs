//! Tables of the CPU report.

use analyses::cpu::{TakenCpu, ThreadUse};
use analyses::states::{Part, VcpuState};
use printable::line;

use super::row::{OfRecording, PARTS, Row};
use super::{CpuBy, CpuReport, host_cpus, recorders, takers, tasks, threads, vcpus, vms};
use crate::column::{self, Column};
use crate::exits;
use crate::losses;
use crate::table::Table;
use crate::units::{count, plural, share, time};

pub(super) fn tables(report: &CpuReport, width: Option<usize>) -> String {
    if report.is_empty() {
        let help = "Record sched_switch, and kvm_entry and kvm_exit for vCPUs.\n";
        return help.to_owned() + &notes(report, &[]);
    }
    let mut out = "\n".to_owned();
    let mut left_out = Vec::new();
    for by in &report.by {
        let Some((title, table)) = table(report, *by) else { continue };
        let (drawn, narrow) = table.draw(width);
        out += &format!("{title}\n{drawn}\n");
        left_out.extend(
            narrow.into_iter().filter(|title| !left_out.contains(title)).collect::<Vec<_>>(),
        );
    }
    out + &notes(report, &left_out)
}

/// A table and its title; `None` if it has no rows.
fn table(report: &CpuReport, by: CpuBy) -> Option<(&'static str, Table)> {
    let cpu = &report.cpu;
    let (title, drawn) = match by {
        CpuBy::Vm => (
            "VMs: shares of their vCPUs' time, and CPU time of the host threads that serve them",
            drawn(report, cpu.vms.iter().collect(), vms::columns, vms::TABLE),
        ),
        CpuBy::Vcpu => (
            "vCPUs: states as shares of their time",
            drawn(report, cpu.vcpus.iter().collect(), vcpus::columns, vcpus::TABLE),
        ),
        CpuBy::Taken => (
            "Run queue: threads that ran while vCPUs waited for the CPU",
            drawn(report, most_taken(report), takers::columns, takers::TABLE),
        ),
        CpuBy::Thread => {
            let serves = |thread: &&ThreadUse| PARTS.contains(&thread.part) || report.idle;
            let rows = top(report, cpu.threads.iter().filter(serves));
            (
                "Host threads that serve VMs: true use excludes idling and polling",
                drawn(report, rows, threads::columns, threads::TABLE),
            )
        }
        CpuBy::Task => {
            let rows = || cpu.tasks.iter().filter(|task| task.task != 0 || report.idle);
            let title = if rows().any(|subject| tasks::has_host(&Row { report, subject })) {
                "Guest threads: how much of their scheduled time they really ran"
            } else {
                "Guest threads: time scheduled by the guest (the time really run needs the host's recording)"
            };
            (title, drawn(report, top(report, rows()), tasks::columns, tasks::TABLE))
        }
        CpuBy::Cpu => (
            "Host CPUs: threads that used them",
            drawn(report, cpu.cpus.iter().collect(), host_cpus::columns, host_cpus::TABLE),
        ),
    };
    Some((title, drawn?))
}

/// Default max threads per VM: most threads have little time.
const MAX_TAKERS: usize = 5;

/// The threads with most time in each VM; without `--top`, as many as are worth a line.
fn most_taken(report: &CpuReport) -> Vec<&TakenCpu> {
    let max = report.top.unwrap_or(MAX_TAKERS);
    let mut shown: Vec<&TakenCpu> = Vec::new();
    for taker in &report.cpu.takers {
        let is_same =
            |other: &&&TakenCpu| other.recording == taker.recording && other.vm == taker.vm;
        if shown.iter().filter(is_same).count() < max {
            shown.push(taker);
        }
    }
    shown.sort_by(|a, b| (a.recording, &a.vm).cmp(&(b.recording, &b.vm)));
    shown
}

fn top<'r, T>(report: &CpuReport, rows: impl Iterator<Item = &'r T>) -> Vec<&'r T> {
    rows.take(report.top.unwrap_or(usize::MAX)).collect()
}

/// The table of some rows; `None` without rows.
fn drawn<'r, T: OfRecording>(
    report: &'r CpuReport,
    rows: Vec<&'r T>,
    columns: fn(bool) -> Vec<Column<Row<'r, T>>>,
    name: &str,
) -> Option<Table> {
    let first = rows.first()?.recording();
    let several = rows.iter().any(|subject| subject.recording() != first);
    let rows: Vec<Row<'r, T>> = rows.into_iter().map(|subject| Row { report, subject }).collect();
    let mut table = Table::default();
    column::draw(&columns(several), &mut table, name, &rows);
    Some(table)
}

/// Notes besides the tables.
fn notes(report: &CpuReport, left_out: &[String]) -> String {
    let cpu = &report.cpu;
    let mut notes = Vec::new();
    for vm in cpu.vms.iter().filter(|vm| vm.times.in_state(VcpuState::NotSplit) > 0) {
        let recorded = cpu.recorded.get(vm.recording);
        let note = recorded.and_then(exits::not_split).map(|note| format!("{}: {note}", vm.name));
        notes.extend(note);
    }
    for vm in &cpu.vms {
        let Some(guest_known_ns) =
            vm.guest_known_ns.filter(|guest_known_ns| *guest_known_ns < vm.times.total())
        else {
            continue;
        };
        let part = share(guest_known_ns, vm.times.total());
        notes.push(format!("{}: the guest's recording covers {part} of its vCPUs' time", vm.name));
    }
    for (recording, placed) in &cpu.placed {
        let source = report.source(*recording);
        if placed.moved > 0 {
            notes.push(format!(
                "{source}: {} of {} of the running thread were moved to the nearest time in the guest, by at most {}",
                count(placed.moved),
                plural(placed.changes, "change"),
                time(placed.most_moved_ns, cpu.nanoseconds),
            ));
        }
        if placed.outside > 0 {
            notes.push(format!(
                "{source}: {} of {} of the running thread were left out: the vCPU was not in its guest",
                count(placed.outside),
                plural(placed.changes, "change"),
            ));
        }
    }
    if report.by.contains(&CpuBy::Thread) && !report.idle {
        let others = cpu.threads.iter().filter(|thread| thread.part == Part::Other);
        let (number, sum) = others
            .fold((0, 0), |(n, sum), thread| (n + 1, u64::saturating_add(sum, thread.cpu_ns)));
        if number > 0 {
            let used = time(sum, cpu.nanoseconds);
            notes.push(format!(
                "{} of the hosts used {used} (--idle shows them)",
                plural(number, "other thread")
            ));
        }
    }
    notes.extend(recorders::notes(cpu));
    cpu.losses.iter().for_each(|loss| notes.extend(losses::notes(loss, 0)));
    if !left_out.is_empty() {
        notes.push(format!(
            "hidden to fit the width: {}; csv and json show all",
            left_out.join(", ")
        ));
    }
    notes.extend(report.recorder_cost.iter().map(crate::RecorderCost::note));
    notes.iter().map(|note| format!("{}\n", line(note))).collect()
}
