//! The changes of a fleet over time, as a table, JSON and CSV.

mod columns;
mod document;

use printable::line;
use report::column;
use report::{Report, Table, plural};
use serde::Serialize;

use self::columns::{Row, TABLE, columns};
pub(crate) use self::document::{Carriers, CarriersAndHosts, Document};
use crate::level_change::LevelChange;
use crate::shared_facts::{CameWith, SharedFact};
use crate::shown::{names, times};
use crate::since::FleetSince;
use crate::since_findings::distinct;

/// A fleet over time with display options.
#[derive(Debug)]
pub struct SinceReport {
    /// The changes.
    pub since: FleetSince,
}

impl SinceReport {
    fn head(&self) -> String {
        let since = &self.since;
        let mut out = String::new();
        if let Some(selection) = &since.question.selection {
            out += &format!("where {}\n", line(selection.text()));
        }
        let [from, to] = &since.days;
        out += &format!(
            "{}, {}, from {from} to {to}",
            plural(since.hosts as u64, "host"),
            plural(since.sessions as u64, "session"),
        );
        if since.question.step_days > 1 {
            let days = since.question.step_days;
            out += &format!(": {} of {days} days", plural(u64::from(since.steps), "step"));
        }
        out + "\n" + &self.left_out()
    }

    fn left_out(&self) -> String {
        let what = [
            "that lost too many events",
            "of unknown hosts",
            "of unknown days",
            "of days before the first complete step",
        ];
        let left_out = self.since.left_out.iter().zip(what).filter(|entry| *entry.0 > 0);
        let line = |(sessions, what): (&usize, &str)| {
            format!("left out: {} {what}\n", plural(*sessions as u64, "session"))
        };
        left_out.map(line).collect()
    }

    /// Lists changes with their day and hosts: a change that several numbers or kinds of hosts show is
    /// listed once.
    fn findings(&self) -> String {
        let changes = &self.since.changes;
        let changes_at = |places: &Vec<usize>| -> Vec<&LevelChange> {
            places.iter().filter_map(|at| changes.get(*at)).collect()
        };
        distinct(changes).iter().filter_map(|places| finding(&changes_at(places))).collect()
    }
}

/// A change as text: its metrics, and the numbers of the most certain one.
fn finding(changes: &[&LevelChange]) -> Option<String> {
    let surest = changes.first()?;
    let mut metrics: Vec<&str> = changes.iter().map(|change| change.metric.name()).collect();
    metrics.sort_unstable();
    metrics.dedup();
    let of_level =
        if surest.level == 0 { String::new() } else { format!(" of level {}", surest.level) };
    let hosts = changes.iter().map(|change| change.hosts_of_all).max().unwrap_or(0);
    let mut out = format!(
        "{}: {}{of_level} ({}): {} on {} of {}{}: {}\n",
        surest.day,
        line(surest.reason_shown()),
        metrics.join(", "),
        times(surest.ratio),
        surest.carried_by.len(),
        plural(hosts as u64, "host"),
        surest.shared.iter().map(|fact| shared(fact, surest.carried_by.len())).collect::<String>(),
        names(&surest.carried_by),
    );
    for step in &surest.came_with {
        out += &came_with(step, surest.carried_by.len());
    }
    Some(out)
}

fn shared(fact: &SharedFact, carrying: usize) -> String {
    let SharedFact { name, value, carriers, others } = fact;
    let how_many = if *carriers == carrying { "all".to_owned() } else { carriers.to_string() };
    let others = if *others > 0 {
        format!(" (and {})", plural(*others as u64, "other"))
    } else {
        String::new()
    };
    format!(", {how_many} of {} {}{others}", line(name), line(value))
}

fn came_with(step: &CameWith, carrying: usize) -> String {
    let CameWith { name, before, since, carriers, others } = step;
    let how_many =
        if *carriers == carrying { "all of them".to_owned() } else { carriers.to_string() };
    let others = if *others > 0 {
        format!(", and on {}", plural(*others as u64, "other"))
    } else {
        String::new()
    };
    let (name, before, since) = (line(name), line(before), line(since));
    format!("  with {name} {since} instead of {before} on {how_many}{others}\n")
}

impl Report for SinceReport {
    fn headline(&self) -> String {
        let numbers = plural(self.since.series as u64, "number");
        match self.since.changes.len() {
            0 => format!("None of {numbers} over time changes."),
            changes => format!("{} in {numbers} over time.", plural(changes as u64, "change")),
        }
    }

    fn tables(&self, width: Option<usize>) -> String {
        let since = &self.since;
        let mut out = self.head();
        if since.changes.is_empty() {
            return out;
        }
        let rows: Vec<Row<'_>> = since.changes.iter().map(|change| Row { change }).collect();
        let mut table = Table::default();
        column::draw(&columns(&since.question), &mut table, TABLE, &rows);
        let (drawn, left_out) = table.draw(width);
        out += &format!("\n{drawn}\n");
        if !left_out.is_empty() {
            let titles = left_out.join(", ");
            out += &format!("hidden to fit the width: {titles}; csv and json show all\n");
        }
        match self.findings() {
            findings if findings.is_empty() => out,
            findings => format!("{out}\nFindings\n{findings}"),
        }
    }

    fn document(&self) -> impl Serialize {
        Document::<CarriersAndHosts<'_>>::new(&self.since)
    }

    fn csv(&self) -> Table {
        let rows: Vec<Row<'_>> = self.since.changes.iter().map(|change| Row { change }).collect();
        column::csv(&columns(&self.since.question), &rows, &[true])
    }
}
