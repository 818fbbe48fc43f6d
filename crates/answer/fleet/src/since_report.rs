//! Since when the numbers of a fleet are others, as a table, JSON and CSV.

mod columns;

use printable::line;
use report::column::{self, Column, Exported};
use report::{Report, Table, plural};
use serde::Serialize;
use serde_json::{Value, json};

use self::columns::{Row, TABLE, columns};
use crate::level_change::LevelChange;
use crate::shared_facts::{CameWith, SharedFact};
use crate::shown::{names, times};
use crate::since::FleetSince;
use crate::since_findings::distinct;

/// A fleet over time, and how much of it is shown.
#[derive(Debug)]
pub struct SinceReport {
    /// What was found.
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
            "of hosts that are not known",
            "of days that are not known",
            "of days before the first whole step",
        ];
        let left_out = self.since.left_out.iter().zip(what).filter(|one| *one.0 > 0);
        let line = |(sessions, what): (&usize, &str)| {
            format!("left out: {} {what}\n", plural(*sessions as u64, "session"))
        };
        left_out.map(line).collect()
    }

    /// What changed when, and on which hosts: a change that several numbers or kinds of hosts show is one.
    fn findings(&self) -> String {
        let changes = &self.since.changes;
        let of = |places: &Vec<usize>| -> Vec<&LevelChange> {
            places.iter().filter_map(|at| changes.get(*at)).collect()
        };
        distinct(changes).iter().filter_map(|places| finding(&of(places))).collect()
    }
}

/// A change in words: its metrics, and the numbers of the one that is surest.
fn finding(changes: &[&LevelChange]) -> Option<String> {
    let surest = changes.first()?;
    let mut metrics: Vec<&str> = changes.iter().map(|one| one.metric.name()).collect();
    metrics.sort_unstable();
    metrics.dedup();
    let of_level =
        if surest.level == 0 { String::new() } else { format!(" of level {}", surest.level) };
    let hosts = changes.iter().map(|one| one.hosts_of_all).max().unwrap_or(0);
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
    for one in &surest.came_with {
        out += &came_with(one, surest.carried_by.len());
    }
    Some(out)
}

fn shared(fact: &SharedFact, carrying: usize) -> String {
    let SharedFact { name, value, carriers, others } = fact;
    let whole = if *carriers == carrying { "all".to_owned() } else { carriers.to_string() };
    let others = if *others > 0 {
        format!(" (and {})", plural(*others as u64, "other"))
    } else {
        String::new()
    };
    format!(", {whole} of {} {}{others}", line(name), line(value))
}

fn came_with(one: &CameWith, carrying: usize) -> String {
    let CameWith { name, before, since, carriers, others } = one;
    let whole = if *carriers == carrying { "all of them".to_owned() } else { carriers.to_string() };
    let others = if *others > 0 {
        format!(", and on {}", plural(*others as u64, "other"))
    } else {
        String::new()
    };
    let (name, before, since) = (line(name), line(before), line(since));
    format!("  with {name} {since} in place of {before} on {whole}{others}\n")
}

impl Report for SinceReport {
    fn text(&self, width: Option<usize>) -> String {
        let since = &self.since;
        let mut out = self.head();
        let of = plural(since.series as u64, "number");
        if since.changes.is_empty() {
            return out + &format!("\nNone of {of} over time changes\n");
        }
        let rows: Vec<Row<'_>> = since.changes.iter().map(|change| Row { change }).collect();
        let mut table = Table::default();
        column::draw(&columns(&since.question), &mut table, TABLE, &rows);
        let (drawn, left_out) = table.draw(width);
        out += &format!("\n{drawn}\n");
        if !left_out.is_empty() {
            let titles = left_out.join(", ");
            out += &format!("left out for width: {titles}; csv and json have all\n");
        }
        let changes = plural(since.changes.len() as u64, "change");
        out += &format!("{changes} in {of} over time\n");
        match self.findings() {
            findings if findings.is_empty() => out,
            findings => format!("{out}\nFindings\n{findings}"),
        }
    }

    fn document(&self) -> impl Serialize {
        self.object(true)
    }

    fn csv(&self) -> Table {
        let rows: Vec<Row<'_>> = self.since.changes.iter().map(|change| Row { change }).collect();
        column::csv(&columns(&self.since.question), &rows, &[true])
    }
}

impl SinceReport {
    /// All of it as JSON; changes with what each host had, or without.
    pub(crate) fn object(&self, with_hosts: bool) -> Value {
        let FleetSince {
            question, hosts, sessions, days, steps, left_out, series, changes, ..
        } = &self.since;
        let [lost, no_host, no_day, before] = left_out;
        let day = |at: usize| days.get(at).filter(|day| !day.is_empty());
        let columns = columns(question);
        json!({
            "schema": "hyperscope.fleet_since/1",
            "condition": question.selection.as_ref().map(|one| one.text()),
            "hosts": hosts,
            "sessions": sessions,
            "from_day": day(0),
            "to_day": day(1),
            "steps": steps,
            "step_days": question.step_days,
            "strata": question.strata,
            "alpha": question.alpha,
            "correction": "benjamini_hochberg",
            "left_out": { "lost": lost, "host_unknown": no_host, "day_unknown": no_day, "step_incomplete": before },
            "series": series,
            "changes": changes.iter().map(|one| object(&columns, one, with_hosts)).collect::<Vec<_>>(),
        })
    }
}

/// A change, and the lists that it has.
#[derive(Serialize)]
struct ChangeObject<'c, 'r> {
    #[serde(flatten)]
    columns: Exported<'c, Row<'r>>,
    carried_by: &'r [String],
    shared: Vec<Value>,
    came_with: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<Vec<Value>>,
}

fn object<'r>(columns: &[Column<Row<'r>>], change: &'r LevelChange, with_hosts: bool) -> Value {
    let row = Row { change };
    json!(ChangeObject {
        columns: Exported { columns, row: &row },
        carried_by: &change.carried_by,
        shared: change.shared.iter().map(shared_object).collect(),
        came_with: change.came_with.iter().map(came_with_object).collect(),
        hosts: with_hosts.then(|| host_objects(change)),
    })
}

fn shared_object(fact: &SharedFact) -> Value {
    let SharedFact { name, value, carriers, others } = fact;
    json!({ "name": name, "value": value, "carriers": carriers, "others": others })
}

fn came_with_object(one: &CameWith) -> Value {
    let CameWith { name, before, since, carriers, others } = one;
    json!({ "name": name, "before": before, "since": since, "carriers": carriers, "others": others })
}

fn host_objects(change: &LevelChange) -> Vec<Value> {
    let hosts = change.host_ratios.iter();
    let object = |one: &crate::rows::HostRatio| json!({ "host": one.host, "stratum": one.stratum, "before": one.a, "after": one.b, "ratio": one.b / one.a });
    hosts.map(object).collect()
}
