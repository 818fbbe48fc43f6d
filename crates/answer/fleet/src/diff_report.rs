//! The comparison of a fleet as a table, JSON and CSV.

mod columns;
mod document;

use std::collections::BTreeSet;

use printable::line;
use report::column;
use report::{Report, Table, plural, time};
use serde::Serialize;

use self::columns::{Shown, TABLE, columns};
pub(crate) use self::document::{Carriers, CarriersAndHosts, Document};
use crate::diff::{FleetDiff, SideFacts};
use crate::findings::distinct;
use crate::rows::Row;
use crate::shown::names;

/// A comparison with display options.
#[derive(Debug)]
pub struct FleetReport {
    /// The comparison.
    pub diff: FleetDiff,
    /// Also show rows that don't differ.
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
        let shown: Vec<Shown<'_>> = rows.iter().map(|row| Shown { row }).collect();
        let mut table = Table::default();
        column::draw(&columns(&self.diff), &mut table, TABLE, &shown);
        table.draw(width).0
    }

    /// Lists changes with the hosts that carry them; several numbers may show the same change.
    fn carriers(&self) -> String {
        let all = distinct(&self.diff.rows);
        let lines: Vec<String> = all
            .iter()
            .filter_map(|rows| {
                let rows: Vec<&Row> =
                    rows.iter().filter_map(|at| self.diff.rows.get(*at)).collect();
                let metrics: Vec<&str> = rows.iter().map(|row| row.metric.name()).collect();
                Some(self.carried(rows.first()?, &metrics))
            })
            .collect();
        if lines.is_empty() {
            String::new()
        } else {
            format!("\nHosts that carry it\n{}", lines.concat())
        }
    }

    fn carried(&self, row: &Row, metrics: &[&str]) -> String {
        let of_level =
            if row.level == 0 { String::new() } else { format!(" of level {}", row.level) };
        let of_carriers =
            row.host_ratios.iter().filter(|ratio| row.carried_by.contains(&ratio.host));
        let kinds: BTreeSet<&str> = of_carriers.map(|ratio| ratio.stratum.as_str()).collect();
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
            "of unknown hosts",
            "that are on both sides",
            "of hosts that are controls for only a part of B",
        ];
        let mut out = String::new();
        for (sessions, what) in self.diff.left_out.iter().zip(what).filter(|entry| *entry.0 > 0) {
            out += &format!("left out: {} {what}\n", plural(*sessions as u64, "session"));
        }
        out
    }
}

impl Report for FleetReport {
    fn headline(&self) -> String {
        let compared = self.diff.rows.iter().filter(|row| row.change.is_some()).count();
        let rows = plural(compared as u64, "row");
        match self.diff.rows.iter().filter(|row| row.is_finding()).count() {
            0 => format!("None of {rows} differs."),
            1 => format!("1 of {rows} differs."),
            findings => format!("{findings} of {rows} differ."),
        }
    }

    fn tables(&self, width: Option<usize>) -> String {
        let rows = self.shown();
        let mut out = self.head() + &self.left_out();
        if rows.is_empty() {
            return out;
        }
        out += "\n";
        out += &self.table(&rows, width);
        out + &self.carriers()
    }

    fn document(&self) -> impl Serialize {
        Document::<CarriersAndHosts<'_>>::new(&self.diff)
    }

    fn csv(&self) -> Table {
        let rows: Vec<Shown<'_>> = self.diff.rows.iter().map(|row| Shown { row }).collect();
        column::csv(&columns(&self.diff), &rows, &[true])
    }
}
