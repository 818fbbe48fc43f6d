//! Tables of the CPU report.

use analyses::{HostCpuUse, Part, StateTimes, TaskUse, ThreadUse, VcpuState, VcpuUse, VmUse};
use printable::line;

use super::known::Known;
use super::rows::{PARTS, known_of_task, known_of_vcpu, known_of_vm};
use super::{CpuBy, CpuReport};
use crate::exits;
use crate::losses;
use crate::table::Table;
use crate::units::{count, plural, share, time};

/// Columns of states: title, states, and how soon a narrow terminal drops it.
const COLUMNS: [(&str, &[VcpuState], u8); 14] = [
    ("user", &[VcpuState::GuestUser], 1),
    ("kernel", &[VcpuState::GuestKernel], 1),
    ("irq", &[VcpuState::GuestIrq], 2),
    ("guest", &[VcpuState::Guest], 0),
    ("guest idle", &[VcpuState::GuestIdle], 1),
    ("exit kernel", &[VcpuState::BeforeExit, VcpuState::ExitKernel], 0),
    ("exit user", &[VcpuState::ExitUser], 0),
    ("not split", &[VcpuState::NotSplit], 0),
    ("run queue", &[VcpuState::Waiting], 1),
    ("preempted", &[VcpuState::Preempted], 1),
    ("halt poll", &[VcpuState::HaltPoll], 2),
    ("halted", &[VcpuState::Halted], 1),
    ("blocked", &[VcpuState::Blocked], 2),
    ("unknown", &[VcpuState::Unknown], 1),
];

pub(super) fn text(report: &CpuReport, width: Option<usize>) -> String {
    let cpu = &report.cpu;
    let vcpus = cpu.vcpus.len();
    let mut out = format!("{}: ", line(&report.sources.join(", ")));
    if vcpus == 0 && cpu.tasks.is_empty() && cpu.threads.is_empty() {
        out += "nothing that shows who used the CPUs: it takes switches of threads (sched), and \
                kvm_entry and kvm_exit for vCPUs\n";
        return out + &notes(report, &[]);
    }
    let span = time(cpu.span_ns, cpu.nanoseconds);
    out += &match vcpus {
        0 => format!("{span}, no vCPUs\n\n"),
        _ => format!("{span}, {}\n\n", plural(vcpus as u64, "vCPU")),
    };
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
    match by {
        CpuBy::Vm if !cpu.vms.is_empty() => Some((
            "VMs: shares of the time of their vCPUs, and CPU time of the host's threads that serve them",
            vm_table(report, &cpu.vms),
        )),
        CpuBy::Vcpu if !cpu.vcpus.is_empty() => {
            Some(("vCPUs: what they did, in shares of their time", vcpu_table(report, &cpu.vcpus)))
        }
        CpuBy::Thread => {
            let serves = |one: &&ThreadUse| PARTS.contains(&one.part) || report.idle;
            let rows: Vec<_> = cpu.threads.iter().filter(serves).collect();
            let title =
                "Threads of the host that serve VMs: true use is without idling and polling";
            (!rows.is_empty()).then(|| (title, thread_table(report, top(report, &rows))))
        }
        CpuBy::Task => {
            let shown = |one: &&TaskUse| one.task != 0 || report.idle;
            let rows: Vec<_> = cpu.tasks.iter().filter(shown).collect();
            let with_host = rows.iter().any(|one| known_of_task(report, one).host.is_some());
            let title = if with_host {
                "Threads of guests: what they really ran of the time the guest gave them"
            } else {
                "Threads of guests: the time the guest gave them (what they ran needs the host's recording)"
            };
            (!rows.is_empty()).then(|| (title, task_table(report, top(report, &rows))))
        }
        CpuBy::Cpu if !cpu.cpus.is_empty() => {
            Some(("CPUs of hosts: whose threads had them", cpu_table(report, &cpu.cpus)))
        }
        _ => None,
    }
}

fn top<'r, R>(report: &CpuReport, rows: &'r [R]) -> &'r [R] {
    let shown = report.top.unwrap_or(rows.len()).min(rows.len());
    rows.get(..shown).unwrap_or(rows)
}

/// One column a state, those left out that are zero everywhere.
fn state_columns(table: &mut Table, rows: &[(&StateTimes, Known)]) {
    for (title, states, rank) in COLUMNS {
        if rows.iter().all(|(times, _)| times.of_all(states) == 0) {
            continue;
        }
        let cell = |(times, known): &(&StateTimes, Known)| {
            let known_state = states.iter().any(|&state| known.knows(state));
            if known_state { share(times.of_all(states), times.total()) } else { "-".to_owned() }
        };
        table.numbers(title, rank, rows.iter().map(cell).collect());
    }
}

fn vm_table(report: &CpuReport, vms: &[VmUse]) -> Table {
    let mut table = Table::default();
    let ns = report.cpu.nanoseconds;
    sources(&mut table, report, vms.iter().map(|one| one.recording).collect());
    table.names("VM", 0, vms.iter().map(|one| one.name.clone()).collect());
    table.numbers("vCPUs", 1, vms.iter().map(|one| count(one.vcpus as u64)).collect());
    let known: Vec<_> = vms.iter().map(|one| (&one.times, known_of_vm(report, one))).collect();
    state_columns(&mut table, &known);
    let busy = |one: &VmUse| time(one.times.busy(), ns);
    table.numbers("vCPUs, true use", 0, vms.iter().map(busy).collect());
    for (part, title) in [(Part::Vmm, "VMM"), (Part::Vhost, "vhost"), (Part::Kvm, "kvm")] {
        let of =
            |one: &VmUse| one.by_part.as_ref().map(|parts| parts.get(&part).copied().unwrap_or(0));
        if vms.iter().any(|one| of(one).is_some_and(|part_ns| part_ns > 0)) {
            let cell =
                |one: &VmUse| of(one).map_or_else(|| "-".to_owned(), |part_ns| time(part_ns, ns));
            table.numbers(title, 1, vms.iter().map(cell).collect());
        }
    }
    table
}

fn vcpu_table(report: &CpuReport, vcpus: &[VcpuUse]) -> Table {
    let mut table = Table::default();
    let ns = report.cpu.nanoseconds;
    sources(&mut table, report, vcpus.iter().map(|one| one.recording).collect());
    let name = |one: &VcpuUse| report.vm_name(one.recording, one.vm).unwrap_or("-").to_owned();
    table.names("VM", 0, vcpus.iter().map(name).collect());
    table.numbers("vCPU", 0, vcpus.iter().map(|one| one.vcpu.to_string()).collect());
    table.numbers("time", 0, vcpus.iter().map(|one| time(one.times.total(), ns)).collect());
    let known: Vec<_> = vcpus.iter().map(|one| (&one.times, known_of_vcpu(report, one))).collect();
    state_columns(&mut table, &known);
    if vcpus.iter().any(|one| one.level_two_ns > 0) {
        let level_two = |one: &VcpuUse| share(one.level_two_ns, one.times.total());
        table.numbers("in level 2", 1, vcpus.iter().map(level_two).collect());
    }
    table
}

fn thread_table(report: &CpuReport, threads: &[&ThreadUse]) -> Table {
    let mut table = Table::default();
    let ns = report.cpu.nanoseconds;
    let span = report.cpu.span_ns;
    sources(&mut table, report, threads.iter().map(|one| one.recording).collect());
    let vm = |one: &&ThreadUse| {
        let name = one.vm.and_then(|vm| report.vm_name(one.recording, vm));
        name.unwrap_or("-").to_owned()
    };
    table.names("VM", 0, threads.iter().map(vm).collect());
    table.names("part", 0, threads.iter().map(|one| one.part.name().to_owned()).collect());
    table.names(
        "thread",
        0,
        threads.iter().map(|one| named(one.name.as_deref(), one.thread)).collect(),
    );
    table.numbers("CPU time", 1, threads.iter().map(|one| time(one.cpu_ns, ns)).collect());
    let optional =
        |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| time(value, ns));
    let is_vcpu = |one: &ThreadUse| one.part == Part::Vcpu;
    let idle = |one: &&ThreadUse| optional(one.guest_idle_ns);
    table.numbers("guest idle", 1, threads.iter().map(idle).collect());
    let polled = |one: &&ThreadUse| optional(is_vcpu(one).then_some(one.halt_poll_ns));
    table.numbers("halt poll", 1, threads.iter().map(polled).collect());
    table.numbers("true use", 0, threads.iter().map(|one| time(one.busy_ns(), ns)).collect());
    table.numbers("of a CPU", 0, threads.iter().map(|one| share(one.busy_ns(), span)).collect());
    table
}

fn task_table(report: &CpuReport, tasks: &[&TaskUse]) -> Table {
    let mut table = Table::default();
    let ns = report.cpu.nanoseconds;
    sources(&mut table, report, tasks.iter().map(|one| one.recording).collect());
    let vm = |one: &&TaskUse| report.vm_of_guest(one.recording).unwrap_or("-").to_owned();
    table.names("VM", 0, tasks.iter().map(vm).collect());
    table.names(
        "thread",
        0,
        tasks.iter().map(|one| named(one.name.as_deref(), one.task)).collect(),
    );
    table.numbers("given", 0, tasks.iter().map(|one| time(one.times.total(), ns)).collect());
    let with_host = |one: &TaskUse| known_of_task(report, one).host.is_some();
    if tasks.iter().any(|one| with_host(one)) {
        let or_dash = |one: &TaskUse, cell: String| if with_host(one) { cell } else { "-".into() };
        let ran = |one: &&TaskUse| or_dash(one, time(one.times.guest(), ns));
        table.numbers("ran", 0, tasks.iter().map(ran).collect());
        let part = |one: &&TaskUse| or_dash(one, share(one.times.guest(), one.times.total()));
        table.numbers("share", 0, tasks.iter().map(part).collect());
    }
    let cell = |states: &'static [VcpuState]| {
        let cells = tasks.iter().map(|one| {
            let known = known_of_task(report, one);
            let known_state = states.iter().any(|&state| known.knows(state));
            if known_state { time(one.times.of_all(states), ns) } else { "-".to_owned() }
        });
        (cells.collect::<Vec<_>>(), tasks.iter().any(|one| one.times.of_all(states) > 0))
    };
    use VcpuState as S;
    let columns: [(&str, &'static [VcpuState], u8); 7] = [
        ("in irqs", &[S::GuestIrq], 2),
        ("exit kernel", &[S::BeforeExit, S::ExitKernel], 1),
        ("exit user", &[S::ExitUser], 1),
        ("not split", &[S::NotSplit], 1),
        ("stolen", &[S::Waiting, S::Preempted], 0),
        ("halted", &[S::HaltPoll, S::Halted, S::Blocked], 1),
        ("unknown", &[S::Unknown], 1),
    ];
    for (title, states, rank) in columns {
        let (cells, any) = cell(states);
        if any {
            table.numbers(title, rank, cells);
        }
    }
    table
}

fn cpu_table(report: &CpuReport, cpus: &[HostCpuUse]) -> Table {
    let mut table = Table::default();
    sources(&mut table, report, cpus.iter().map(|one| one.recording).collect());
    table.numbers("CPU", 0, cpus.iter().map(|one| one.cpu.to_string()).collect());
    let whole = |one: &HostCpuUse| {
        one.by_part.values().fold(one.unknown_ns, |sum, ns| sum.saturating_add(*ns))
    };
    let time_of = |one: &HostCpuUse| time(whole(one), report.cpu.nanoseconds);
    table.numbers("time", 1, cpus.iter().map(time_of).collect());
    for part in PARTS.into_iter().chain([Part::Other, Part::Idle]) {
        let of = |one: &HostCpuUse| one.by_part.get(&part).copied().unwrap_or(0);
        if cpus.iter().any(|one| of(one) > 0) {
            let cell = |one: &HostCpuUse| share(of(one), whole(one));
            table.numbers(part.name(), 0, cpus.iter().map(cell).collect());
        }
    }
    if cpus.iter().any(|one| one.unknown_ns > 0) {
        let cell = |one: &HostCpuUse| share(one.unknown_ns, whole(one));
        table.numbers("unknown", 0, cpus.iter().map(cell).collect());
    }
    table
}

/// A column that names the recording, where rows are of several.
fn sources(table: &mut Table, report: &CpuReport, recordings: Vec<usize>) {
    if recordings.windows(2).any(|pair| pair.first() != pair.last()) {
        let names = recordings.into_iter().map(|one| report.source(one).to_owned());
        table.names("recording", 1, names.collect());
    }
}

fn named(name: Option<&str>, thread: u32) -> String {
    match (thread, name) {
        (0, _) => "idle".to_owned(),
        (_, Some(name)) => format!("{name}-{thread}"),
        (_, None) => thread.to_string(),
    }
}

/// What readers must know besides the tables.
fn notes(report: &CpuReport, left_out: &[String]) -> String {
    let cpu = &report.cpu;
    let mut notes = Vec::new();
    for vm in cpu.vms.iter().filter(|vm| vm.times.of(VcpuState::NotSplit) > 0) {
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
        notes.push(format!(
            "{}: its guest's recording covers {part} of the time of its vCPUs",
            vm.name
        ));
    }
    for (recording, placed) in &cpu.placed {
        let source = report.source(*recording);
        if placed.moved > 0 {
            notes.push(format!(
                "{source}: {} of {} changes of what runs were moved to the nearest time in the guest, \
                 by {} at most",
                count(placed.moved),
                count(placed.changes),
                time(placed.most_moved_ns, cpu.nanoseconds),
            ));
        }
        if placed.outside > 0 {
            notes.push(format!(
                "{source}: {} of {} changes of what runs are left out: the vCPU was not in its guest then",
                count(placed.outside),
                count(placed.changes),
            ));
        }
    }
    if report.by.contains(&CpuBy::Thread) && !report.idle {
        let others = cpu.threads.iter().filter(|one| one.part == Part::Other);
        let (number, sum) =
            others.fold((0, 0), |(n, sum), one| (n + 1, u64::saturating_add(sum, one.cpu_ns)));
        if number > 0 {
            let used = time(sum, cpu.nanoseconds);
            notes.push(format!(
                "{} other threads of hosts used {used} (--idle shows them)",
                count(number)
            ));
        }
    }
    cpu.losses.iter().for_each(|one| notes.extend(losses::notes(one, 0)));
    if !left_out.is_empty() {
        notes.push(format!("left out for width: {}; csv and json have all", left_out.join(", ")));
    }
    notes.extend(report.recorder_cost.iter().map(crate::RecorderCost::note));
    notes.iter().map(|note| format!("{}\n", line(note))).collect()
}
