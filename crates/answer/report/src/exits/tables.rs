//! The tables of the exits report: how long, and who pays.

use analyses::{By, ExitRow, Tally};
use printable::line;

use super::columns::{self, HOW_LONG, Row, WHO_PAYS, Whole};
use super::notes::{not_split, notes};
use super::{ExitsReport, Source, name_of};
use crate::column::{self, Column};
use crate::losses;
use crate::table::Table;
use crate::units::{plural, time};

/// Sums below the rows of one section: of those that are not shown, and of all.
struct Sums {
    others: Option<(usize, Tally)>,
    all: Tally,
}

impl Sums {
    /// All but the first `shown` rows are others.
    fn new(rows: &[&ExitRow], shown: usize) -> Self {
        let sum = |rows: &[&ExitRow]| {
            let mut sum = Tally::default();
            rows.iter().for_each(|row| sum.merge(&row.tally));
            sum
        };
        let rest = rows.get(shown..).unwrap_or_default();
        let others = (!rest.is_empty()).then(|| (rest.len(), sum(rest)));
        Self { others, all: sum(rows) }
    }
}

pub(super) fn source_text(source: &Source, report: &ExitsReport, width: Option<usize>) -> String {
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
            let (text, narrow) = section(title, source, &rows, report, width);
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
        "{}: {} in {}, {} with {}\n\n",
        line(&source.path),
        plural(total, "exit"),
        time(exits.span_ns, exits.nanoseconds),
        plural(exits.vms.len() as u64, "VM"),
        plural(vcpus as u64, "vCPU"),
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
    source: &Source,
    rows: &[&ExitRow],
    report: &ExitsReport,
    width: Option<usize>,
) -> (String, Vec<String>) {
    let shown = report.top.unwrap_or(rows.len()).min(rows.len());
    let sums = Sums::new(rows, shown);
    let whole = Whole::of(&sums.all, &source.exits.recorded);
    let waiting = rows.first().is_some_and(|row| row.waiting);
    let head = Head { whole, waiting, source, sorted_by: report.sorted_by.as_deref() };
    let others = sums.others.iter().map(|(_, tally)| tally);
    let named: Vec<Row<'_>> =
        rows.iter().take(shown).map(|row| Row::new(source, row, whole)).collect();
    let (by, others_number) = (&source.exits.by, sums.others.as_ref().map(|(number, _)| *number));
    let columns = columns::columns(by);
    let names = Names::new(by, &columns, &named, others_number);
    let sums =
        others.chain([&sums.all]).map(|tally| Row::of_several(source, tally, waiting, whole));
    let all: Vec<Row<'_>> = named.into_iter().chain(sums).collect();
    let of = |table| {
        let mut drawn = names.table();
        column::draw(&columns, &mut drawn, table, &all);
        drawn.draw(width)
    };
    let (lasting, mut left_out) = of(HOW_LONG);
    let (paying, narrow) = of(WHO_PAYS);
    left_out.extend(narrow);
    let (how_long, who_pays) = (head.how_long(), head.who_pays());
    let text =
        format!("{title}: how long{how_long}\n{lasting}\n{title}: who pays{who_pays}\n{paying}\n");
    (text, left_out)
}

/// What the lines above tables say: by what they are sorted, and what shares are of.
struct Head<'h> {
    whole: Whole,
    waiting: bool,
    source: &'h Source,
    sorted_by: Option<&'h str>,
}

impl Head<'_> {
    fn time(&self, value: u64) -> String {
        time(value, self.source.exits.nanoseconds)
    }

    fn how_long(&self) -> String {
        let all = self.time(self.whole.time_ns);
        let cost_ns = self.whole.cost_ns.filter(|_| !self.waiting);
        let sorted_by = self.sorted_by.unwrap_or(if cost_ns.is_some() { "cost" } else { "time" });
        match cost_ns {
            Some(cost_ns) => format!(
                ", by {sorted_by}\ncost% of {} on CPUs: before exit + kernel + user space; time% of {all}",
                self.time(cost_ns)
            ),
            None if self.waiting => format!(", by {sorted_by}; time% of {all}"),
            None => format!(
                ", by {sorted_by}; time% of {all}\ncost on CPUs is not known: it takes sched:sched_switch"
            ),
        }
    }

    fn who_pays(&self) -> String {
        let recorded = &self.source.exits.recorded;
        if self.waiting && !recorded.off_cpu {
            return "; halted by their reason".to_owned();
        }
        not_split(recorded)
            .map_or_else(String::new, |note| format!("\n{}", note.replace("; ", "\n")))
    }
}

/// Columns that name the rows.
struct Names(Vec<(&'static str, Vec<String>)>);

impl Names {
    /// The names of rows by their properties, of the sum of `others`, and of the sum of all.
    fn new<'r>(
        by: &[By],
        columns: &[Column<Row<'r>>],
        rows: &[Row<'r>],
        others: Option<usize>,
    ) -> Self {
        let label = |by: By| -> Vec<String> {
            let Some(column) = columns::named_by(columns, by) else { return Vec::new() };
            rows.iter().map(|row| column.drawn(row, "-")).collect()
        };
        // What nobody asked for, and is the same everywhere, says nothing.
        let says = |by: &&By, all: &[By]| {
            let distinct = || label(**by).windows(2).any(|pair| pair[0] != pair[1]);
            all != By::DEFAULT || matches!(by, By::Reason) || distinct()
        };
        let mut names: Vec<(&'static str, Vec<String>)> =
            by.iter().filter(|one| says(one, by)).map(|one| (name_of(*one), label(*one))).collect();
        for (at, (_, cells)) in names.iter_mut().enumerate() {
            let mut last = |text: String| cells.push(if at == 0 { text } else { String::new() });
            others.iter().for_each(|number| last(format!("({number} others)")));
            last("all".to_owned());
        }
        Self(names)
    }

    fn table(&self) -> Table {
        let mut table = Table::default();
        self.0.iter().for_each(|(title, cells)| table.names(title, 0, cells.clone()));
        table
    }
}
