//! The report of `hyperscope exits`: how often, how long, and who pays.

use analyses::{By, Code, ExitRow, Exits, Recorded, Tally};
use serde_json::{Value, json};
use timeline::Parts;

use crate::json::Object;
use crate::table::Table;
use crate::units::{count, share, time};
use crate::{Report, losses};

/// The exits of one recording.
#[derive(Debug)]
pub struct Source {
    /// The recording, as the user named it.
    pub path: String,
    /// Its exits.
    pub exits: Exits,
    /// It was made inside a guest, whose exits are in its host's recording.
    pub of_guest: bool,
}

/// The exits of all recordings given.
#[derive(Debug)]
pub struct ExitsReport {
    /// One per recording.
    pub sources: Vec<Source>,
}

/// Percentiles shown, in thousandths.
const PERCENTILES: [u64; 4] = [500, 900, 990, 999];

impl Report for ExitsReport {
    fn text(&self, width: Option<usize>) -> String {
        let texts: Vec<String> =
            self.sources.iter().map(|source| source_text(source, width)).collect();
        texts.join("\n")
    }

    fn json(&self) -> Value {
        let all = || self.sources.iter().map(|source| &source.exits);
        let nanoseconds = all().all(|exits| exits.nanoseconds);
        let paths: Vec<&str> = self.sources.iter().map(|source| source.path.as_str()).collect();
        let dropped = all().flat_map(|exits| &exits.rows).map(|row| row.tally.dropped).sum();
        let mut document = Object::default();
        document
            .set("schema", "hyperscope.exits/1")
            .set("sources", paths)
            .time("span", nanoseconds, all().map(|exits| exits.span_ns).max())
            .set("losses", losses::json(all().map(|exits| &exits.losses), dropped))
            .set("recorder_cost", Value::Null)
            .set("vms", self.sources.iter().flat_map(vms_json).collect::<Vec<_>>())
            .set("rows", self.sources.iter().flat_map(rows_json).collect::<Vec<_>>());
        document.done()
    }

    fn csv(&self) -> Table {
        let rows: Vec<Value> = self.sources.iter().flat_map(rows_json).collect();
        let mut table = Table::default();
        for title in self.titles() {
            let cells = rows.iter().map(|row| plain(flat(row, &title))).collect();
            table.names(&title, 0, cells);
        }
        table
    }
}

impl ExitsReport {
    /// Titles of the columns, the same whether or not there are rows.
    fn titles(&self) -> Vec<String> {
        let group = analyses::Group::default();
        let blank = ExitRow { group, waiting: false, tally: Tally::default() };
        let mut titles: Vec<String> = Vec::new();
        for source in &self.sources {
            let row = row_json(&blank, source);
            let keys = row.as_object().map(flat_keys).unwrap_or_default();
            let fresh: Vec<_> = keys.into_iter().filter(|key| !titles.contains(key)).collect();
            titles.extend(fresh);
        }
        titles
    }
}

/// Keys of a row, those of objects within it joined by `_`.
fn flat_keys(row: &serde_json::Map<String, Value>) -> Vec<String> {
    row.iter()
        .flat_map(|(key, value)| match value {
            Value::Object(inner) => inner.keys().map(|name| format!("{key}_{name}")).collect(),
            _ => vec![key.clone()],
        })
        .collect()
}

fn flat<'v>(row: &'v Value, title: &str) -> &'v Value {
    if let Some(value) = row.get(title) {
        return value;
    }
    let inner = title.split_once('_').and_then(|(key, name)| row.get(key)?.get(name));
    inner.unwrap_or(&Value::Null)
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn vms_json(source: &Source) -> Vec<Value> {
    let vm = |vm: &timeline::Vm| {
        let threads: Vec<Value> =
            vm.vcpus.iter().map(|vcpu| json!({"vcpu": vcpu.vcpu, "tid": vcpu.thread})).collect();
        json!({
            "source": source.path,
            "vm": vm.name,
            "pid": Value::Null,
            "level": 1,
            "vcpus": vm.vcpus.len(),
            "comm": vm.comm,
            "threads": threads,
        })
    };
    source.exits.vms.iter().map(vm).collect()
}

fn rows_json(source: &Source) -> Vec<Value> {
    source.exits.rows.iter().map(|row| row_json(row, source)).collect()
}

fn row_json(row: &ExitRow, source: &Source) -> Value {
    let mut object = Object::default();
    let (group, exits) = (&row.group, &source.exits);
    object
        .set("source", source.path.as_str())
        .set("vm", group.vm.clone())
        .set("level", group.level)
        .set("isa", group.isa.map(analyses::Isa::name))
        .set("reason", group.reason.clone())
        .set("code", group.code.as_ref().map_or(Value::Null, code_json));
    for by in &exits.by {
        match by {
            By::Vcpu => object.set("vcpu", group.vcpu),
            By::Task => object.set("task", group.task.clone()),
            By::Symbol => object.set("symbol", group.symbol.clone()),
            _ => match by.detail() {
                Some(detail) => {
                    let value = group.detail.filter(|(kind, _)| *kind == detail);
                    object.set(name_of(*by), value.map(|(_, value)| value))
                }
                None => &mut object,
            },
        };
    }
    tally_json(&mut object, row, exits);
    object.done()
}

fn code_json(code: &Code) -> Value {
    match code {
        Code::Number(code) => json!(code),
        pair @ Code::Pair(..) => json!(pair.to_string()),
    }
}

fn tally_json(object: &mut Object, row: &ExitRow, exits: &Exits) {
    let tally = &row.tally;
    let (ns, durations) = (exits.nanoseconds, &tally.durations);
    let handled = json!({
        "kernel": exits.recorded.user.then_some(tally.by_kernel),
        "user": exits.recorded.user.then_some(tally.by_user),
        "l1": tally.by_l1,
    });
    object
        .set("handled", handled)
        .set("waiting", row.waiting)
        .set("count", tally.count)
        .set("paired", tally.paired())
        .time("time", ns, Some(durations.sum()))
        .time("min", ns, durations.min())
        .time("max", ns, durations.max())
        .time("mean", ns, durations.mean().map(rounded))
        .time("sd", ns, durations.standard_deviation().map(rounded))
        .set("relative_error", durations.relative_error());
    let names = ["p50", "p90", "p99", "p999"];
    for (name, value) in names.into_iter().zip(durations.percentiles(PERCENTILES)) {
        object.time(name, ns, value);
    }
    let parts = KnownParts::new(tally, &exits.recorded);
    object
        .time("kernel", ns, Some(parts.kernel_ns))
        .time("user", ns, parts.user_ns)
        .time("user_and_return", ns, parts.user_and_return_ns)
        .time("off_cpu", ns, parts.off_cpu_ns)
        .time("off_cpu_runnable", ns, parts.runnable_ns)
        .time("off_cpu_blocked", ns, parts.blocked_ns)
        .time("halt_poll", ns, parts.halt_poll_ns)
        .time("before_exit", ns, parts.before_exit_ns)
        .time("guest", ns, Some(tally.guest_ns))
        .set("dropped", tally.dropped);
}

fn rounded(value: f64) -> u64 {
    value.round() as u64
}

/// The parts of a row as far as the recording has events for them: what it has none for is `None`,
/// and its time stays in the part that would have held it.
struct KnownParts {
    kernel_ns: u64,
    user_ns: Option<u64>,
    /// In place of `user_ns`, where the return from user space was not recorded.
    user_and_return_ns: Option<u64>,
    off_cpu_ns: Option<u64>,
    runnable_ns: Option<u64>,
    blocked_ns: Option<u64>,
    halt_poll_ns: Option<u64>,
    before_exit_ns: Option<u64>,
}

impl KnownParts {
    fn new(tally: &Tally, recorded: &Recorded) -> Self {
        let Parts { kernel_ns, user_ns, runnable_ns, blocked_ns, halt_poll_ns } = tally.parts;
        let return_seen = recorded.user_return && tally.user_return_unseen == 0;
        let split = recorded.off_cpu && recorded.wake;
        let polled = recorded.halt_poll && tally.poll_unknown == 0;
        // What is not told apart everywhere stays in the kernel's part as a whole.
        let in_kernel_ns = if polled { 0 } else { halt_poll_ns };
        Self {
            kernel_ns: kernel_ns.saturating_add(in_kernel_ns),
            user_ns: (recorded.user && return_seen).then_some(user_ns),
            user_and_return_ns: (recorded.user && !return_seen).then_some(user_ns),
            off_cpu_ns: recorded.off_cpu.then_some(runnable_ns + blocked_ns),
            runnable_ns: split.then_some(runnable_ns),
            blocked_ns: split.then_some(blocked_ns),
            halt_poll_ns: polled.then_some(halt_poll_ns),
            before_exit_ns: recorded.host_work.then_some(tally.before_exit_ns),
        }
    }
}

fn name_of(by: By) -> &'static str {
    By::NAMES.iter().find(|(_, one)| *one == by).map_or("", |(name, _)| name)
}

fn source_text(source: &Source, width: Option<usize>) -> String {
    let exits = &source.exits;
    let total: u64 = exits.rows.iter().map(|row| row.tally.count).sum();
    if total == 0 {
        return without_exits(source);
    }
    let mut out = heading(source, total);
    let (cost, waiting): (Vec<_>, Vec<_>) = exits.rows.iter().partition(|row| !row.waiting);
    let mut left_out = Vec::new();
    for (title, rows) in [("Exits", cost), ("Waiting for work", waiting)] {
        if !rows.is_empty() {
            let (text, narrow) = section(title, &rows, exits, width);
            out += &text;
            left_out.extend(narrow);
        }
    }
    out + &notes(exits, &mut left_out)
}

fn heading(source: &Source, total: u64) -> String {
    let exits = &source.exits;
    let vcpus: usize = exits.vms.iter().map(|vm| vm.vcpus.len()).sum();
    format!(
        "{}: {} exits in {}, {} with {}\n\n",
        source.path,
        count(total),
        time(exits.span_ns, exits.nanoseconds),
        plural(exits.vms.len(), "VM"),
        plural(vcpus, "vCPU"),
    )
}

/// Says why there are no tables.
fn without_exits(source: &Source) -> String {
    let (path, losses) = (&source.path, &source.exits.losses);
    let lost = losses::notes(losses, 0);
    if !lost.is_empty() {
        let lines: String = lost.iter().map(|note| format!("{note}\n")).collect();
        return format!("{path}: no VM exits could be read\n{lines}");
    }
    if source.of_guest {
        return format!("{path}: recorded in a guest; its exits are in its host's recording\n");
    }
    format!(
        "{path}: no VM exits, as it has no kvm_exit events. Record the host with\n  \
         trace-cmd record -e kvm -e sched -e irq\n"
    )
}

fn plural(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Two tables over the same rows: how long, and who pays.
fn section(
    title: &str,
    rows: &[&ExitRow],
    exits: &Exits,
    width: Option<usize>,
) -> (String, Vec<String>) {
    let mut all = Tally::default();
    rows.iter().for_each(|row| all.merge(&row.tally));
    let (lasting, mut left_out) = durations_table(rows, &all, exits).draw(width);
    let (paying, narrow) = parts_table(rows, &all, exits).draw(width);
    left_out.extend(narrow);
    (format!("{title}: how long\n{lasting}\n{title}: who pays\n{paying}\n"), left_out)
}

/// Columns that name the rows, with a line "all" at the end.
fn name_columns(table: &mut Table, rows: &[&ExitRow], exits: &Exits) {
    let mut by = exits.by.clone();
    if by == By::DEFAULT {
        // Nobody asked for these: what is the same everywhere says nothing.
        by.retain(|one| {
            let labels: Vec<String> = rows.iter().map(|row| label(*one, row)).collect();
            let distinct = labels.windows(2).any(|pair| pair[0] != pair[1]);
            distinct || matches!(one, By::Reason)
        });
    }
    for (at, one) in by.iter().enumerate() {
        let mut cells: Vec<String> = rows.iter().map(|row| label(*one, row)).collect();
        cells.push(if at == 0 { "all".to_owned() } else { String::new() });
        table.names(name_of(*one), 0, cells);
    }
}

fn label(by: By, row: &ExitRow) -> String {
    let group = &row.group;
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    match by {
        By::Vm => or_dash(group.vm.clone()),
        By::Vcpu => or_dash(group.vcpu.map(|id| id.to_string())),
        By::Level => or_dash(group.level.map(|level| format!("L{level}"))),
        By::Reason => or_dash(group.reason.clone()),
        By::Code => or_dash(group.code.as_ref().map(Code::to_string)),
        By::Symbol => or_dash(group.symbol.clone()),
        By::Task => or_dash(group.task.clone()),
        By::Msr | By::Port | By::Gpa | By::Hypercall | By::CpuidLeaf => {
            let value = group.detail.filter(|(kind, _)| Some(*kind) == by.detail());
            or_dash(value.map(|(_, value)| format!("{value:#x}")))
        }
    }
}

fn durations_table(rows: &[&ExitRow], all: &Tally, exits: &Exits) -> Table {
    let mut table = Table::default();
    name_columns(&mut table, rows, exits);
    let tallies: Vec<&Tally> = rows.iter().map(|row| &row.tally).chain([all]).collect();
    let cells = |of: &dyn Fn(&Tally) -> String| tallies.iter().map(|one| of(one)).collect();
    let ns = exits.nanoseconds;
    let or_dash =
        |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| time(value, ns));
    table.numbers("exits", 0, cells(&|one| count(one.count)));
    table.numbers("exits%", 2, cells(&|one| share(one.count, all.count)));
    table.numbers("time%", 1, cells(&|one| share(one.durations.sum(), all.durations.sum())));
    let sum = |one: &Tally| or_dash((one.paired() > 0).then(|| one.durations.sum()));
    table.numbers("time", 3, cells(&sum));
    table.numbers("min", 6, cells(&|one| or_dash(one.durations.min())));
    table.numbers("mean", 1, cells(&|one| or_dash(one.durations.mean().map(rounded))));
    table.numbers(
        "±",
        5,
        cells(&|one| {
            let error = one.durations.relative_error();
            error.map_or_else(|| "-".to_owned(), |error| format!("{:.2}%", error * 100.0))
        }),
    );
    let deviation = |one: &Tally| or_dash(one.durations.standard_deviation().map(rounded));
    table.numbers("sd", 8, cells(&deviation));
    for (at, (title, rank)) in [("p50", 4), ("p90", 7), ("p99", 3), ("p99.9", 9)].iter().enumerate()
    {
        let value = |one: &Tally| {
            or_dash(one.durations.percentiles(PERCENTILES).get(at).copied().flatten())
        };
        table.numbers(title, *rank, cells(&value));
    }
    table.numbers("max", 2, cells(&|one| or_dash(one.durations.max())));
    table
}

fn parts_table(rows: &[&ExitRow], all: &Tally, exits: &Exits) -> Table {
    let mut table = Table::default();
    name_columns(&mut table, rows, exits);
    let tallies: Vec<&Tally> = rows.iter().map(|row| &row.tally).chain([all]).collect();
    let ns = exits.nanoseconds;
    let parts: Vec<KnownParts> =
        tallies.iter().map(|one| KnownParts::new(one, &exits.recorded)).collect();
    let cells = |of: &dyn Fn(&KnownParts) -> Option<u64>| -> Vec<String> {
        let cell = |(part, tally): (&KnownParts, &&Tally)| match of(part) {
            _ if tally.paired() == 0 => "-".to_owned(),
            Some(value) => time(value, ns),
            None => "?".to_owned(),
        };
        parts.iter().zip(&tallies).map(cell).collect()
    };
    let known = |of: &dyn Fn(&KnownParts) -> Option<u64>| {
        parts.iter().any(|one| of(one).is_some()).then(|| cells(of))
    };
    let halt_poll = exits.recorded.halt_poll.then(|| cells(&|one| one.halt_poll_ns));
    let sums = tallies.iter().map(|one| match one.paired() {
        0 => "-".to_owned(),
        _ => time(one.durations.sum(), ns),
    });
    table.numbers("time", 0, sums.collect());
    let columns: [(&str, u8, Option<Vec<String>>); 7] = [
        ("kernel", 0, known(&|one| Some(one.kernel_ns))),
        ("user space", 0, known(&|one| one.user_ns)),
        ("user space + return", 1, known(&|one| one.user_and_return_ns)),
        ("run queue", 1, known(&|one| one.runnable_ns)),
        ("blocked", 1, known(&|one| one.blocked_ns)),
        ("off CPU", 2, known(&|one| one.off_cpu_ns.filter(|_| one.runnable_ns.is_none()))),
        ("halt poll", 2, halt_poll),
    ];
    for (title, rank, cells) in columns {
        if let Some(cells) = cells {
            table.numbers(title, rank, cells);
        }
    }
    if let Some(cells) = known(&|one| one.before_exit_ns) {
        table.numbers("before exit", 4, cells);
    }
    table.names("handled by", 3, tallies.iter().map(|one| handled(one, exits)).collect());
    table
}

/// Who dealt with the exits of a row, by share.
fn handled(tally: &Tally, exits: &Exits) -> String {
    if !exits.recorded.user && tally.by_l1 == 0 {
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

fn notes(exits: &Exits, left_out: &mut Vec<String>) -> String {
    let mut notes = missing_parts(&exits.recorded);
    notes.extend(unknown_parts(exits));
    let dropped: u64 = exits.rows.iter().map(|row| row.tally.dropped).sum();
    let paired: u64 = exits.rows.iter().map(|row| row.tally.paired()).sum();
    let total: u64 = exits.rows.iter().map(|row| row.tally.count).sum();
    if total > paired + dropped {
        let open = total - paired - dropped;
        notes.push(match open {
            1 => "1 exit without an entry is counted, not timed".to_owned(),
            _ => format!("{} exits without an entry are counted, not timed", count(open)),
        });
    }
    notes.extend(losses::notes(&exits.losses, dropped));
    left_out.sort();
    left_out.dedup();
    if !left_out.is_empty() {
        notes.push(format!("left out for width: {}; csv and json have all", left_out.join(", ")));
    }
    if !exits.nanoseconds {
        notes.push("times are ticks of the recording's clock: it tells no nanoseconds".to_owned());
    }
    notes.iter().map(|note| format!("{note}\n")).collect()
}

/// What the question marks stand for.
fn unknown_parts(exits: &Exits) -> Vec<String> {
    let sum = |of: fn(&Tally) -> u64| exits.rows.iter().map(|row| of(&row.tally)).sum::<u64>();
    let mut notes = Vec::new();
    let unseen = sum(|one| one.user_return_unseen);
    if exits.recorded.user_return && unseen > 0 {
        notes.push(format!(
            "?: the return from user space was not seen in {} exits; user space + return has them",
            count(unseen)
        ));
    }
    let unknown = sum(|one| one.poll_unknown);
    if exits.recorded.halt_poll && unknown > 0 {
        notes.push(format!(
            "?: when polling ended was not seen in {} exits; that time stays in kernel",
            count(unknown)
        ));
    }
    notes
}

/// Which parts the recording has no events for, and what would record them.
fn missing_parts(recorded: &Recorded) -> Vec<String> {
    let parts = [
        (recorded.user, "user space", "kvm:kvm_userspace_exit"),
        (
            recorded.user_return || !recorded.user,
            "the return from user space",
            "kvm:kvm_fpu, kvm:kvm_timer_restore_state or syscalls:sys_enter_ioctl",
        ),
        (recorded.off_cpu, "time off the CPU", "sched:sched_switch"),
        (recorded.wake || !recorded.off_cpu, "run queue apart from blocked", "sched:sched_waking"),
        (recorded.halt_poll, "halt polling", "kvm:kvm_vcpu_wakeup"),
        (recorded.host_work, "host work before kvm_exit", "irq, irq_vectors, timer, sched"),
    ];
    parts
        .into_iter()
        .filter(|(there, ..)| !there)
        .map(|(_, part, events)| format!("not recorded: {part} (no {events} on a vCPU)"))
        .collect()
}
