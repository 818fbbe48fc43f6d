//! The report of `hyperscope critical`: what a task waited for, added up, and its longest wait step by step.

mod columns;

use analyses::critical::{Critical, CriticalPart, CriticalStep, CriticalWait};
use printable::line;
use serde::Serialize;
use serde_json::Value;

pub(crate) use self::columns::words;
use self::columns::{PARTS, PartRow, THREADS, ThreadRow, of_parts, of_threads};
use crate::column::{self, Rows};
use crate::json::Object;
use crate::table::Table;
use crate::units::{count, plural, share, time};
use crate::{RecorderCost, Report, losses};

/// Threads that people are shown.
const MOST_THREADS: usize = 10;

/// Steps of the longest wait that people are shown.
const MOST_STEPS: usize = 24;

/// What tasks waited for.
#[derive(Debug)]
pub struct CriticalReport {
    /// Paths of the recordings, as the user named them.
    pub sources: Vec<String>,
    /// How the guests among them were aligned, a line each.
    pub alignment: Vec<String>,
    /// The task or the request that was asked about.
    pub task: String,
    /// The numbers.
    pub critical: Critical,
    /// Parts that people are shown.
    pub top: usize,
    /// What recording cost, where the recorder reported it.
    pub recorder_cost: Option<RecorderCost>,
}

impl Report for CriticalReport {
    fn text(&self, width: Option<usize>) -> String {
        let mut out: String = self.sources.iter().map(|one| format!("{}\n", line(one))).collect();
        self.alignment.iter().for_each(|text| out += &format!("{}\n", line(text)));
        let threads: Vec<ThreadRow<'_>> = self.threads().into_iter().take(MOST_THREADS).collect();
        if !threads.is_empty() {
            let mut table = Table::default();
            column::draw(&of_threads(), &mut table, THREADS, &threads);
            out += &format!("\n{}", table.draw(width).0);
        }
        let parts: Vec<PartRow<'_>> = self.parts().into_iter().take(self.top).collect();
        if !parts.is_empty() {
            let waited = time(self.critical.waited_ns(), self.ns());
            let mut table = Table::default();
            column::draw(&of_parts(), &mut table, PARTS, &parts);
            out += &format!("\nWhat the {waited} were waited for\n{}", table.draw(width).0);
        }
        if let Some(longest) = self.critical.longest.first() {
            out += &self.wait_text(longest, width);
        }
        for note in self.notes() {
            out += &format!("\n{note}");
        }
        out + "\n"
    }

    fn document(&self) -> impl Serialize {
        let waited_ns = self.critical.waited_ns();
        Document {
            schema: "hyperscope.critical/1",
            sources: &self.sources,
            alignment: &self.alignment,
            losses: losses::json(self.critical.losses.iter(), 0),
            recorder_cost: self.recorder_cost.as_ref().map(RecorderCost::json),
            task: &self.task,
            waited_ns: self.ns().then_some(waited_ns),
            waited_cycles: (!self.ns()).then_some(waited_ns),
            threads: Rows { columns: of_threads(), rows: self.threads() },
            parts: Rows { columns: of_parts(), rows: self.parts() },
            longest: self.critical.longest.iter().map(|wait| self.wait_json(wait)).collect(),
        }
    }

    fn csv(&self) -> Table {
        column::csv(&of_parts(), &self.parts(), &[self.ns()])
    }
}

/// The document of `hyperscope critical`.
#[derive(Debug, Serialize)]
struct Document<'r> {
    schema: &'static str,
    sources: &'r [String],
    alignment: &'r [String],
    losses: Value,
    recorder_cost: Option<Value>,
    task: &'r str,
    waited_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waited_cycles: Option<u64>,
    threads: Rows<ThreadRow<'r>>,
    parts: Rows<PartRow<'r>>,
    longest: Vec<Value>,
}

impl CriticalReport {
    fn ns(&self) -> bool {
        self.critical.nanoseconds
    }

    fn threads(&self) -> Vec<ThreadRow<'_>> {
        let threads = self.critical.threads.iter();
        threads.map(|thread| ThreadRow { thread, ns: self.ns() }).collect()
    }

    fn parts(&self) -> Vec<PartRow<'_>> {
        let waited_ns = self.critical.waited_ns();
        self.critical.parts.iter().map(|part| PartRow { part, waited_ns, ns: self.ns() }).collect()
    }

    fn wait_json(&self, wait: &CriticalWait) -> Value {
        let ns = self.ns();
        let step = |step: &CriticalStep| {
            let CriticalPart { machine, thread, on, state, reason, .. } = &step.part;
            let mut object = Object::default();
            object.time("from", ns, Some(step.from_ns)).time("to", ns, Some(step.to_ns));
            object.set("machine", machine.clone()).set("thread", thread.clone());
            object.set("on", on.name()).set("state", state.name()).set("reason", reason.clone());
            object.done()
        };
        let mut object = Object::default();
        object.set("machine", wait.machine.clone()).set("tid", wait.tid);
        object.time("from", ns, Some(wait.from_ns)).time("to", ns, Some(wait.to_ns));
        object.set("cut", wait.is_cut);
        object.set("steps", wait.steps.iter().map(step).collect::<Vec<_>>()).done()
    }

    /// The longest wait, step by step.
    fn wait_text(&self, wait: &CriticalWait, width: Option<usize>) -> String {
        let (ns, length_ns) = (self.ns(), wait.to_ns.saturating_sub(wait.from_ns));
        let cut = wait.steps.len().saturating_sub(MOST_STEPS);
        let steps = wait.steps.get(cut..).unwrap_or_default();
        let mut table = Table::default();
        let cells = |of: &dyn Fn(&CriticalStep) -> String| steps.iter().map(of).collect();
        let after = |step: &CriticalStep| time(step.from_ns.saturating_sub(wait.from_ns), ns);
        table.numbers("after", 0, cells(&after));
        table.numbers("took", 0, cells(&|step| time(step.to_ns - step.from_ns, ns)));
        table.names("machine", 0, cells(&|step| step.part.machine.clone()));
        table.names("thread", 0, cells(&|step| step.part.thread.clone()));
        table.names("state", 0, cells(&|step| words(step.part.state).to_owned()));
        let reason = |step: &CriticalStep| step.part.reason.clone().unwrap_or_else(|| "-".into());
        table.names("reason", 0, cells(&reason));
        let at = if ns { format!(" at {:.9}", wait.from_ns as f64 / 1e9) } else { String::new() };
        let mut out = format!(
            "\nThe longest: {} of {} thread {}{at}\n{}",
            time(length_ns, ns),
            line(&wait.machine),
            wait.tid,
            table.draw(width).0
        );
        if cut > 0 || wait.is_cut {
            out += &format!("its last {} are shown\n", plural(steps.len() as u64, "step"));
        }
        out
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let more = self.critical.threads.iter().skip(MOST_THREADS).map(|one| one.waited_ns);
        if more.len() > 0 {
            let threads = plural(more.len() as u64, "more thread");
            notes.push(format!("{threads} waited {}", time(more.sum(), self.ns())));
        }
        let parts = self.critical.parts.iter().skip(self.top).map(|one| one.time_ns);
        if parts.len() > 0 {
            let (number, sum) = (count(parts.len() as u64), parts.sum());
            let share = share(sum, self.critical.waited_ns());
            notes.push(format!("{number} more parts of {share}: --top 0 shows them"));
        }
        for (source, _) in
            self.sources.iter().zip(&self.critical.has_scheduler).filter(|one| !one.1)
        {
            notes.push(format!(
                "{} has no switches or no wake-ups of threads: record sched_switch and sched_waking",
                line(source)
            ));
        }
        notes.extend(self.recorder_cost.as_ref().map(RecorderCost::note));
        self.critical.losses.iter().for_each(|one| notes.extend(losses::notes(one, 0)));
        notes
    }
}
