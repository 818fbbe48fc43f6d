//! The tables of the exits report: how long, and who pays.

use analyses::{By, Code, ExitRow, Exits, KnownParts, Tally};
use printable::line;

use super::notes::notes;
use super::{PERCENTILES, Source, name_of, rounded};
use crate::losses;
use crate::table::Table;
use crate::units::{count, plural, share, time};

/// Rows of one section: those shown, and the sums of the others and of all.
struct Rows<'r> {
    shown: Vec<&'r ExitRow>,
    others: Option<(usize, Tally)>,
    all: Tally,
}

impl<'r> Rows<'r> {
    /// The first `top` rows are shown, which took longest.
    fn new(rows: &[&'r ExitRow], top: Option<usize>) -> Self {
        let sum = |rows: &[&ExitRow]| {
            let mut sum = Tally::default();
            rows.iter().for_each(|row| sum.merge(&row.tally));
            sum
        };
        let shown = top.unwrap_or(rows.len()).min(rows.len());
        let (first, rest) = rows.split_at(shown);
        let others = (!rest.is_empty()).then(|| (rest.len(), sum(rest)));
        Self { shown: first.to_vec(), others, all: sum(rows) }
    }

    fn tallies(&self) -> Vec<&Tally> {
        let others = self.others.iter().map(|(_, tally)| tally);
        self.shown.iter().map(|row| &row.tally).chain(others).chain([&self.all]).collect()
    }
}

pub(super) fn source_text(source: &Source, top: Option<usize>, width: Option<usize>) -> String {
    let exits = &source.exits;
    let total: u64 = exits.rows.iter().map(|row| row.tally.count).sum();
    if total == 0 {
        return without_exits(source);
    }
    let mut out = heading(source, total);
    let (cost, waiting): (Vec<_>, Vec<_>) = exits.rows.iter().partition(|row| !row.waiting);
    let mut left_out = Vec::new();
    for (title, rows) in [("Exits", cost), ("Waiting exits", waiting)] {
        if !rows.is_empty() {
            let (text, narrow) = section(title, &Rows::new(&rows, top), exits, width);
            out += &text;
            left_out.extend(narrow);
        }
    }
    out += &notes(exits, &mut left_out);
    if let Some(cost) = &source.recorder_cost {
        out += &format!("{}\n", line(&cost.note()));
    }
    out
}

fn heading(source: &Source, total: u64) -> String {
    let exits = &source.exits;
    let vcpus: usize = exits.vms.iter().map(|vm| vm.vcpus.len()).sum();
    format!(
        "{}: {} exits in {}, {} with {}\n\n",
        line(&source.path),
        count(total),
        time(exits.span_ns, exits.nanoseconds),
        plural(exits.vms.len(), "VM"),
        plural(vcpus, "vCPU"),
    )
}

/// Says why there are no tables.
fn without_exits(source: &Source) -> String {
    let (path, losses) = (line(&source.path), &source.exits.losses);
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
         hyperscope record\n"
    )
}

/// Two tables over the same rows: how long, and who pays.
fn section(
    title: &str,
    rows: &Rows<'_>,
    exits: &Exits,
    width: Option<usize>,
) -> (String, Vec<String>) {
    let (lasting, mut left_out) = durations_table(rows, exits).draw(width);
    let (paying, narrow) = parts_table(rows, exits).draw(width);
    left_out.extend(narrow);
    (format!("{title}: how long\n{lasting}\n{title}: who pays\n{paying}\n"), left_out)
}

/// Columns that name the rows, with a line "all" at the end.
fn name_columns(table: &mut Table, rows: &Rows<'_>, exits: &Exits) {
    let mut by = exits.by.clone();
    if by == By::DEFAULT {
        // Nobody asked for these: what is the same everywhere says nothing.
        by.retain(|one| {
            let labels: Vec<String> = rows.shown.iter().map(|row| label(*one, row)).collect();
            let distinct = labels.windows(2).any(|pair| pair[0] != pair[1]);
            distinct || matches!(one, By::Reason)
        });
    }
    for (at, one) in by.iter().enumerate() {
        let mut cells: Vec<String> = rows.shown.iter().map(|row| label(*one, row)).collect();
        let mut last = |text: String| cells.push(if at == 0 { text } else { String::new() });
        if let Some((number, _)) = rows.others {
            last(format!("({number} others)"));
        }
        last("all".to_owned());
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

fn durations_table(rows: &Rows<'_>, exits: &Exits) -> Table {
    let mut table = Table::default();
    name_columns(&mut table, rows, exits);
    let (tallies, all) = (rows.tallies(), &rows.all);
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

fn parts_table(rows: &Rows<'_>, exits: &Exits) -> Table {
    let mut table = Table::default();
    name_columns(&mut table, rows, exits);
    let tallies = rows.tallies();
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
