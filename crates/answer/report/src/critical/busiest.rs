//! The output of `hyperscope critical` without --task and --request: the busiest threads.

use analyses::critical::{Busiest, BusyThread};
use printable::line;
use serde::Serialize;

use super::columns::{of_parts, of_threads};
use super::document::{BusiestThread, Document, Waited};
use crate::column::Rows;
use crate::losses::LossSums;
use crate::table::Table;
use crate::units::{count, plural};
use crate::{RecorderCost, Report, losses};

/// The threads of some recordings, the busiest first.
#[derive(Debug)]
pub struct BusiestReport {
    /// Paths of the recordings, as the user named them.
    pub sources: Vec<String>,
    /// How guests were aligned, one line per guest.
    pub alignment: Vec<String>,
    /// The threads.
    pub busiest: Busiest,
    /// The cost of recording, if the recorder reported it.
    pub recorder_cost: Option<RecorderCost>,
    /// Max threads in the text.
    pub top: usize,
}

impl BusiestReport {
    fn table(&self, threads: &[&BusyThread], shown: impl Fn(u64) -> String) -> Table {
        let column = |text_of: fn(&BusyThread) -> &String| {
            threads.iter().map(|thread| text_of(thread).clone()).collect::<Vec<_>>()
        };
        let mut table = Table::default();
        table.names("machine", 0, column(|thread| &thread.machine));
        table.names("thread", 0, column(|thread| &thread.thread));
        let switches = threads.iter().map(|thread| shown(thread.switches)).collect();
        table.numbers("switches", 0, switches);
        table
    }
}

impl Report for BusiestReport {
    fn headline(&self) -> String {
        let Some(first) = self.busiest.threads.first() else {
            return "No thread switches were recorded.".to_owned();
        };
        format!(
            "The busiest thread is {} of {}, with {}; no --task or --request was given.",
            line(&first.thread),
            line(&first.machine),
            plural(first.switches, "switch")
        )
    }

    fn tables(&self, width: Option<usize>) -> String {
        let mut out: String =
            self.sources.iter().map(|source| format!("{}\n", line(source))).collect();
        let shown: Vec<&BusyThread> = self.busiest.threads.iter().take(self.top).collect();
        out += "\nThe busiest threads:\n";
        out += &self.table(&shown, count).draw(width).0;
        if let Some(first) = shown.first() {
            let name = line(&format!("{}/{}", first.machine, first.thread)).into_owned();
            out += &format!("\n--task '{name}' shows what the first thread waited for\n");
        }
        for loss in &self.busiest.losses {
            losses::notes(loss, 0).iter().for_each(|note| out += &format!("{}\n", line(note)));
        }
        out
    }

    fn document(&self) -> impl Serialize {
        Document {
            schema: "hyperscope.critical/1",
            sources: &self.sources,
            alignment: &self.alignment,
            losses: LossSums::new(self.busiest.losses.iter(), 0),
            recorder_cost: self.recorder_cost.as_ref().map(RecorderCost::document),
            task: None,
            waited: Waited { in_ns: true, waited: None },
            threads: Rows { columns: of_threads(), rows: Vec::new() },
            parts: Rows { columns: of_parts(), rows: Vec::new() },
            longest: Vec::new(),
            busiest: Some(self.busiest.threads.iter().map(BusiestThread::new).collect()),
        }
    }

    fn csv(&self) -> Table {
        let all: Vec<&BusyThread> = self.busiest.threads.iter().collect();
        self.table(&all, |switches| switches.to_string())
    }
}
