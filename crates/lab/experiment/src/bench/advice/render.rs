//! The outcome as table, JSON and CSV.

use report::{Report, Table, plural};

use super::judgement::{Measured, Outcome, Row};
use super::switches::Switch;
use crate::bench::render::{NONE, draw, plain};

impl Report for Outcome {
    fn headline(&self) -> String {
        let kinds = [(true, "savings are as predicted"), (false, "silences are right")];
        let parts: Vec<String> = kinds
            .into_iter()
            .map(|(speaks, what)| (self.held(speaks), what))
            .filter(|((_, total), _)| *total > 0)
            .map(|((held, total), what)| format!("{held} of {total} {what}"))
            .collect();
        if parts.is_empty() { "Nothing was measured.".to_owned() } else { parts.join("; ") + "." }
    }

    fn tables(&self, width: Option<usize>) -> String {
        draw(&self.table(), width) + &self.notes()
    }

    fn document(&self) -> impl serde::Serialize {
        self
    }

    fn csv(&self) -> Table {
        let mut table = Table::default();
        let cells = |cell: &dyn Fn(&Row) -> String| self.rows.iter().map(cell).collect::<Vec<_>>();
        let measured =
            |value: fn(&Measured) -> f64| cells(&|row| plain(row.measured.as_ref().map(value)));
        table.names("switch", 0, cells(&|row| row.prediction.switch.clone()));
        table.names("rule", 0, cells(&|row| row.prediction.rule.clone()));
        table.names("workload", 0, cells(&|row| row.prediction.workload.clone()));
        table.names("speaks", 0, cells(&|row| row.prediction.speaks.to_string()));
        table.names("whole", 0, cells(&|row| row.prediction.whole.clone()));
        table.numbers("whole_ns", 0, cells(&|row| row.prediction.whole_ns.to_string()));
        table.numbers("least", 0, cells(&|row| row.prediction.least.to_string()));
        table.numbers("most", 0, cells(&|row| row.prediction.most.to_string()));
        table.numbers("resolution", 0, cells(&|row| row.prediction.resolution.to_string()));
        table.numbers("saved", 0, measured(|m| m.saved));
        table.numbers("a_exits", 0, measured(|m| m.a_exits));
        table.numbers("b_exits", 0, measured(|m| m.b_exits));
        let holds =
            |row: &Row| row.measured.as_ref().map_or(String::new(), |m| m.holds.to_string());
        table.names("holds", 0, cells(&holds));
        table
    }
}

impl Outcome {
    fn table(&self) -> Table {
        let mut table = Table::default();
        let cells = |cell: &dyn Fn(&Row) -> String| self.rows.iter().map(cell).collect::<Vec<_>>();
        let exits = |value: fn(&Measured) -> f64| {
            cells(&|row| {
                row.measured.as_ref().map_or(NONE.to_owned(), |m| format!("{:.0}", value(m)))
            })
        };
        table.names("switch", 0, cells(&|row| row.prediction.switch.clone()));
        table.names("workload", 0, cells(&|row| row.prediction.workload.clone()));
        table.names("rule", 2, cells(&|row| row.prediction.rule.clone()));
        table.numbers("predicted", 0, cells(&predicted));
        table.numbers("±", 0, cells(&|row| percent(row.prediction.resolution)));
        let saved = |row: &Row| row.measured.as_ref().map_or(NONE.to_owned(), |m| percent(m.saved));
        table.numbers("measured", 0, cells(&saved));
        table.names("of time", 1, cells(&|row| row.prediction.whole.clone()));
        table.names("holds", 0, cells(&holds));
        let what = |row: &Row| {
            Switch::named(&row.prediction.switch)
                .map_or(String::new(), |switch| switch.what.to_owned())
        };
        table.names("what B does", 3, cells(&what));
        table.numbers("exits A", 1, exits(|m| m.a_exits));
        table.numbers("exits B", 1, exits(|m| m.b_exits));
        table
    }

    fn notes(&self) -> String {
        let conditions = &self.conditions;
        let before = if conditions.predicted_before {
            "Predictions were read from a file that was written before these runs."
        } else {
            "Predictions come from recordings of side A before these runs."
        };
        format!(
            "{} of each side, in pairs; order from seed {}; {} repeated. {before}\n\
             ±: one percent of the VM's time, below which advice is silent and intervals are not exact.\n\
             Savings are A - B as a share of A: CPU time of vCPUs outside the guest, or their waits for a\n\
             CPU. A nanosecond of the lab's time is an instruction. {}\n",
            plural(conditions.runs.into(), "run"),
            conditions.seed,
            plural(conditions.repeated_runs.into(), "run"),
            conditions.surroundings.load(),
        )
    }
}

fn predicted(row: &Row) -> String {
    let prediction = &row.prediction;
    if prediction.speaks {
        format!("{} … {}", percent(prediction.least), percent(prediction.most))
    } else {
        "silent".to_owned()
    }
}

fn holds(row: &Row) -> String {
    match &row.measured {
        Some(measured) if measured.holds => "yes".to_owned(),
        Some(_) => "no".to_owned(),
        None => NONE.to_owned(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}
