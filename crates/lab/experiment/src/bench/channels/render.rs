//! The outcome as a table, JSON and CSV.

use lab::Accelerator;
use report::{Report, Table, counted, plural};

use crate::bench::channels::float;
use crate::bench::channels::outcome::{Outcome, Row, Sustained};
use crate::bench::render::{NONE, draw, estimate, number, plain};
use stats::Estimate;

/// Columns of the same type: a title, and a row's value.
type Columns<T, const N: usize> = [(&'static str, fn(&Row) -> Option<T>); N];

impl Report for Outcome {
    fn headline(&self) -> String {
        let ways = counted(self.variants.len() as u64, "way", "ways");
        format!("Cost of {ways} to carry a guest's events.")
    }

    fn tables(&self, width: Option<usize>) -> String {
        draw(&self.table(), width) + &self.notes()
    }

    fn document(&self) -> impl serde::Serialize {
        self
    }

    fn csv(&self) -> Table {
        let mut table = Table::default();
        let name = |row: &Row| row.variant.name().to_owned();
        table.names("variant", 0, self.cells(name));
        let estimates: Columns<Estimate, 7> = [
            ("overhead_percent", |row| row.overhead_percent),
            ("guest_overhead_percent", |row| row.guest_overhead_percent),
            ("instructions_per_event", |row| row.instructions_per_event),
            ("guest_instructions_per_event", |row| row.guest_instructions_per_event),
            ("wall_overhead_percent", |row| row.wall_overhead_percent),
            ("host_cpu_ms_per_mb", |row| row.host_cpu_ms_per_mb),
            ("exits_per_mb", |row| row.exits_per_mb),
        ];
        for (title, value_of) in estimates {
            let cells = |part: fn(Estimate) -> Option<f64>| {
                self.cells(|row| plain(value_of(row).and_then(part)))
            };
            table.numbers(title, 0, cells(|estimate| Some(estimate.mean)));
            table.numbers(&format!("{title}_low"), 0, cells(|estimate| estimate.low));
            table.numbers(&format!("{title}_high"), 0, cells(|estimate| estimate.high));
        }
        let numbers: Columns<f64, 5> = [
            ("events_per_s", |row| Some(row.events_per_s)),
            ("agent_cpu_ms_per_mb", |row| row.agent_cpu_ms_per_mb),
            ("device_exits_per_mb", |row| row.attributed.as_ref()?.exits_per_mb),
            ("agent_wakeups_per_s", |row| row.agent_wakeups_per_s),
            ("sustained_events_per_s", |row| row.sustained?.events_per_s),
        ];
        for (title, value_of) in numbers {
            table.numbers(title, 0, self.cells(|row| plain(value_of(row))));
        }
        let counts: Columns<u64, 4> = [
            ("events", |row| Some(row.events)),
            ("events_lost", |row| row.events_lost),
            ("load_missing", |row| row.load_missing),
            ("bytes", |row| Some(row.bytes)),
        ];
        for (title, value_of) in counts {
            let cell = |row: &Row| value_of(row).map_or(String::new(), |value| value.to_string());
            table.numbers(title, 0, self.cells(cell));
        }
        table
    }
}

impl Outcome {
    fn cells(&self, cell: impl Fn(&Row) -> String) -> Vec<String> {
        self.variants.iter().map(cell).collect()
    }

    fn table(&self) -> Table {
        let mut table = Table::default();
        table.names("recorded by", 0, self.cells(|row| row.variant.name().to_owned()));
        table.numbers("overhead %", 0, self.cells(|row| estimate(row.overhead_percent, 2)));
        table.numbers(
            "guest's own %",
            0,
            self.cells(|row| estimate(row.guest_overhead_percent, 2)),
        );
        if self.conditions.surroundings.counts_instructions {
            let all = |row: &Row| estimate(row.instructions_per_event, 0);
            table.numbers("instructions/event", 1, self.cells(all));
            let guest_instructions = |row: &Row| estimate(row.guest_instructions_per_event, 0);
            table.numbers("guest's own/event", 1, self.cells(guest_instructions));
        } else {
            let wall = |row: &Row| estimate(row.wall_overhead_percent, 0);
            table.numbers("by the clock %", 2, self.cells(wall));
        }
        table.numbers("events/s", 1, self.cells(|row| format!("{:.0}", row.events_per_s)));
        table.numbers("lost", 0, self.cells(lost));
        let megabytes = |row: &Row| format!("{:.1}", float(row.bytes) / 1e6);
        table.numbers("MB", 1, self.cells(megabytes));
        table.numbers("guest ms/MB", 1, self.cells(|row| number(row.agent_cpu_ms_per_mb, 1)));
        table.numbers("host ms/MB", 1, self.cells(|row| estimate(row.host_cpu_ms_per_mb, 0)));
        table.numbers("exits/MB more", 2, self.cells(|row| estimate(row.exits_per_mb, 0)));
        let of_device = |row: &Row| {
            number(row.attributed.as_ref().and_then(|attributed| attributed.exits_per_mb), 1)
        };
        table.numbers("device exits/MB", 0, self.cells(of_device));
        table.numbers("device irqs/MB", 2, self.cells(|row| number(row.interrupts_per_mb, 1)));
        table.numbers("wake-ups/s", 0, self.cells(|row| number(row.agent_wakeups_per_s, 1)));
        if self.variants.iter().any(|row| row.sustained.is_some()) {
            table.numbers("sustained events/s", 0, self.cells(|row| sustained(row.sustained)));
        }
        table
    }

    /// Explains the numbers, and what executed the guest.
    fn notes(&self) -> String {
        let conditions = &self.conditions;
        let here = &conditions.surroundings;
        let by = if here.accelerator == Some(Accelerator::Kvm) {
            "This system's KVM runs the host, and nested KVM runs the guest."
        } else if here.counts_instructions {
            "TCG emulation runs host and guest, one instruction after the other; each takes one nanosecond of their\n\
             time. Caches, stalls and the processor's own work on exits are not included."
        } else {
            "TCG emulation runs the guest: only ratios between channels are meaningful, not absolute numbers."
        };
        let score = if here.counts_instructions {
            "each 10^9 instructions of host and guest, one after the other"
        } else {
            "a second of CPU time that executing host and guest took; by the clock: a second that passed"
        };
        let device = |row: &Row| {
            let attributed = row.attributed.as_ref()?;
            Some(format!(
                "  {}: {} at the memory and registers of {}, {} at its ports, of {} and {:.1} MB; {} without recording\n",
                row.variant.name(),
                plural(attributed.memory_exits, "exit"),
                attributed.device,
                attributed.port_exits,
                plural(attributed.all_exits, "exit"),
                float(attributed.bytes) / 1e6,
                attributed.exits_without
            ))
        };
        let devices: String = self.variants.iter().filter_map(device).collect();
        format!(
            "{} of {} s, {} events/s requested, {}, {} all busy with the score, buffers of {} KiB, order from\n\
             seed {}; {} repeated.\n\
             overhead: 1 - score with / score without, for pairs of consecutive runs; mean and 95% interval (Student's t).\n\
             A score is the work done {score}. guest's own: per second of CPU time of vCPU threads. \"more\" and host ms: increase over the paired run without recording, without vCPU threads.\n\
             Exits at the channel's own device, from a recording of the host:\n{devices}\
             {}\n{by}\n",
            plural(conditions.rounds.into(), "pair"),
            conditions.seconds,
            conditions.rate,
            plural(conditions.host_cpus.into(), "host CPU"),
            plural(conditions.guest_cpus.into(), "guest CPU"),
            conditions.buffer_kib,
            conditions.seed,
            plural(conditions.repeated_runs.into(), "run"),
            here.load(),
        )
    }
}

/// Losses: by the kernel's count, or missing events of the load.
fn lost(row: &Row) -> String {
    let lost = row.events_lost.into_iter().chain(row.load_missing).max();
    lost.map_or(NONE.to_owned(), |lost| lost.to_string())
}

fn sustained(found: Option<Sustained>) -> String {
    match found {
        None => NONE.to_owned(),
        Some(Sustained { events_per_s: None, lost_at }) => {
            format!("none: lost at {}", number(lost_at, 0))
        }
        // The load could not produce more.
        Some(Sustained { events_per_s: Some(best), lost_at: None }) => format!("≥ {best:.0}"),
        Some(Sustained { events_per_s: Some(best), lost_at: Some(lost) }) => {
            format!("{best:.0}, not {lost:.0}")
        }
    }
}
