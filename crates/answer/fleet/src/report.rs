//! The comparison of a fleet as a table, JSON and CSV.

use std::collections::BTreeSet;

use printable::line;
use report::{Report, Table, plural, time};
use serde::Serialize;
use serde_json::{Value, json};

use crate::diff::{FleetDiff, SideFacts};
use crate::rows::Row;
use crate::shown::{chance, interval, level, names, times, value};

/// A comparison, and how much of it is shown.
#[derive(Debug)]
pub struct FleetReport {
    /// The comparison.
    pub diff: FleetDiff,
    /// Show rows that don't differ, too.
    pub all: bool,
}

impl FleetReport {
    fn shown(&self) -> Vec<&Row> {
        self.diff.rows.iter().filter(|row| self.all || row.significant).collect()
    }

    fn head(&self) -> String {
        let question = &self.diff.question;
        let mut out = String::new();
        for ((name, side), selection) in
            ["A", "B"].iter().zip(&self.diff.sides).zip(&question.sides)
        {
            let SideFacts { hosts, sessions, covered_ns } = *side;
            out += &format!(
                "{name}: {}: {}, {}, {} recorded\n",
                line(selection.text()),
                plural(hosts as u64, "host"),
                plural(sessions as u64, "session"),
                time(covered_ns, true)
            );
        }
        out += &format!("on both sides: {}", plural(self.diff.paired as u64, "host"));
        if let Some(control) = &question.control {
            let controls = plural(self.diff.controls as u64, "host");
            out += &format!("; controls: {}: {controls}", line(control.text()));
        }
        out + "\n"
    }

    fn table(&self, rows: &[&Row], width: Option<usize>) -> String {
        let strata = &self.diff.question.strata;
        let texts = |of: &dyn Fn(&Row) -> String| rows.iter().map(|row| of(row)).collect();
        let has_kinds = self.diff.rows.iter().any(|row| row.stratum.is_some());
        let mut table = Table::default();
        if has_kinds {
            table.names(
                strata,
                0,
                texts(&|row| row.stratum.clone().unwrap_or_else(|| "all".into())),
            );
        }
        table.names("level", 3, texts(&|row| level(row.level)));
        table.names("reason", 0, texts(&|row| row.reason_shown().to_owned()));
        table.names("metric", 0, texts(&|row| row.metric.name().to_owned()));
        for (side, name) in ["A", "B"].iter().enumerate() {
            table.numbers(
                name,
                2,
                texts(&|row| value(row.metric, row.means.get(side).copied().flatten())),
            );
        }
        table.numbers(
            "typical host",
            0,
            texts(&|row| row.change.map_or("-".into(), |one| times(one.ratio))),
        );
        table.numbers(
            &format!("{}% interval", (1.0 - self.diff.question.alpha) * 100.0),
            1,
            texts(&|row| row.change.map_or("-".into(), |one| interval(one.low, one.high))),
        );
        table.numbers("p adj.", 1, texts(&|row| row.p_adjusted.map_or("-".into(), chance)));
        table.numbers("fleet", 0, texts(&|row| row.total.map_or("-".into(), |one| times(one.0))));
        table.numbers(
            "interval",
            2,
            texts(&|row| row.total.map_or("-".into(), |one| interval(one.1, one.2))),
        );
        table.numbers("hosts", 0, texts(&hosts));
        table.names("note", 0, texts(&|row| note(row).unwrap_or_default()));
        table.draw(width).0
    }

    /// Which hosts carry what: a change that several numbers show is one.
    fn carriers(&self) -> String {
        let findings: Vec<&Row> = self.diff.rows.iter().filter(|row| row.is_finding()).collect();
        // What all kinds of hosts together show already names the hosts of a kind.
        let is_covered = |row: &&&Row| {
            let whole = |other: &&Row| other.stratum.is_none() && other.is_of(row);
            row.stratum.is_none() || !findings.iter().any(whole)
        };
        let mut all: Vec<(&Row, Vec<&str>)> = Vec::new();
        for row in findings.iter().filter(is_covered).filter(|row| !row.carried_by.is_empty()) {
            let is_same = |known: &&mut (&Row, Vec<&str>)| {
                known.0.is_of(row) && known.0.carried_by == row.carried_by
            };
            match all.iter_mut().find(is_same) {
                Some(known) => known.1.push(row.metric.name()),
                None => all.push((row, vec![row.metric.name()])),
            }
        }
        let lines: Vec<String> =
            all.iter().map(|(row, metrics)| self.carried(row, metrics)).collect();
        if lines.is_empty() {
            String::new()
        } else {
            format!("\nHosts that carry it\n{}", lines.concat())
        }
    }

    fn carried(&self, row: &Row, metrics: &[&str]) -> String {
        let of_level =
            if row.level == 0 { String::new() } else { format!(" of level {}", row.level) };
        let of_carriers = row.host_ratios.iter().filter(|one| row.carried_by.contains(&one.host));
        let kinds: BTreeSet<&str> = of_carriers.map(|one| one.stratum.as_str()).collect();
        let are_of_some = row.carried_by.len() < row.hosts[1] || row.stratum.is_some();
        let kind = match kinds.first() {
            Some(kind) if kinds.len() == 1 && are_of_some && !kind.is_empty() => {
                format!(", all of {} {}", self.diff.question.strata, line(kind))
            }
            _ => String::new(),
        };
        format!(
            "{}{of_level} ({}): {} of {}{kind}: {}\n",
            line(row.reason_shown()),
            metrics.join(", "),
            row.carried_by.len(),
            plural(row.hosts[1] as u64, "host"),
            names(&row.carried_by),
        )
    }

    fn left_out(&self) -> String {
        let what = [
            "that lost too many events",
            "of hosts that are not known",
            "that are on both sides",
            "of hosts that are controls for a part of B only",
        ];
        let mut out = String::new();
        for (sessions, what) in self.diff.left_out.iter().zip(what).filter(|one| *one.0 > 0) {
            out += &format!("left out: {} {what}\n", plural(*sessions as u64, "session"));
        }
        out
    }
}

impl Report for FleetReport {
    fn text(&self, width: Option<usize>) -> String {
        let rows = self.shown();
        let mut out = self.head() + &self.left_out();
        let compared = self.diff.rows.iter().filter(|row| row.change.is_some()).count();
        if rows.is_empty() {
            return out + &format!("\nNone of {} differs\n", plural(compared as u64, "row"));
        }
        out += "\n";
        out += &self.table(&rows, width);
        let findings = self.diff.rows.iter().filter(|row| row.is_finding()).count();
        out += &format!("\n{findings} of {} differ\n", plural(compared as u64, "row"));
        out + &self.carriers()
    }

    fn document(&self) -> impl Serialize {
        let question = &self.diff.question;
        let side = |at: usize| {
            let (Some(facts), Some(selection)) = (self.diff.sides.get(at), question.sides.get(at))
            else {
                return Value::Null;
            };
            json!({
                "condition": selection.text(),
                "hosts": facts.hosts,
                "sessions": facts.sessions,
                "covered_ns": facts.covered_ns,
            })
        };
        let [lost, unknown, on_both, mixed] = self.diff.left_out;
        json!({
            "schema": "hyperscope.fleet_diff/1",
            "a": side(0),
            "b": side(1),
            "paired": self.diff.paired,
            "control": question.control.as_ref().map(|one| one.text()),
            "controls": self.diff.controls,
            "strata": question.strata,
            "alpha": question.alpha,
            "seed": question.seed,
            "correction": "benjamini_hochberg",
            "left_out": { "lost": lost, "host_unknown": unknown, "on_both_sides": on_both, "control_in_part": mixed },
            "rows": self.diff.rows.iter().map(document_row).collect::<Vec<_>>(),
        })
    }

    fn csv(&self) -> Table {
        let rows = &self.diff.rows;
        let mut table = Table::default();
        let documents: Vec<Value> = rows.iter().map(document_row).collect();
        let cell = |value: &Value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        for name in CSV {
            let cells = documents.iter().map(|row| row.get(name).map_or_else(String::new, cell));
            table.names(name, 0, cells.collect());
        }
        table.names("carried_by", 0, rows.iter().map(|row| row.carried_by.join(" ")).collect());
        table
    }
}

/// Columns of CSV: what of the document's rows is no list, in its order.
const CSV: [&str; 24] = [
    "stratum",
    "level",
    "isa",
    "reason",
    "waiting",
    "metric",
    "a",
    "b",
    "hosts_a",
    "hosts_b",
    "paired",
    "design",
    "ratio",
    "ci_low",
    "ci_high",
    "p_value",
    "p_adjusted",
    "significant",
    "went_away",
    "shifted_with",
    "finding",
    "total_ratio",
    "total_low",
    "total_high",
];

fn document_row(row: &Row) -> Value {
    let change = row.change;
    let [a, b] = row.means;
    let [hosts_a, hosts_b, paired] = row.hosts;
    let ratios = row.host_ratios.iter().map(|one| {
        json!({ "host": one.host, "stratum": one.stratum, "a": one.a, "b": one.b, "ratio": one.b / one.a })
    });
    json!({
        "stratum": row.stratum,
        "level": (row.level != 0).then_some(row.level),
        "isa": (!row.isa.is_empty()).then_some(&row.isa),
        "reason": (!row.is_of_all()).then_some(&row.reason),
        "waiting": row.waiting,
        "metric": row.metric.name(),
        "a": a,
        "b": b,
        "hosts_a": hosts_a,
        "hosts_b": hosts_b,
        "paired": paired,
        "design": change.map(|one| one.design.name()),
        "ratio": change.map(|one| one.ratio),
        "ci_low": change.map(|one| one.low),
        "ci_high": change.map(|one| one.high),
        "p_value": change.map(|one| one.p),
        "p_adjusted": row.p_adjusted,
        "significant": row.significant,
        "went_away": row.went_away,
        "shifted_with": row.shifted,
        "finding": row.is_finding(),
        "total_ratio": row.total.map(|one| one.0),
        "total_low": row.total.map(|one| one.1),
        "total_high": row.total.map(|one| one.2),
        "carried_by": row.carried_by,
        "hosts": ratios.collect::<Vec<_>>(),
    })
}

fn hosts(row: &Row) -> String {
    match row.hosts {
        [a, b, paired] if a == b && b == paired => a.to_string(),
        [a, b, 0] => format!("{a} / {b}"),
        [_, _, paired] => paired.to_string(),
    }
}

/// Why a row that differs is no finding.
fn note(row: &Row) -> Option<String> {
    if !row.significant {
        return None;
    }
    if row.went_away == Some(true) {
        return Some("went away".to_owned());
    }
    row.shifted.as_ref().map(|other| format!("moved: {other} makes up for it"))
}
