//! The tables of the exits report: how long, and who pays.

use analyses::exits::ExitRow;
use analyses::group::By;
use analyses::tally::Tally;
use printable::line;

use super::columns::{self, HOW_LONG, Row, WHO_PAYS, Whole};
use super::lines::{Kind, Line, Lines};
use super::notes::{not_split, notes};
use super::{ExitsReport, Source, headline, name_of};
use crate::column::{self, Column};
use crate::losses;
use crate::table::Table;
use crate::units::{plural, time};

/// The tables of one recording, below its result where that is not `headline`, which the report begins with.
pub(super) fn source_text(
    source: &Source,
    report: &ExitsReport,
    (headline, width): (&str, Option<usize>),
) -> String {
    let (exits, result) = (&source.exits, headline::of_source(source));
    let mut out = if result == headline { String::new() } else { format!("\n{result}\n") };
    if headline::exits(&[source]) == 0 {
        return out + &without_exits(source);
    }
    out += "\n";
    let (cost, waiting): (Vec<_>, Vec<_>) = exits.rows.iter().partition(|row| !row.waiting);
    let (mut left_out, mut explained) = (Vec::new(), String::new());
    for (title, rows) in [("Exits", cost), ("Waiting exits", waiting)] {
        if !rows.is_empty() {
            let (text, narrow) = section(title, source, &rows, report, (width, &mut explained));
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

/// Explains why there are no tables.
fn without_exits(source: &Source) -> String {
    let lost = losses::notes(&source.exits.losses, 0);
    if lost.is_empty() && !source.of_guest {
        return "Record the host with\n  hyperscope record\n".to_owned();
    }
    lost.iter().map(|note| format!("{note}\n")).collect()
}

/// Two tables over the same rows: how long, and who pays.
fn section(
    title: &str,
    source: &Source,
    rows: &[&ExitRow],
    report: &ExitsReport,
    (width, explained): (Option<usize>, &mut String),
) -> (String, Vec<String>) {
    let (exits, by) = (&source.exits, &source.exits.by);
    let shown = report.top.unwrap_or(rows.len()).min(rows.len());
    let weight = |tally: &Tally| Whole::from_tally(tally, &exits.recorded).weight_ns();
    let lines = Lines::new(rows, shown, by, weight);
    let totals = Whole::from_tally(&lines.all, &exits.recorded);
    let waiting = rows.first().is_some_and(|row| row.waiting);
    let head = Head { totals, waiting, source, sorted_by: report.sorted_by.as_deref() };
    let columns = columns::columns(by);
    let names = Names::new(by, &columns, source, &lines, totals);
    let all: Vec<Row<'_>> =
        lines.iter().map(|line| Row::of_line(source, &line, waiting, totals)).collect();
    let draw_table = |table| {
        let mut drawn = names.table();
        column::draw(&columns, &mut drawn, table, &all);
        drawn
    };
    let (lasting, mut left_out) = draw_table(HOW_LONG).draw(width);
    let payers = draw_table(WHO_PAYS);
    let (paying, narrow) = payers.draw(width);
    let (how_long, who_pays) = (head.how_long(&left_out), head.who_pays(&payers, explained));
    left_out.extend(narrow);
    let text =
        format!("{title}: how long{how_long}\n{lasting}\n{title}: who pays{who_pays}\n{paying}\n");
    (text, left_out)
}

/// The lines above a table: the sort order, and the totals of shares.
struct Head<'h> {
    totals: Whole,
    waiting: bool,
    source: &'h Source,
    sorted_by: Option<&'h str>,
}

impl Head<'_> {
    fn time(&self, value: u64) -> String {
        time(value, self.source.exits.nanoseconds)
    }

    /// `left_out`: titles of columns that the terminal is too narrow for.
    fn how_long(&self, left_out: &[String]) -> String {
        let all = self.time(self.totals.time_ns);
        let cost_ns = self.totals.cost_ns.filter(|_| !self.waiting);
        let sorted_by = self.sorted_by.unwrap_or(if cost_ns.is_some() { "cost" } else { "time" });
        let is_shown = |title: &str| !left_out.iter().any(|hidden| hidden == title);
        let of_cost = cost_ns.filter(|_| is_shown("cost%"));
        let of_cost = of_cost.map(|cost_ns| format!("cost% of {} on CPUs", self.time(cost_ns)));
        let of_time = is_shown("time%").then(|| format!("time% of {all}"));
        let parts: Vec<String> =
            of_cost.into_iter().chain(of_time).chain([OF_TIME.to_owned()]).collect();
        let parts = parts.join("; ");
        match cost_ns {
            Some(_) => format!(", by {sorted_by}\n{parts}"),
            None if self.waiting => format!(", by {sorted_by}; {parts}"),
            None => format!(
                ", by {sorted_by}; {parts}\ncost on CPUs is unknown: record sched:sched_switch"
            ),
        }
    }

    /// `explained`: which columns add up, as far as a table above says it.
    fn who_pays(&self, table: &Table, explained: &mut String) -> String {
        let recorded = &self.source.exits.recorded;
        if self.waiting && !recorded.off_cpu {
            return "; halted: according to the exit reason".to_owned();
        }
        let note = not_split(recorded);
        let note = note.map_or_else(String::new, |note| format!("\n{}", note.replace("; ", "\n")));
        let text = sums(table) + &note;
        if *explained == text {
            return String::new();
        }
        explained.clone_from(&text);
        text
    }
}

/// The basis of numbers in columns whose names don't contain one of these words.
const OF_TIME: &str = "min to max and percentiles are of time";

/// Names of the columns that are parts of an exit's cost and of its time.
const OF_COST: [&str; 5] =
    ["before exit", "kernel", "user space", "user space + return", "not split"];
const PARTS_OF_TIME: [&str; 8] = [
    "kernel",
    "user space",
    "user space + return",
    "not split",
    "run queue",
    "blocked",
    "off CPU",
    "halt poll",
];

/// Explains which columns add up to cost, and which to time.
fn sums(table: &Table) -> String {
    let sum = |parts: &[&str]| {
        parts.iter().copied().filter(|part| table.has(part)).collect::<Vec<_>>().join(" + ")
    };
    let time = sum(&PARTS_OF_TIME);
    if table.has("cost") {
        format!("\ncost = {}; time = {time}", sum(&OF_COST))
    } else if time.is_empty() {
        String::new()
    } else {
        format!("\ntime = {time}")
    }
}

/// Columns that name the lines.
struct Names(Vec<(&'static str, Vec<String>)>);

impl Names {
    /// The names of rows by their properties, and of sums.
    fn new<'r>(
        by: &[By],
        columns: &[Column<Row<'r>>],
        source: &'r Source,
        lines: &Lines<'r>,
        totals: Whole,
    ) -> Self {
        let is_asked = by != By::DEFAULT;
        let rows: Vec<Row<'r>> = lines.rows().map(|row| Row::new(source, row, totals)).collect();
        let label = |by: By| -> Vec<String> {
            let Some(column) = columns::named_by(columns, by) else { return Vec::new() };
            rows.iter().map(|row| column.drawn(row, "-")).collect()
        };
        // A column that was not requested and has the same value everywhere carries no information.
        let says = |by: By| {
            let distinct = || label(by).windows(2).any(|pair| pair[0] != pair[1]);
            let is_parted = by == By::Vm && lines.are_of_several_vms();
            is_asked || by == By::Reason || is_parted || distinct()
        };
        let named: Vec<By> = by.iter().copied().filter(|&key| says(key)).collect();
        let column = |&by: &By| {
            let mut labels = label(by).into_iter();
            let cells = lines.iter().map(|line| match line.kind {
                Kind::Row => labels.next().unwrap_or_default(),
                _ => sum_label(&line, by, &named, lines.are_of_several_vms()),
            });
            (name_of(by), cells.collect())
        };
        Self(named.iter().map(column).collect())
    }

    fn table(&self) -> Table {
        let mut table = Table::default();
        self.0.iter().for_each(|(title, cells)| table.names(title, 0, cells.clone()));
        table
    }
}

/// The text in column `by` for the line of a sum; `named` are the columns that name lines.
fn sum_label(line: &Line<'_>, by: By, named: &[By], several_vms: bool) -> String {
    let of_vm = several_vms && line.kind != Kind::All;
    if of_vm && by == By::Vm {
        return line.group.and_then(|group| group.vm.clone()).unwrap_or_default();
    }
    if named.iter().find(|key| !of_vm || **key != By::Vm) != Some(&by) {
        return String::new();
    }
    match line.kind {
        Kind::Others(number) => format!("({})", plural(number as u64, "other")),
        _ => "all".to_owned(),
    }
}
