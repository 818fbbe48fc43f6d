//! The columns of handlers.

use analyses::distribution::Distribution;
use analyses::irqs::{HandlerRow, HandlerSums, Irqs};

use crate::column::{self, Column, Described, Kind, Unit};

pub(super) const TABLE: &str = "handlers";
const NOT_TIMED: &str = "No end of a run was recorded.";
const PER_MILLE: [u64; 3] = [500, 900, 990];

/// Handlers of one kind and name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'r> {
    pub(super) irqs: &'r Irqs,
    pub(super) handler: &'r HandlerRow,
}

impl column::Row for Row<'_> {
    fn is_nanoseconds(&self) -> bool {
        self.irqs.nanoseconds
    }
}

impl Row<'_> {
    /// Duration of the recording of its machine.
    fn span_ns(&self) -> Option<u64> {
        let (from_ns, to_ns) = self.irqs.spans_ns.get(self.handler.recording).copied().flatten()?;
        Some(to_ns.saturating_sub(from_ns))
    }

    /// Runs per second.
    fn rate(&self) -> Option<f64> {
        let span_ns = self.span_ns().filter(|ns| *ns > 0 && self.irqs.nanoseconds)?;
        Some(self.handler.sums.run_count as f64 * 1e9 / span_ns as f64)
    }

    fn timed<T>(&self, value: T) -> Option<T> {
        (self.handler.sums.durations.count() > 0).then_some(value)
    }

    fn placed<T>(&self, value: T) -> Option<T> {
        (self.handler.sums.placed > 0).then_some(value)
    }
}

impl<'r> Described for Row<'r> {
    fn all_columns() -> Vec<Column<Self>> {
        columns()
    }
}

/// All columns, in the order of JSON and CSV.
pub(super) fn columns<'r>() -> Vec<Column<Row<'r>>> {
    let mut columns = names();
    columns.extend(sums());
    columns.extend(away());
    columns.extend(durations());
    columns.extend(delays());
    columns
}

fn names<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::text(("machine", "machine"), "host, or the name of the VM.", |row: &Row<'_>| {
            row.irqs.machines.get(row.handler.recording).cloned()
        })
        .shown(TABLE, 0),
        Column::text(
            ("kind", "kind"),
            "irq: device interrupt. vector: interrupt vector of the architecture, such as the local timer. ipi: call from \
             another CPU. softirq: soft interrupt.",
            |row: &Row<'_>| Some(row.handler.kind.name().to_owned()),
        ).one_of(["irq", "vector", "ipi", "softirq"])
        .shown(TABLE, 0),
        Column::number(
            ("number", "number"),
            Unit::Id,
            "The kernel's number of the interrupt or softirq.",
            |row: &Row<'_>| row.handler.number,
        )
        .null("Vectors and calls from other CPUs have only names.")
        .shown_if_known(TABLE, 4)
        .missing("-"),
        Column::text(
            ("name", "name"),
            "The driver's name for its handler; otherwise the kernel's name.",
            |row: &Row<'_>| row.handler.name.clone(),
        )
        .null("The events do not contain it.")
        .shown(TABLE, 0),
        Column::number(("cpu", "CPU"), Unit::Id, "The CPU, with --by cpu.", |row: &Row<'_>| {
            row.handler.cpu.map(u64::from)
        })
        .null("Rows cover all CPUs.")
        .shown_if_known(TABLE, 0),
        Column::number(
            ("tid", "tid"),
            Unit::Id,
            "Id of the interrupted thread, with --by thread.",
            |row: &Row<'_>| row.handler.thread.as_ref().map(|(id, _)| u64::from(*id)),
        )
        .null("Rows cover all threads.")
        .shown_if_known(TABLE, 3),
        Column::text(
            ("thread", "interrupted"),
            "Name of the interrupted thread, with --by thread.",
            |row: &Row<'_>| row.handler.thread.as_ref().and_then(|(_, name)| name.clone()),
        )
        .null("Rows cover all threads, or it was not recorded.")
        .shown_if_known(TABLE, 0),
    ]
}

fn sums<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::number(("count", "count"), Unit::Count, "Runs of the handler.", |row: &Row<'_>| {
            Some(row.handler.sums.run_count)
        })
        .shown(TABLE, 0),
        Column::number(
            ("timed", "timed"),
            Unit::Count,
            "Runs with a recorded end. Times cover only these.",
            |row: &Row<'_>| Some(row.handler.sums.durations.count()),
        )
        .shown_if(TABLE, 3, |row| row.handler.sums.durations.count() != row.handler.sums.run_count),
        Column::any(
            ("rate", "per second"),
            (Unit::Count, Kind::Ratio),
            "Runs per second of the machine's recording.",
            |row: &Row<'_>| column::Cell::Ratio(row.rate()),
        )
        .null("The recording has no length, or its clock does not count nanoseconds.")
        .drawn_as(|row| match row.rate() {
            Some(rate) if rate < 10.0 => format!("{rate:.2}"),
            Some(rate) => crate::count(rate.round() as u64),
            None => "-".to_owned(),
        })
        .shown(TABLE, 9),
        Column::time(
            ("own", "own time"),
            "Time without the handlers that interrupted it, so that own times add up.",
            |row: &Row<'_>| row.timed(row.handler.sums.own_ns),
        )
        .null(NOT_TIMED)
        .shown(TABLE, 0)
        .missing("-"),
        Column::ratio(
            ("share_of_cpu", "of a CPU"),
            "own_ns as a share of the machine's recording time.",
            |row: &Row<'_>| column::ratio(row.timed(row.handler.sums.own_ns)?, row.span_ns()?),
        )
        .null("The recording has no length, or no end of a run was recorded.")
        .shown(TABLE, 7),
        Column::time(
            ("total", "with nested"),
            "From beginning to end of all runs, including the handlers that interrupted them.",
            |row: &Row<'_>| row.timed(row.handler.sums.durations.sum()),
        )
        .null(NOT_TIMED)
        .shown_if(TABLE, 8, |row| row.handler.sums.durations.sum() != row.handler.sums.own_ns),
    ]
}

fn away<'r>() -> Vec<Column<Row<'r>>> {
    let unplaced = "No host recording covers them.";
    vec![
        Column::number(
            ("placed", "placed"),
            Unit::Count,
            "Runs for which the host's recording shows what their vCPU did. The next three columns cover only these.",
            |row: &Row<'_>| Some(row.handler.sums.placed),
        ),
        Column::time(
            ("own_away", "host's"),
            "Part of own_ns in which the vCPU was not in the guest: the host handled exits, or the vCPU had no CPU.",
            |row: &Row<'_>| row.placed(row.handler.sums.own_away_ns),
        )
        .null(unplaced)
        .shown_if_known(TABLE, 1)
        .missing("-"),
        Column::time(
            ("longest_away", "most host's"),
            "The longest time that one run lost this way, including the handlers that interrupted it.",
            |row: &Row<'_>| row.placed(row.handler.sums.longest_away_ns),
        )
        .null(unplaced)
        .shown_if_known(TABLE, 6)
        .missing("-"),
    ]
}

fn percentile(distribution: &Distribution, at: usize) -> Option<u64> {
    distribution.percentiles(PER_MILLE).get(at).copied().flatten()
}

fn durations<'r>() -> Vec<Column<Row<'r>>> {
    let time =
        |names: (&str, &str), help: &str, rank: u8, time_of: fn(&HandlerSums) -> Option<u64>| {
            Column::time(names, help, move |row: &Row<'_>| time_of(&row.handler.sums))
                .null(NOT_TIMED)
                .shown(TABLE, rank)
                .missing("-")
        };
    vec![
        time(
            ("duration_mean", "mean"),
            "Mean time from beginning to end, including the handlers that interrupted it. Null: no end of a run was recorded.",
            8,
            |sums| sums.durations.mean().map(|mean| mean.round() as u64),
        ),
        time(
            ("duration_p50", "p50"),
            "Median of the same time. Null: no end of a run was recorded.",
            1,
            |sums| percentile(&sums.durations, 0),
        ),
        time(
            ("duration_p90", "p90"),
            "90th percentile of the same time. Null: no end of a run was recorded.",
            2,
            |sums| percentile(&sums.durations, 1),
        ),
        time(
            ("duration_p99", "p99"),
            "99th percentile of the same time. Null: no end of a run was recorded.",
            1,
            |sums| percentile(&sums.durations, 2),
        ),
        time(
            ("duration_max", "longest"),
            "Longest such time. Null: no end of a run was recorded.",
            2,
            |sums| sums.durations.max(),
        ),
    ]
}

fn delays<'r>() -> Vec<Column<Row<'r>>> {
    let time =
        |names: (&str, &str), help: &str, rank: u8, time_of: fn(&Distribution) -> Option<u64>| {
            Column::time(names, help, move |row: &Row<'_>| time_of(&row.handler.sums.delays))
                .null("Not a softirq, or softirq_raise was not recorded.")
                .shown_if_known(TABLE, rank)
                .missing("-")
        };
    vec![
        Column::number(
            ("delayed", "delayed"),
            Unit::Count,
            "Runs of a softirq for which softirq_raise was recorded. The next three columns cover only these.",
            |row: &Row<'_>| Some(row.handler.sums.delays.count()),
        ),
        time(
            ("delay_p50", "due p50"),
            "Median time from softirq_raise to the beginning of the handler. Null: not a softirq, or softirq_raise was not recorded.",
            5,
            |delays| percentile(delays, 0),
        ),
        time(
            ("delay_p99", "due p99"),
            "99th percentile of the same time. Null: not a softirq, or softirq_raise was not recorded.",
            3,
            |delays| percentile(delays, 2),
        ),
        time(
            ("delay_max", "due longest"),
            "Longest such time. Null: not a softirq, or softirq_raise was not recorded.",
            6,
            Distribution::max,
        ),
    ]
}
