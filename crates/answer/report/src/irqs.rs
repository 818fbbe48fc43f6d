//! The report of `hyperscope irqs`: handlers of interrupts, of hosts and guests.

mod columns;
mod histogram;

use analyses::irqs::{HandlerRow, Irqs};
use printable::line;
use schemars::JsonSchema;
use serde::Serialize;

use self::columns::{Row, TABLE, columns};
use crate::column::{self, Rows};
use crate::greatest::greatest;
use crate::losses::LossSums;
use crate::recorder_cost::CostDocument;
use crate::table::Table;
use crate::units::{count, plural, share, time};
use crate::{Legend, RecorderCost, Report, losses};

/// Handlers of interrupts.
#[derive(Debug)]
pub struct IrqsReport {
    /// Paths of the recordings, as the user named them.
    pub sources: Vec<String>,
    /// The numbers.
    pub irqs: Irqs,
    /// Max rows of each machine in the text.
    pub top: usize,
    /// Whether the text has histograms of durations.
    pub histogram: bool,
    /// The cost of recording, if the recorder reported it.
    pub recorder_cost: Option<RecorderCost>,
}

impl Report for IrqsReport {
    fn headline(&self) -> String {
        format!("{}: {}.", line(&self.sources.join(", ")), self.result())
    }

    fn tables(&self, width: Option<usize>) -> String {
        let mut out = String::new();
        let shown = self.first(self.top);
        if !shown.is_empty() {
            let mut table = Table::default();
            column::draw(&columns(), &mut table, TABLE, &shown);
            let (drawn, left_out) = table.draw(width);
            out += &format!("\n{drawn}\n");
            let further = self.irqs.rows.len() - shown.len();
            if further > 0 {
                out += &format!("{} more: --top 0 shows them\n", count(further as u64));
            }
            if !left_out.is_empty() {
                out += &format!(
                    "hidden to fit the width: {}; csv and json show all\n",
                    left_out.join(", ")
                );
            }
        }
        for note in self.notes() {
            out += &format!("{note}\n");
        }
        let timed =
            shown.iter().filter(|row| self.histogram && row.handler.sums.durations.count() > 0);
        timed.for_each(|row| out += &self.histogram(row.handler));
        out
    }

    fn legend(&self) -> Legend {
        vec![
            ("own time", "time without the handlers that interrupted it"),
            ("host's", "part of own time in which the vCPU was not in the guest"),
            ("due p50", "median time from softirq_raise to the handler"),
            ("due p99", "time from softirq_raise to the handler"),
        ]
    }

    fn document(&self) -> impl Serialize {
        self.document_of(usize::MAX)
    }

    fn csv(&self) -> Table {
        column::csv(&columns(), &self.first(usize::MAX), &[self.irqs.nanoseconds])
    }
}

/// Output of `hyperscope irqs --format json`: handlers of interrupts, of hosts and guests. See docs/irqs.md.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r> {
    schema: &'static str,
    /// Paths of the recordings, as they were named.
    sources: &'r [String],
    /// By recording.
    machines: Vec<Machine<'r>>,
    /// Losses of all sources.
    losses: LossSums,
    /// Cost of the recording itself, if the recorder reported it (sessions of hyperscope record). Null: not
    /// measured.
    recorder_cost: Option<CostDocument<'r>>,
    /// Ends of runs that began before the recording, or while events were lost.
    ends_alone: u64,
    /// Runs without a row: there are at most 8,192 rows.
    left_out: u64,
    /// By machine, in descending order of self time.
    handlers: Rows<Row<'r>>,
    /// Durations of runs: one histogram for each of handlers, in the same order.
    histograms: Vec<Histogram>,
}

/// The recording of a machine.
#[derive(Debug, JsonSchema, Serialize)]
struct Machine<'r> {
    /// host, or the name of the VM.
    machine: &'r str,
    /// From its first event to its last. Nanoseconds. Null: it has no readable event.
    span_ns: Option<u64>,
    /// Whether events of interrupts were recorded.
    recorded: bool,
}

/// Histogram of the durations of one row's runs.
#[derive(Debug, JsonSchema, Serialize)]
struct Histogram {
    /// Powers of two, without gaps from the shortest time to the longest.
    below: Vec<Bucket>,
}

/// Runs shorter than a power of two, and at least half of it.
#[derive(Debug, JsonSchema, Serialize)]
struct Bucket {
    /// Runs shorter than this, and at least half of it. Nanoseconds; 2^64 - 1 stands for 2^64.
    ns: u64,
    /// Runs.
    count: u64,
}

impl Bucket {
    fn new((below, count): (u128, u64)) -> Self {
        Self { ns: u64::try_from(below).unwrap_or(u64::MAX), count }
    }
}

impl IrqsReport {
    /// The document with the first `max` rows of each machine.
    pub(crate) fn document_of(&self, max: usize) -> Document<'_> {
        let rows = self.first(max);
        let histogram = |row: &Row<'_>| Histogram {
            below: row
                .handler
                .sums
                .durations
                .by_power_of_two()
                .into_iter()
                .map(Bucket::new)
                .collect(),
        };
        Document {
            schema: "hyperscope.irqs/1",
            sources: &self.sources,
            machines: self.machines(),
            losses: LossSums::new(self.irqs.losses.iter(), 0),
            recorder_cost: self.recorder_cost.as_ref().map(RecorderCost::document),
            ends_alone: self.irqs.ends_alone,
            left_out: self.irqs.left_out,
            histograms: rows.iter().map(histogram).collect(),
            handlers: Rows { columns: columns(), rows },
        }
    }

    /// The first `max` rows of each machine.
    fn first(&self, max: usize) -> Vec<Row<'_>> {
        let mut of_machine = (usize::MAX, 0);
        let is_shown = |row: &Row<'_>| {
            if of_machine.0 != row.handler.recording {
                of_machine = (row.handler.recording, 0);
            }
            of_machine.1 += 1;
            of_machine.1 <= max
        };
        let mut rows: Vec<_> =
            self.irqs.rows.iter().map(|handler| Row { irqs: &self.irqs, handler }).collect();
        rows.retain(is_shown);
        rows
    }

    fn machines(&self) -> Vec<Machine<'_>> {
        let all = self.irqs.machines.iter().zip(&self.irqs.spans_ns).zip(&self.irqs.is_recorded);
        all.map(|((machine, span_ns), &recorded)| Machine {
            machine,
            span_ns: span_ns.map(|(from_ns, to_ns)| to_ns.saturating_sub(from_ns)),
            recorded,
        })
        .collect()
    }

    fn result(&self) -> String {
        let runs = self.irqs.rows.iter().map(|row| row.sums.run_count);
        let runs = runs.fold(0, u64::saturating_add);
        match (runs, self.irqs.is_recorded.iter().any(|flag| *flag)) {
            (0, false) => "no interrupt events: hyperscope record includes them unless -e selects other events; add -e irq -e \
                           irq_vectors"
                .to_owned(),
            (0, true) => "no interrupt handler ran".to_owned(),
            (runs, _) => format!("{} of interrupt handlers {}", plural(runs, "run"), self.took()),
        }
    }

    /// What all runs took, and which handler took most.
    fn took(&self) -> String {
        let timed = || self.irqs.rows.iter().filter(|row| row.sums.durations.count() > 0);
        let Some((own_ns, most)) = greatest(timed().map(|row| (row.sums.own_ns, row))) else {
            return "have no recorded end, and so no time".to_owned();
        };
        let sum_ns = timed().map(|row| row.sums.own_ns).fold(0, u64::saturating_add);
        let ns = |time_ns| time(time_ns, self.irqs.nanoseconds);
        format!("took {}, {} most ({})", ns(sum_ns), self.name(most), ns(own_ns))
    }

    fn name(&self, row: &HandlerRow) -> String {
        let machine = self.irqs.machines.get(row.recording).map_or("", String::as_str);
        let name = row.name.clone().or_else(|| row.number.map(|number| number.to_string()));
        let name = format!("{} {}", row.kind.name(), name.unwrap_or_default());
        line(&format!("{} of {machine}", name.trim_end())).into_owned()
    }

    fn notes(&self) -> Vec<String> {
        let irqs = &self.irqs;
        let mut notes = Vec::new();
        let machines = irqs.machines.iter().enumerate();
        for (at, machine) in machines {
            notes.extend(self.away(at, machine));
        }
        let silent = irqs.machines.iter().zip(&irqs.is_recorded).filter(|(_, has)| !**has);
        let silent: Vec<&str> = silent.map(|(machine, _)| machine.as_str()).collect();
        if !irqs.rows.is_empty() && !silent.is_empty() {
            notes.push(format!("without interrupt events: {}", line(&silent.join(", "))));
        }
        let open = irqs.rows.iter().map(|row| row.sums.run_count - row.sums.durations.count());
        let open: u64 = open.sum();
        if open > 0 {
            notes.push(format!(
                "{} without a recorded end, and so without a time (the *_exit event was not recorded, events were lost, or the \
                 recording ended)",
                plural(open, "run")
            ));
        }
        if irqs.ends_alone > 0 {
            notes.push(format!(
                "{} without a time: the beginning was before the recording or in a loss",
                plural(irqs.ends_alone, "run")
            ));
        }
        if irqs.left_out > 0 {
            notes.push(format!(
                "{} left out: there are too many rows",
                plural(irqs.left_out, "run")
            ));
        }
        notes.extend(self.recorder_cost.as_ref().map(RecorderCost::note));
        notes.extend(irqs.losses.iter().flat_map(|loss| losses::notes(loss, 0)));
        notes
    }

    /// The host's part in the time of a guest's handlers.
    fn away(&self, at: usize, machine: &str) -> Option<String> {
        let of_it = self.irqs.rows.iter().filter(|row| row.recording == at && row.sums.placed > 0);
        let (mut own_ns, mut away_ns, mut all) = (0u64, 0u64, true);
        for row in of_it {
            own_ns = own_ns.saturating_add(row.sums.own_ns);
            away_ns = away_ns.saturating_add(row.sums.own_away_ns);
            all &= row.sums.placed == row.sums.durations.count();
        }
        let least = if all { "" } else { "at least " };
        (own_ns > 0).then(|| {
            format!(
                "{}: of {} in handlers, the host took {least}{} ({}): exits, and run-queue wait",
                line(machine),
                time(own_ns, self.irqs.nanoseconds),
                time(away_ns, self.irqs.nanoseconds),
                share(away_ns, own_ns)
            )
        })
    }

    fn histogram(&self, row: &HandlerRow) -> String {
        let machine = self.irqs.machines.get(row.recording).map_or("", String::as_str);
        let name = row.name.clone().or_else(|| row.number.map(|number| number.to_string()));
        let mut title = format!("{machine}: {} {}", row.kind.name(), name.unwrap_or_default());
        if let Some(cpu) = row.cpu {
            title += &format!(" on CPU {cpu}");
        }
        if let Some((id, name)) = &row.thread {
            title += &format!(" in {}", name.clone().unwrap_or_else(|| id.to_string()));
        }
        let bars = histogram::draw(&row.sums.durations, self.irqs.nanoseconds);
        format!("\n{}\n{bars}", line(title.trim_end()))
    }
}
