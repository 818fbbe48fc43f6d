//! An interval as text tables.

use crate::guest_views::SeenGuest;
use crate::{Interval, Row, Vcpu};
use tables::Table;
use tables::units::{count, plural, share, time};
use timeline::VcpuActivity;

use crate::viewer::guests;
use crate::viewer::ran_instead::{Runner, runners};

/// Max threads to show that ran while a VM waited.
const MAX_RUNNERS: usize = 5;

/// The tables, for a terminal of this many columns, with the queried guests' views.
#[must_use]
pub fn text(interval: &Interval, seen: &[SeenGuest], width: Option<usize>) -> String {
    let mut text = head(interval);
    if interval.vcpus.is_empty() {
        text.push_str("\nno vCPU entered or left its guest\n");
    } else {
        text.push_str(&of_host(interval, width));
    }
    text.push_str(&guests::text(seen, interval, width));
    text
}

/// The host's measurements of its vCPUs.
fn of_host(interval: &Interval, width: Option<usize>) -> String {
    let mut text = String::new();
    text.push_str("\nvCPUs by state, in shares of their time\n");
    text.push_str(&vcpus(&interval.vcpus).draw(width).0);
    let waited = waited(&interval.vcpus);
    if !waited.is_empty() {
        text.push_str("\nWho ran while vCPUs waited for a CPU\n");
        text.push_str(&takers(&waited, interval).draw(width).0);
    }
    for (waiting, title) in [(false, "Exits, by cost"), (true, "Waiting exits")] {
        let rows: Vec<&Row> = interval.rows.iter().filter(|row| row.waiting == waiting).collect();
        if !rows.is_empty() {
            text.push_str(&format!("\n{title}\n{}", exits(&rows, interval).draw(width).0));
        }
    }
    text
}

/// Interval, number of exits, and the cost of counting them.
fn head(interval: &Interval) -> String {
    let span = time(interval.interval_ns(), true);
    let mut text = format!("{span}, {}", plural(interval.cost.exits, "exit"));
    if let Some(cpu_ns) = interval.cost.cpu_ns() {
        text.push_str(&format!("; counting them took {} of CPU time", time(cpu_ns, true)));
    }
    if let Some(each_ns) = interval.cost.per_exit_ns() {
        text.push_str(&format!(", {} an exit in the kernel", time(each_ns, true)));
    }
    text.push('\n');
    if interval.left_out.without_state > 0 {
        let exits = plural(interval.left_out.without_state, "exit");
        text.push_str(&format!("{exits} of vCPUs beyond the kernel's capacity: in no row\n"));
    }
    text
}

fn vcpus(vcpus: &[Vcpu]) -> Table {
    let column = |cell: &dyn Fn(&Vcpu) -> String| vcpus.iter().map(cell).collect::<Vec<_>>();
    let has_nested = vcpus.iter().any(|vcpu| vcpu.states.nested_ns() > 0);
    let activity_share = |vcpu: &Vcpu, activity| {
        let nested_ns = if activity == VcpuActivity::Guest { vcpu.states.nested_ns() } else { 0 };
        share(vcpu.states.time_ns(activity).saturating_sub(nested_ns), vcpu.states.total_ns())
    };
    let nested = |vcpu: &Vcpu| share(vcpu.states.nested_ns(), vcpu.states.total_ns());
    let wait = |vcpu: &Vcpu, quantile| {
        vcpu.waits.times.quantile_ns(quantile).map_or("-".to_owned(), |ns| time(ns, true))
    };
    let mut table = Table::default();
    table.names("VM", 0, column(&|vcpu| vcpu.vm.clone()));
    table.numbers("vCPU", 0, column(&|vcpu| vcpu.vcpu.map_or("-".into(), |vcpu| vcpu.to_string())));
    let shares = [
        ("guest", 0, VcpuActivity::Guest),
        ("before exit", 4, VcpuActivity::BeforeExit),
        ("exit kernel", 1, VcpuActivity::Kernel),
        ("exit user", 1, VcpuActivity::User),
        ("halt poll", 3, VcpuActivity::HaltPoll),
        ("run queue", 0, VcpuActivity::Waiting),
        ("preempted", 0, VcpuActivity::Preempted),
        ("blocked", 1, VcpuActivity::Blocked),
    ];
    for (title, rank, activity) in shares {
        table.numbers(title, rank, column(&|vcpu| activity_share(vcpu, activity)));
        if activity == VcpuActivity::Guest && has_nested {
            table.numbers("nested guest", 0, column(&nested));
        }
    }
    table.numbers("waits", 5, column(&|vcpu| count(vcpu.waits.count)));
    table.numbers("wait p50", 5, column(&|vcpu| wait(vcpu, 0.5)));
    table.numbers("wait p99", 2, column(&|vcpu| wait(vcpu, 0.99)));
    table
}

/// Threads that ran while a VM's vCPUs waited.
struct Waited<'v> {
    vm: &'v str,
    /// Total time of the waits.
    waited_ns: u64,
    runner: Runner,
}

fn waited(vcpus: &[Vcpu]) -> Vec<Waited<'_>> {
    let mut all = Vec::new();
    for of_vm in vcpus.chunk_by(|a, b| (&a.vm, a.process) == (&b.vm, b.process)) {
        let Some(vm) = of_vm.first().map(|vcpu| vcpu.vm.as_str()) else { continue };
        let (runners, waited_ns) = runners(of_vm.iter());
        let shown = runners.into_iter().take(MAX_RUNNERS);
        all.extend(shown.map(|runner| Waited { vm, waited_ns, runner }));
    }
    all
}

fn takers(waited: &[Waited<'_>], interval: &Interval) -> Table {
    let column =
        |cell: &dyn Fn(&Waited<'_>) -> String| waited.iter().map(cell).collect::<Vec<String>>();
    let mut table = Table::default();
    table.names("VM", 0, column(&|row| row.vm.to_owned()));
    table.names("ran instead", 0, column(&|row| row.runner.who.clone()));
    table.numbers("time", 0, column(&|row| time(row.runner.time_ns, true)));
    table.numbers("of waits", 0, column(&|row| share(row.runner.time_ns, row.waited_ns)));
    table.numbers("of a CPU", 1, column(&|row| share(row.runner.time_ns, interval.interval_ns())));
    table
}

fn exits(rows: &[&Row], interval: &Interval) -> Table {
    let column =
        |cell: &dyn Fn(&Row) -> String| rows.iter().map(|row| cell(row)).collect::<Vec<_>>();
    let ns = |value: u64| time(value, true);
    let quantile = |row: &Row, quantile| {
        row.sums.times.quantile_ns(quantile).map_or("-".to_owned(), |value| time(value, true))
    };
    let all_ns = rows.iter().map(|row| row.sums.cost_ns()).fold(0, u64::saturating_add);
    let mut table = Table::default();
    table.names("VM", 0, column(&|row| row.vm.clone().unwrap_or_else(|| "all".to_owned())));
    if rows.iter().any(|row| row.vcpu.is_some()) {
        let vcpu_text = |row: &Row| row.vcpu.map_or("-".into(), |vcpu| vcpu.to_string());
        table.numbers("vCPU", 0, column(&vcpu_text));
    }
    if rows.iter().any(|row| row.level != 1) {
        let level_text =
            |row: &Row| if row.level > 0 { format!("L{}", row.level) } else { "-".into() };
        table.names("level", 0, column(&level_text));
    }
    table.names("reason", 0, column(&|row| row.reason.clone()));
    table.numbers("exits/s", 0, column(&|row| per_second(row.sums.count, interval.interval_ns())));
    table.numbers("cost%", 1, column(&|row| share(row.sums.cost_ns(), all_ns)));
    table.numbers("cost", 0, column(&|row| ns(row.sums.cost_ns())));
    table.numbers("time", 2, column(&|row| ns(row.sums.time_ns)));
    table.numbers("p50", 1, column(&|row| quantile(row, 0.5)));
    table.numbers("p99", 0, column(&|row| quantile(row, 0.99)));
    table.numbers("before exit", 5, column(&|row| ns(row.sums.before_exit_ns)));
    table.numbers("kernel", 3, column(&|row| ns(row.sums.parts.kernel_ns)));
    table.numbers("user space", 3, column(&|row| ns(row.sums.parts.user_ns)));
    table.numbers("run queue", 1, column(&|row| ns(row.sums.parts.runnable_ns)));
    table.numbers("blocked", 4, column(&|row| ns(row.sums.parts.blocked_ns)));
    table.numbers("halt poll", 4, column(&|row| ns(row.sums.parts.halt_poll_ns)));
    table
}

fn per_second(number: u64, ns: u64) -> String {
    let rate = u128::from(number) * 1_000_000_000;
    let rate = rate.checked_div(u128::from(ns)).unwrap_or(0);
    count(u64::try_from(rate).unwrap_or(u64::MAX))
}
