//! The tables of one simulated session.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::lake::tables::{BUCKETS, EXIT_HIST, EXIT_ROLLUP, SESSIONS};
use crate::lake::{Column, Ids, Kind, SLICE_NS, Table, TableWriter, slice_of};
use analyses::distribution::{bucket, upper_end};
use stats::Chance;

use super::effect::Effect;
use super::normal;
use super::template::{Cell, KindKey, KindSums, Template};

/// A host, with the factors of its exits' time and number.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) number: u32,
    pub(super) model: u32,
    pub(super) time: f64,
    pub(super) count: f64,
}

/// Writes a session.
pub(super) struct SessionWriter<'s> {
    pub(super) template: &'s Template,
    pub(super) ids: &'s Ids,
    pub(super) host: &'s Host,
    pub(super) day: u32,
    pub(super) slices: i64,
    pub(super) effects: &'s [Effect],
}

/// Exits of one kind in one slice.
struct Slice<'s> {
    slice_ns: i64,
    key: &'s KindKey,
    sums: KindSums,
}

/// Writes the rows of a table.
pub(super) type Fill<'f, W> = &'f mut dyn FnMut(&mut TableWriter<W>) -> io::Result<()>;

/// Columns that are parts of `time_ns`, and whether a part is CPU time, which an effect on costs changes.
const PARTS: [(&str, bool); 6] = [
    ("kernel_ns", true),
    ("not_split_ns", true),
    ("user_ns", true),
    ("user_and_return_ns", true),
    ("off_cpu_ns", false),
    ("halt_poll_ns", false),
];

/// Counts of exits.
const COUNTS: [&str; 7] =
    ["exits", "paired", "dropped", "handled_kernel", "handled_user", "handled_l1", "poll_unknown"];

impl SessionWriter<'_> {
    /// Writes all tables of the session, the session's own last; `table` begins and ends each.
    pub(super) fn write<W: Write + Send>(
        &self,
        chance: &mut Chance,
        table: &mut dyn FnMut(&'static Table, Fill<'_, W>) -> io::Result<()>,
    ) -> io::Result<()> {
        let slices = self.slices_of(chance);
        table(&EXIT_ROLLUP, &mut |rows| {
            slices.iter().try_for_each(|slice| self.sums(slice, rows))
        })?;
        table(&EXIT_HIST, &mut |rows| slices.iter().try_for_each(|slice| self.hists(slice, rows)))?;
        table(&BUCKETS, &mut |rows| crate::lake::write_buckets(rows))?;
        table(&SESSIONS, &mut |rows| self.session(rows))
    }

    fn slices_of(&self, chance: &mut Chance) -> Vec<Slice<'_>> {
        let first_ns = slice_of(self.ids.begun_ns);
        let mut all = Vec::new();
        for slice in 0..self.slices {
            for (key, kind) in &self.template.kinds {
                let sums = self.drawn(key, kind, chance);
                if sums.sums.get("exits").is_some_and(|exits| *exits > 0) {
                    all.push(Slice { slice_ns: first_ns + slice * SLICE_NS, key, sums });
                }
            }
        }
        all
    }

    /// A host's exits of a kind in 10 s.
    fn drawn(&self, key: &KindKey, kind: &KindSums, chance: &mut Chance) -> KindSums {
        let (mut time, mut cost, mut count) = (self.host.time, 1.0, self.host.count);
        let [.., reason, _] = &key.texts;
        let host = (self.host.model, self.host.number);
        for effect in self.effects.iter().filter(|effect| effect.is_on(reason, host, self.day)) {
            cost *= effect.cost;
            count *= effect.count;
        }
        let exits = kind.sums.get("exits").copied().unwrap_or(0) as f64;
        let expected = exits * count * SLICE_NS as f64 / self.template.covered_ns as f64;
        // Counts of rare events vary by their square root.
        let drawn = (expected + expected.sqrt() * normal(chance)).round().max(0.0);
        let share = if exits > 0.0 { drawn / exits } else { 0.0 };
        time *= 1.0 + self.mean_error(kind, drawn) * normal(chance);
        scaled(kind, share, (time.max(0.01), cost))
    }

    /// The relative error of the mean over this many exits.
    fn mean_error(&self, kind: &KindSums, exits: f64) -> f64 {
        let sum_of = |name| kind.sums.get(name).copied().unwrap_or(0) as f64;
        let paired = sum_of("paired");
        let mean = sum_of("time_ns") / paired;
        let square = kind.time_sq / paired / mean.powi(2) - 1.0;
        let error = (square.max(0.0) / exits.max(1.0)).sqrt();
        if error.is_finite() { error.min(0.5) } else { 0.0 }
    }

    fn owner<W: Write + Send>(&self, rows: &mut TableWriter<W>) -> [crate::lake::TextId; 2] {
        [rows.keep(&self.ids.session), rows.keep(&self.ids.ingest)]
    }

    fn sums<W: Write + Send>(
        &self,
        slice: &Slice<'_>,
        rows: &mut TableWriter<W>,
    ) -> io::Result<()> {
        let [session, ingest] = self.owner(rows);
        let [machine, vm, isa, reason, code] = &slice.key.texts;
        let mut row = rows.row();
        row.id(session).id(ingest).text(machine).long(slice.slice_ns).text(vm).int(slice.key.level);
        row.text(isa).text(reason).text(code).flag(slice.key.waiting);
        for column in EXIT_ROLLUP.columns.iter().skip(10) {
            let value = slice.sums.sums.get(column.name).copied();
            match column.name {
                "time_sq" => row.double(slice.sums.time_sq),
                "covered_ns" => row.long(SLICE_NS),
                _ if column.nullable => row.long_or_null(value),
                _ => row.long(value.unwrap_or(0)),
            };
        }
        rows.end_row()
    }

    fn hists<W: Write + Send>(
        &self,
        slice: &Slice<'_>,
        rows: &mut TableWriter<W>,
    ) -> io::Result<()> {
        let [session, ingest] = self.owner(rows);
        let [machine, vm, isa, reason, code] =
            slice.key.texts.each_ref().map(|text| rows.keep(text));
        for (metric, hist) in &slice.sums.hists {
            let metric = rows.keep(metric);
            for (bucket, n) in hist {
                let mut row = rows.row();
                row.id(session).id(ingest).id(machine).long(slice.slice_ns).id(vm);
                row.int(slice.key.level).id(isa).id(reason).id(code).flag(slice.key.waiting);
                row.id(metric).int(*bucket).long(*n);
                rows.end_row()?;
            }
        }
        Ok(())
    }

    /// The recording's row, changed to that of a simulated host.
    fn session<W: Write + Send>(&self, rows: &mut TableWriter<W>) -> io::Result<()> {
        let mut row = rows.row();
        for (column, cell) in SESSIONS.columns.iter().zip(&self.template.session) {
            let cell = self.simulated_cell(column, cell);
            match (column.kind, cell) {
                (Kind::Long, Cell::Number(value)) => row.long(value),
                (Kind::Int, Cell::Number(value)) => row.int(i32::try_from(value).unwrap_or(0)),
                (Kind::Double, Cell::Double(value)) => row.double(value),
                (Kind::Bool, Cell::Flag(value)) => row.flag(value),
                (Kind::Text, Cell::Text(value)) => row.text(&value),
                (Kind::Long, _) => row.long_or_null(None),
                (Kind::Int, _) => row.int_or_null(None),
                (Kind::Double, _) => row.double_or_null(None),
                (Kind::Bool, _) => row.flag_or_null(None),
                (Kind::Text, _) => row.text_or_null(None),
            };
        }
        rows.end_row()
    }

    fn simulated_cell(&self, column: &Column, cell: &Cell) -> Cell {
        let text = |text: &str| Cell::Text(text.to_owned());
        match column.name {
            "session_id" => text(&self.ids.session),
            "ingest_id" => text(&self.ids.ingest),
            "host_id" | "host_name" => text(&self.host.name),
            "cpu_model" => Cell::Text(format!("simulated-{}", self.host.model)),
            "begun_unix_ns" => Cell::Number(self.ids.begun_ns),
            "span_ns" => Cell::Number(self.slices.saturating_mul(SLICE_NS)),
            "clock_to_unix_ns" => Cell::Number(0),
            "events_lost" | "uncounted_losses" | "pages_damaged" | "pairs_dropped" => {
                Cell::Number(0)
            }
            "source_uri" => match cell {
                Cell::Text(source) => Cell::Text(format!("simulated: {source}")),
                _ => text("simulated"),
            },
            _ => cell.clone(),
        }
    }
}

/// The exits of a kind: their number times `share`, their time times `time`, and their cost additionally times
/// `cost`.
fn scaled(kind: &KindSums, share: f64, (time, cost): (f64, f64)) -> KindSums {
    let sum_of = |name: &str| kind.sums.get(name).copied();
    let times = |value: i64, factor: f64| (value as f64 * factor).round() as i64;
    let mut sums = BTreeMap::new();
    for name in COUNTS {
        sums.extend(sum_of(name).map(|value| (name, times(value, share))));
    }
    sums.extend(sum_of("guest_ns").map(|value| ("guest_ns", times(value, share))));
    let (mut sum, mut known) = (0, 0);
    for (name, is_cost) in PARTS {
        let Some(value) = sum_of(name) else { continue };
        let scaled = times(value, share * time * if is_cost { cost } else { 1.0 });
        (sum, known) = (sum + scaled, known + value);
        sums.insert(name, scaled);
    }
    for (name, factor) in [("runnable_ns", 1.0), ("blocked_ns", 1.0), ("before_exit_ns", cost)] {
        sums.extend(sum_of(name).map(|value| (name, times(value, share * time * factor))));
    }
    // Parts add up to the total, as in the recording.
    if let (Some(runnable), Some(blocked)) = (sums.get("runnable_ns"), sums.get("blocked_ns")) {
        let off_cpu = runnable + blocked;
        sum += off_cpu - sums.insert("off_cpu_ns", off_cpu).unwrap_or(off_cpu);
    }
    sums.extend(
        sum_of("time_ns").map(|value| ("time_ns", sum + times(value - known, share * time))),
    );
    sums.extend(sum_of("cost_ns").map(|value| ("cost_ns", times(value, share * time * cost))));
    for name in ["min_ns", "max_ns"] {
        sums.extend(sum_of(name).map(|value| (name, times(value, time))));
    }
    let longer = match sum_of("time_ns") {
        Some(value) if value > 0 && share > 0.0 => {
            sums.get("time_ns").map_or(time, |scaled| *scaled as f64 / (value as f64 * share))
        }
        _ => time,
    };
    let factors = |metric: &str| match metric {
        "time" => longer,
        _ => time * cost,
    };
    let hists = kind.hists.iter();
    let hists = hists.map(|(metric, hist)| (metric.clone(), moved(hist, share, factors(metric))));
    KindSums { sums, time_sq: kind.time_sq * share * longer.powi(2), hists: hists.collect() }
}

/// A histogram with its counts times `share` and its values times `factor`.
fn moved(hist: &BTreeMap<i32, i64>, share: f64, factor: f64) -> BTreeMap<i32, i64> {
    let mut moved = BTreeMap::new();
    let (mut upto, mut done) = (0, 0);
    for (at, n) in hist {
        upto += n;
        let until = (upto as f64 * share).round() as i64;
        let value = upper_end(usize::try_from(*at).unwrap_or(0)) as f64 * factor;
        let place = i32::try_from(bucket(value as u64)).unwrap_or(i32::MAX);
        if until > done {
            *moved.entry(place).or_default() += until - done;
        }
        done = until;
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_scaled_exits_add_up() {
        let sums = [
            ("exits", 101),
            ("paired", 100),
            ("time_ns", 10_007),
            ("cost_ns", 6_003),
            ("kernel_ns", 4_001),
            ("user_ns", 1_002),
            ("off_cpu_ns", 5_004),
            ("runnable_ns", 1_001),
            ("blocked_ns", 4_003),
            ("before_exit_ns", 1_000),
        ];
        let hist = BTreeMap::from([(90, 60), (300, 40)]);
        let hists = BTreeMap::from([("time".to_owned(), hist)]);
        let kind = KindSums { sums: BTreeMap::from(sums), time_sq: 1e6, hists };
        let twice = scaled(&kind, 2.0, (1.7, 1.03));
        let sum_of = |name: &str| twice.sums.get(name).copied().unwrap_or(0);
        assert_eq!((sum_of("exits"), sum_of("paired")), (202, 200));
        assert_eq!(sum_of("off_cpu_ns"), sum_of("runnable_ns") + sum_of("blocked_ns"));
        assert_eq!(
            sum_of("time_ns"),
            sum_of("kernel_ns") + sum_of("user_ns") + sum_of("off_cpu_ns")
        );
        assert!((sum_of("cost_ns") as f64 / 6_003.0 / (2.0 * 1.7 * 1.03) - 1.0).abs() < 1e-3);
        assert_eq!(twice.hists.get("time").map(|hist| hist.values().sum()), Some(200));
    }
}
