//! The outcome as tables, JSON and CSV.

use lab::Accelerator;
use report::{Report, Table, count, counted, plural};
use stats::Estimate;

use super::Outcome;
use super::outcome::{Conditions, Row, Volume};
use super::tracer::Part;
use crate::bench::channels::float;
use crate::bench::render::{NONE, draw, estimate, number, plain};

impl Report for Outcome {
    fn headline(&self) -> String {
        format!(
            "Cost of {} and of {} to record on the host.",
            plural(self.tracers.len() as u64, "tracer"),
            counted(self.volumes.len() as u64, "way", "ways"),
        )
    }

    fn tables(&self, width: Option<usize>) -> String {
        let mut text = String::new();
        if !self.tracers.is_empty() {
            text.push_str(&draw(&self.tracers_table(), width));
        }
        if !self.volumes.is_empty() {
            text.push_str(&draw(&self.volumes_table(), width));
        }
        text.push_str(&self.not_measured());
        text.push_str(&self.conditions.notes());
        text
    }

    fn document(&self) -> impl serde::Serialize {
        self
    }

    /// A row for each part of each tracer, and one for its sum.
    fn csv(&self) -> Table {
        let mut rows: Vec<(&Row, &str, Option<Estimate>)> = Vec::new();
        for row in &self.tracers {
            rows.push((row, "whole", row.event_ns));
            rows.extend(row.parts.iter().map(|cost| (row, cost.part.key(), cost.event_ns)));
        }
        let cells =
            |cell: &dyn Fn(&Row) -> String| rows.iter().map(|(row, ..)| cell(row)).collect();
        let ends = |end: fn(Estimate) -> Option<f64>| {
            rows.iter().map(|(.., cost)| plain(cost.and_then(end))).collect()
        };
        let mut table = Table::default();
        table.names("subject", 0, cells(&|row| row.subject.name().to_owned()));
        table.numbers("level", 0, cells(&|row| row.level.to_string()));
        table.names("tracer", 0, cells(&|row| row.tracer.name().to_owned()));
        table.names("part", 0, rows.iter().map(|(_, part, _)| (*part).to_owned()).collect());
        table.numbers("event_ns", 0, ends(|cost| Some(cost.mean)));
        table.numbers("event_ns_low", 0, ends(|cost| cost.low));
        table.numbers("event_ns_high", 0, ends(|cost| cost.high));
        table
    }
}

impl Outcome {
    /// Each tracer that was not measured, once.
    fn not_measured(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        for row in &self.tracers {
            let Some(why) = &row.not_measured else { continue };
            let line = format!("not measured: {}: {why}\n", row.tracer.name());
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines.concat()
    }

    fn tracers_table(&self) -> Table {
        let cells =
            |cell: &dyn Fn(&Row) -> String| self.tracers.iter().map(cell).collect::<Vec<_>>();
        let mut table = Table::default();
        table.names("subject", 0, cells(&|row| row.subject.name().to_owned()));
        if self.tracers.iter().any(|row| row.level != 2) {
            table.numbers("level", 0, cells(&|row| row.level.to_string()));
        }
        table.names("tracer", 0, cells(&|row| row.tracer.name().to_owned()));
        let unit =
            if self.conditions.surroundings.counts_instructions { "instructions" } else { "ns" };
        table.numbers(&format!("{unit}/event"), 0, cells(&|row| estimate(row.event_ns, 0)));
        table.numbers("times untraced", 0, cells(&|row| estimate(row.ratio, 2)));
        for part in Part::ALL {
            if self.tracers.iter().any(|row| row.part(part).is_some()) {
                let cell = |row: &Row| estimate(row.part(part).and_then(|cost| cost.event_ns), 0);
                table.numbers(&part.key().replace('_', " "), 1, cells(&cell));
            }
        }
        table.numbers("exits/event", 0, cells(&|row| number(row.exits_per_event, 3)));
        table.numbers("hypercalls/event", 2, cells(&|row| number(row.hypercalls_per_event, 3)));
        let seen = |row: &Row| match (row.events_seen, row.events_made) {
            (Some(seen), Some(made)) => format!("{} of {}", count(seen), count(made)),
            _ => NONE.to_owned(),
        };
        table.numbers("events seen", 1, cells(&seen));
        table
    }

    fn volumes_table(&self) -> Table {
        let cells =
            |cell: &dyn Fn(&Volume) -> String| self.volumes.iter().map(cell).collect::<Vec<_>>();
        // The first variant of a subject is the simplest one.
        let first = |volume: &Volume| {
            self.volumes.iter().find(|candidate| candidate.subject == volume.subject)
        };
        let share = |volume: &Volume, value: fn(&Volume) -> u64| {
            let base = first(volume).map_or(0, value);
            if base == 0 {
                NONE.to_owned()
            } else {
                format!("{:.1}", 100.0 * float(value(volume)) / float(base))
            }
        };
        let mut table = Table::default();
        table.names("subject", 0, cells(&|volume| volume.subject.name().to_owned()));
        table.names("the host records", 0, cells(&|volume| volume.recorded.to_owned()));
        let packed =
            |volume: &Volume| if volume.packed { "packed" } else { "one a hypercall" }.to_owned();
        table.names("events are", 0, cells(&packed));
        table.numbers("host events", 0, cells(&|volume| count(volume.host_events)));
        table.numbers("% of first", 1, cells(&|volume| share(volume, |v| v.host_events)));
        table.numbers("bytes", 0, cells(&|volume| count(volume.bytes)));
        table.numbers("% of first", 1, cells(&|volume| share(volume, |v| v.bytes)));
        table.numbers("lost", 1, cells(&|volume| count(volume.host_events_lost)));
        let seen = |volume: &Volume| {
            format!("{} of {}", count(volume.events_seen), count(volume.events_made))
        };
        table.numbers("guest events seen", 1, cells(&seen));
        let unit =
            if self.conditions.surroundings.counts_instructions { "instructions" } else { "ns" };
        table.numbers(&format!("{unit}/event"), 0, cells(&|volume| estimate(volume.event_ns, 0)));
        table.numbers("times untraced", 0, cells(&|volume| estimate(volume.ratio, 2)));
        table
    }
}

impl Conditions {
    /// Explains the numbers, and what executed the guest.
    fn notes(&self) -> String {
        let here = &self.surroundings;
        let by = if here.accelerator == Some(Accelerator::Kvm) {
            "This system's KVM runs the host, and nested KVM runs the guest."
        } else if here.counts_instructions {
            "TCG emulation runs host and guest, one instruction after the other; each takes one nanosecond of their\n\
             time. Caches, stalls and the processor's own work on exits are not included."
        } else {
            "TCG emulation runs the guest: only ratios between tracers are meaningful, not absolute numbers."
        };
        format!(
            "{} of {}, or half as many round trips of two switches; order from seed {}; {} repeated.\n\
             The cost of an event is the additional time of its subject, compared with untraced runs of the same round; mean and 95% interval (Student's t).\n\
             Parts are differences between consecutive steps, each of which adds one thing; they add up to the total.\n\
             {}\n{by}\n",
            plural(self.rounds.into(), "round"),
            plural(self.iterations, "system call"),
            self.seed,
            plural(self.repeated_runs.into(), "run"),
            here.load(),
        )
    }
}
