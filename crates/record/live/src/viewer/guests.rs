//! Guests' own views, next to the host's measurements of the same interval.

use crate::guest_views::SeenGuest;
use crate::{Interval, Vcpu};
use channel::wire::{CpuUse, GuestView, TaskUse};
use tables::Table;
use tables::units::{count, plural, share, time};
use timeline::VcpuActivity;

/// Max tasks of a guest in the tables.
const MAX_TASKS: usize = 10;
/// Max tasks in the line above the screen's keys.
const MAX_TASKS_IN_LINE: usize = 4;

/// A part of a guest's CPU time, with its name.
type Part = (&'static str, fn(&CpuUse) -> u64);

const PARTS: [Part; 5] = [
    ("user", |used| used.user_ns),
    ("system", |used| used.system_ns),
    ("irq", |used| used.irq_ns),
    ("steal", |used| used.steal_ns),
    ("idle", |used| used.idle_ns),
];

/// The guest of a VM's process.
pub(crate) fn of_process(guests: &[SeenGuest], process: u32) -> Option<&SeenGuest> {
    guests.iter().find(|guest| guest.process == Some(process))
}

/// Time of all its CPUs.
fn whole_ns(view: &GuestView) -> u64 {
    view.span_ns.saturating_mul(view.cpu_count.into())
}

/// Time in no part: the guest's kernel counts ticks, and counts a late tick once.
fn not_counted_ns(view: &GuestView) -> u64 {
    let counted = |sum: u64, (_, part): &Part| sum.saturating_add(part(&view.all_cpus));
    whole_ns(view).saturating_sub(PARTS.iter().fold(0, counted))
}

/// The tables: CPUs and tasks of guests that answered, and the errors of the others.
pub(crate) fn text(guests: &[SeenGuest], interval: &Interval, width: Option<usize>) -> String {
    let views: Vec<(&SeenGuest, &GuestView)> =
        guests.iter().filter_map(|guest| Some((guest, guest.view.as_ref().ok()?))).collect();
    let mut text = String::new();
    if !views.is_empty() {
        text.push_str("\nGuests' own views, in shares of their CPUs' time\n");
        text.push_str(&cpus(&views, interval).draw(width).0);
    }
    if views.iter().any(|(_, view)| !view.tasks.is_empty()) {
        text.push_str("\nTasks in guests, in shares of one CPU\n");
        text.push_str(&tasks(&views).draw(width).0);
    }
    for guest in guests {
        if let Err(why) = &guest.view {
            let (name, why) = (printable::line(&guest.name), printable::line(why));
            text.push_str(&format!("\nno view of the guest {name}: {why}\n"));
        }
    }
    text
}

fn cpus(views: &[(&SeenGuest, &GuestView)], interval: &Interval) -> Table {
    let column = |cell: &dyn Fn(&SeenGuest, &GuestView) -> String| {
        views.iter().map(|(guest, view)| cell(guest, view)).collect::<Vec<_>>()
    };
    let mut table = Table::default();
    table.names("guest", 0, column(&|guest, _| guest.name.clone()));
    table.numbers("CPUs", 2, column(&|_, view| view.cpu_count.to_string()));
    for (title, part) in PARTS {
        table.numbers(title, 0, column(&|_, view| share(part(&view.all_cpus), whole_ns(view))));
    }
    let not_counted = |view: &GuestView| share(not_counted_ns(view), whole_ns(view));
    table.numbers("not counted", 1, column(&|_, view| not_counted(view)));
    table.numbers("host: run queue", 0, column(&|guest, _| run_queue(guest, interval)));
    table.numbers("over", 3, column(&|_, view| time(view.span_ns, true)));
    table
}

/// The host's view of steal: the run-queue wait of the guest's vCPUs.
fn run_queue(guest: &SeenGuest, interval: &Interval) -> String {
    let is_its = |vcpu: &&Vcpu| guest.process == Some(vcpu.process);
    let (mut queue_ns, mut all_ns) = (0_u64, 0_u64);
    for vcpu in interval.vcpus.iter().filter(is_its) {
        for activity in [VcpuActivity::Preempted, VcpuActivity::Waiting] {
            queue_ns = queue_ns.saturating_add(vcpu.states.time_ns(activity));
        }
        all_ns = all_ns.saturating_add(vcpu.states.total_ns());
    }
    if all_ns == 0 { "-".to_owned() } else { share(queue_ns, all_ns) }
}

/// A row for each guest's tasks, and one for the rest of them.
fn tasks(views: &[(&SeenGuest, &GuestView)]) -> Table {
    let mut rows: Vec<[String; 5]> = Vec::new();
    for (guest, view) in views {
        rows.extend(
            task_rows(view, MAX_TASKS)
                .map(|[task, pid, ran, waited]| [guest.name.clone(), task, pid, ran, waited]),
        );
    }
    let column = |at: usize| rows.iter().filter_map(|row| row.get(at).cloned()).collect();
    let mut table = Table::default();
    table.names("guest", 0, column(0));
    table.names("task", 0, column(1));
    table.numbers("pid", 1, column(2));
    table.numbers("ran", 0, column(3));
    table.numbers("waited", 0, column(4));
    table
}

/// Name, process, shares of run time and run-queue wait: of the first tasks, then of all others together.
pub(crate) fn task_rows(view: &GuestView, max: usize) -> impl Iterator<Item = [String; 4]> {
    let shares = |ran: u64, waited: u64| [share(ran, view.span_ns), share(waited, view.span_ns)];
    let shown = view.tasks.iter().take(max).map(move |task| {
        let [ran, waited] = shares(task.run_ns, task.waited_ns);
        [task_name(task), task.pid.to_string(), ran, waited]
    });
    let others = others(view, max);
    let others = (others.run_ns > 0 || others.waited_ns > 0).then(|| {
        let [ran, waited] = shares(others.run_ns, others.waited_ns);
        ["all others".to_owned(), "-".to_owned(), ran, waited]
    });
    shown.chain(others)
}

/// Run time and run-queue wait of all tasks but the first.
fn others(view: &GuestView, max: usize) -> TaskUse {
    let shown = view.tasks.iter().take(max);
    let (ran, waited) = shown.fold((0_u64, 0_u64), |(ran, waited), task| {
        (ran.saturating_add(task.run_ns), waited.saturating_add(task.waited_ns))
    });
    TaskUse {
        run_ns: view.tasks_run_ns.saturating_sub(ran),
        waited_ns: view.tasks_waited_ns.saturating_sub(waited),
        ..TaskUse::default()
    }
}

fn task_name(task: &TaskUse) -> String {
    if task.threads > 1 {
        format!("{} ({})", task.name, plural(u64::from(task.threads), "thread"))
    } else {
        task.name.clone()
    }
}

/// Lines about one guest, for the screen.
pub(crate) fn lines(guest: &SeenGuest) -> Vec<String> {
    let name = printable::line(&guest.name);
    let view = match &guest.view {
        Ok(view) => view,
        Err(why) => return vec![format!("inside {name}: {}", printable::line(why))],
    };
    let whole_ns = whole_ns(view);
    let parts =
        PARTS.map(|(title, part)| format!("{title} {}", share(part(&view.all_cpus), whole_ns)));
    let cpus = plural(u64::from(view.cpu_count), "CPU");
    let cpus = format!("inside {name}: {} of {cpus}", parts.join(", "));
    let named = view.tasks.iter().take(MAX_TASKS_IN_LINE);
    let mut tasks: Vec<String> = named
        .map(|task| format!("{} {}", printable::line(&task.name), share(task.run_ns, view.span_ns)))
        .collect();
    let others = others(view, MAX_TASKS_IN_LINE);
    if others.run_ns > 0 {
        tasks.push(format!("others {}", share(others.run_ns, view.span_ns)));
    }
    if tasks.is_empty() {
        tasks.push("none ran".to_owned());
    }
    vec![cpus, format!("its tasks: {}", tasks.join(", "))]
}

/// The heading of a guest's task list.
pub(crate) fn heading(view: &GuestView) -> String {
    let mut text = format!(
        "{}, which ran {} and waited {} in {}",
        plural(u64::from(view.task_count), "task"),
        time(view.tasks_run_ns, true),
        time(view.tasks_waited_ns, true),
        time(view.span_ns, true)
    );
    if view.unread_threads > 0 {
        let unread = count(u64::from(view.unread_threads));
        text.push_str(&format!("; {unread} more threads were not read"));
    }
    text
}

#[cfg(test)]
pub(crate) mod tests;
