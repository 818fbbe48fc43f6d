//! The report of `hyperscope critical`: the causes of a task's waits, summed, and its longest wait step by
//! step.

mod busiest;
mod columns;
mod document;

use analyses::critical::{Critical, CriticalPart, CriticalStep, CriticalThread, CriticalWait};
use printable::line;
use serde::Serialize;

pub use self::busiest::BusiestReport;
pub(crate) use self::columns::words;
use self::columns::{PARTS, PartRow, THREADS, ThreadRow, marked, of_parts, of_threads};
pub(crate) use self::document::Document;
use self::document::{Step, StepTimes, Wait, WaitTimes, Waited};
use crate::column::{self, Rows};
use crate::greatest::greatest;
use crate::losses::LossSums;
use crate::table::Table;
use crate::units::{plural, share, them, time};
use crate::{Legend, RecorderCost, Report, losses};

/// Max threads in the text.
const MAX_THREADS: usize = 10;

/// Max threads whose earlier names are listed, and max names of each.
const MAX_RENAMED: usize = 3;

/// Max steps of the longest wait in the text: the longest ones are shown.
const MAX_STEPS: usize = 100;

/// The waits of tasks.
#[derive(Debug)]
pub struct CriticalReport {
    /// Paths of the recordings, as the user named them.
    pub sources: Vec<String>,
    /// How guests were aligned, one line per guest.
    pub alignment: Vec<String>,
    /// The requested task or request.
    pub task: String,
    /// The numbers.
    pub critical: Critical,
    /// Max parts in the text.
    pub top: usize,
    /// The cost of recording, if the recorder reported it.
    pub recorder_cost: Option<RecorderCost>,
}

impl Report for CriticalReport {
    fn headline(&self) -> String {
        let threads = &self.critical.threads;
        let sum = |value_of: fn(&CriticalThread) -> u64| {
            time(threads.iter().map(value_of).fold(0, u64::saturating_add), self.ns())
        };
        let who = match threads.as_slice() {
            [thread] => {
                line(&format!("{} of {}", marked(&thread.thread), thread.machine)).into_owned()
            }
            threads => plural(threads.len() as u64, "thread"),
        };
        let (ran, waited) = (sum(|thread| thread.ran_ns), sum(|thread| thread.waited_ns));
        format!("{who} ran {ran} and waited {waited}{}.", self.longest_part())
    }

    fn tables(&self, width: Option<usize>) -> String {
        let mut out: String =
            self.sources.iter().map(|source| format!("{}\n", line(source))).collect();
        self.alignment.iter().for_each(|text| out += &format!("{}\n", line(text)));
        let threads: Vec<ThreadRow<'_>> = self.threads().into_iter().take(MAX_THREADS).collect();
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
            out += &format!("\nHow the {waited} of waiting were spent\n{}", table.draw(width).0);
        }
        if let Some(longest) = self.critical.longest.first() {
            out += &self.wait_text(longest, width);
        }
        for note in self.notes() {
            out += &format!("\n{note}");
        }
        out + "\n"
    }

    fn legend(&self) -> Legend {
        vec![
            ("all", "ran + waited + unknown"),
            ("waited", "no CPU of its machine, or its vCPU not in its guest"),
            ("reason", "of an exit, or who had the CPU"),
        ]
    }

    fn document(&self) -> impl Serialize {
        let waited_ns = self.critical.waited_ns();
        Document {
            schema: "hyperscope.critical/1",
            sources: &self.sources,
            alignment: &self.alignment,
            losses: LossSums::new(self.critical.losses.iter(), 0),
            recorder_cost: self.recorder_cost.as_ref().map(RecorderCost::document),
            task: Some(&self.task),
            waited: Waited { in_ns: self.ns(), waited: Some(waited_ns) },
            threads: Rows { columns: of_threads(), rows: self.threads() },
            parts: Rows { columns: of_parts(), rows: self.parts() },
            longest: self.critical.longest.iter().map(|wait| self.wait(wait)).collect(),
            busiest: None,
        }
    }

    fn csv(&self) -> Table {
        column::csv(&of_parts(), &self.parts(), &[self.ns()])
    }
}

impl CriticalReport {
    /// What most of the waiting was for.
    fn longest_part(&self) -> String {
        let parts = self.critical.parts.iter().filter(|part| part.time_ns > 0);
        let Some((_, part)) = greatest(parts.map(|part| (part.time_ns, part))) else {
            return String::new();
        };
        let reason =
            part.reason.as_deref().map_or_else(String::new, |name| format!(" {}", marked(name)));
        let what =
            format!("{} of {} ({}{reason})", marked(&part.thread), part.machine, words(part.state));
        let share = share(part.time_ns, self.critical.waited_ns());
        let is_own = |thread: &CriticalThread| {
            thread.thread == part.thread && thread.machine == part.machine
        };
        if self.critical.threads.iter().all(is_own) {
            let state = line(&format!("{}{reason}", words(part.state))).into_owned();
            return format!(", {share} of it {state}");
        }
        format!(", {share} of it for {}", line(&what))
    }

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

    fn wait<'r>(&self, wait: &'r CriticalWait) -> Wait<'r> {
        let in_ns = self.ns();
        let step = |step: &'r CriticalStep| {
            let CriticalPart { machine, thread, on, state, reason, .. } = &step.part;
            Step {
                times: StepTimes { in_ns, from: Some(step.from_ns), to: Some(step.to_ns) },
                machine,
                thread,
                tid: step.of_thread.map(|(_, tid)| tid),
                on: on.name(),
                state: state.name(),
                reason: reason.as_deref(),
            }
        };
        Wait {
            machine: &wait.machine,
            tid: wait.tid,
            times: WaitTimes { in_ns, from: Some(wait.from_ns), to: Some(wait.to_ns) },
            cut: wait.is_cut,
            steps: wait.steps.iter().map(step).collect(),
        }
    }

    /// The longest wait, step by step.
    fn wait_text(&self, wait: &CriticalWait, width: Option<usize>) -> String {
        let (ns, length_ns) = (self.ns(), wait.to_ns.saturating_sub(wait.from_ns));
        let lines = wait_lines(wait);
        let mut table = Table::default();
        let cells = |cell_of: &dyn Fn(&WaitLine<'_>) -> String| lines.iter().map(cell_of).collect();
        let part = |text_of: &'static dyn Fn(&CriticalStep) -> String| {
            cells(&move |line| line.step.map_or_else(|| "…".to_owned(), text_of))
        };
        table.numbers("after", 0, cells(&|line| time(line.from_ns - wait.from_ns, ns)));
        table.numbers("took", 0, cells(&|line| time(line.to_ns - line.from_ns, ns)));
        table.names("machine", 0, part(&|step| step.part.machine.clone()));
        table.names("thread", 0, part(&|step| marked(&step.part.thread)));
        table.names("state", 0, part(&|step| words(step.part.state).to_owned()));
        let reason = &|step: &CriticalStep| {
            step.part.reason.as_deref().map_or_else(|| "-".to_owned(), marked)
        };
        table.names("reason", 0, part(reason));
        let at = if ns { format!(" at {:.9}", wait.from_ns as f64 / 1e9) } else { String::new() };
        let mut out = format!(
            "\nThe longest: {} of {} thread {}{at}\n{}",
            time(length_ns, ns),
            line(&wait.machine),
            wait.tid,
            table.draw(width).0
        );
        let shown = lines.iter().filter(|line| line.step.is_some()).count();
        if wait.is_cut || shown < wait.steps.len() {
            let steps = plural(shown as u64, "step");
            out += &format!(
                "only the {steps} that took longest are shown; … stands for the steps between them\n"
            );
        }
        out
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        notes.extend(self.recording_itself());
        notes.extend(self.earlier_names());
        let more = self.critical.threads.iter().skip(MAX_THREADS).map(|thread| thread.waited_ns);
        if more.len() > 0 {
            let threads = plural(more.len() as u64, "more thread");
            notes.push(format!("{threads} waited {}", time(more.sum(), self.ns())));
        }
        let parts = self.critical.parts.iter().skip(self.top).map(|part| part.time_ns);
        if parts.len() > 0 {
            let (number, sum) = (plural(parts.len() as u64, "more part"), parts.clone().sum());
            let share = share(sum, self.critical.waited_ns());
            notes.push(format!("{number} of {share}: --top 0 shows {}", them(parts.len())));
        }
        for (source, _) in
            self.sources.iter().zip(&self.critical.has_scheduler).filter(|pair| !pair.1)
        {
            notes.push(format!(
                "{} has no thread switches or no wake-ups: record sched_switch and sched_waking",
                line(source)
            ));
        }
        notes.extend(self.recorder_cost.as_ref().map(RecorderCost::note));
        self.critical.losses.iter().for_each(|loss| notes.extend(losses::notes(loss, 0)));
        notes
    }

    /// Waits that only the recording itself caused.
    fn recording_itself(&self) -> Option<String> {
        let parts = self.critical.parts.iter().filter(|part| part.is_recorder);
        let waited_ns = parts.map(|part| part.time_ns).fold(0, u64::saturating_add);
        (waited_ns > 0).then(|| {
            let (all_ns, ns) = (self.critical.waited_ns(), self.ns());
            format!(
                "{} of {} ({}) was spent on the recording itself: this wait only exists while recording",
                time(waited_ns, ns),
                time(all_ns, ns),
                share(waited_ns, all_ns)
            )
        })
    }

    /// Earlier names of the requested threads.
    fn earlier_names(&self) -> Vec<String> {
        let renamed =
            self.critical.threads.iter().filter(|thread| !thread.earlier_names.is_empty());
        let sentence = |thread: &CriticalThread| {
            let names = thread.earlier_names.iter().rev().take(MAX_RENAMED);
            let names = names.map(|(_, name)| name.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            format!("{} of {} was previously called {names}", thread.thread, thread.machine)
        };
        renamed.take(MAX_RENAMED).map(sentence).map(|note| line(&note).into_owned()).collect()
    }
}

/// A line of a wait: a step, or the time of the omitted steps between two.
struct WaitLine<'w> {
    from_ns: u64,
    to_ns: u64,
    step: Option<&'w CriticalStep>,
}

/// The longest steps of a wait, in order, and the time between them: together the complete wait.
fn wait_lines(wait: &CriticalWait) -> Vec<WaitLine<'_>> {
    let length = |step: &CriticalStep| step.to_ns.saturating_sub(step.from_ns);
    let mut longest: Vec<&CriticalStep> = wait.steps.iter().collect();
    longest.sort_by_key(|step| std::cmp::Reverse(length(step)));
    longest.truncate(MAX_STEPS);
    longest.sort_by_key(|step| step.from_ns);
    let (mut lines, mut now_ns) = (Vec::new(), wait.from_ns);
    for step in longest {
        if step.from_ns > now_ns {
            lines.push(WaitLine { from_ns: now_ns, to_ns: step.from_ns, step: None });
        }
        let from_ns = step.from_ns.max(wait.from_ns);
        lines.push(WaitLine { from_ns, to_ns: step.to_ns.max(from_ns), step: Some(step) });
        now_ns = step.to_ns.max(from_ns);
    }
    if wait.to_ns > now_ns {
        lines.push(WaitLine { from_ns: now_ns, to_ns: wait.to_ns, step: None });
    }
    lines
}

#[cfg(test)]
mod tests {
    use analyses::critical::{CriticalPart, CriticalState};
    use analyses::path::Actor;

    use super::*;

    fn step(from_ns: u64, to_ns: u64) -> CriticalStep {
        let part = CriticalPart {
            machine: "host".to_owned(),
            thread: "t".to_owned(),
            on: Actor::Host,
            state: CriticalState::Running,
            reason: None,
            time_ns: to_ns - from_ns,
            count: 1,
            is_recorder: false,
        };
        CriticalStep { from_ns, to_ns, part, of_thread: None }
    }

    /// The longest step is the first of 300: it is shown, and all lines add up to the wait.
    #[test]
    fn the_longest_steps_are_shown_wherever_they_are_and_lines_add_up() {
        let steps =
            (0..300).map(|at| step(1000 + at * 10 + u64::from(at > 0) * 5000, 6010 + at * 10));
        let wait = CriticalWait {
            machine: "host".to_owned(),
            tid: 1,
            of_thread: (0, 1),
            from_ns: 1000,
            to_ns: 9000,
            steps: steps.collect(),
            is_cut: false,
        };
        let lines = wait_lines(&wait);
        assert_eq!(lines.iter().filter(|line| line.step.is_some()).count(), MAX_STEPS);
        assert_eq!((lines[0].from_ns, lines[0].to_ns), (1000, 6010));
        assert!(lines.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
        assert_eq!(lines.iter().map(|line| line.to_ns - line.from_ns).sum::<u64>(), 8000);
    }
}
