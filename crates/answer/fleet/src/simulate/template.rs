//! The exits of a real recording by kind, from which a fleet is simulated.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use crate::lake::tables::{EXIT_HIST, EXIT_ROLLUP, SESSIONS};
use crate::lake::{Kind, Values, each_group};

/// The key of a kind of exits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KindKey {
    /// Machine, VM, architecture, reason, code.
    pub(super) texts: [String; 5],
    pub(super) level: i32,
    pub(super) waiting: bool,
}

/// Exits of one kind.
#[derive(Clone, Debug, Default)]
pub(super) struct KindSums {
    /// Sums by column; a missing one was not recorded.
    pub(super) sums: BTreeMap<&'static str, i64>,
    pub(super) time_sq: f64,
    /// Counts by metric and bucket.
    pub(super) hists: BTreeMap<String, BTreeMap<i32, i64>>,
}

/// A cell of the session's row.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    Null,
    Number(i64),
    Double(f64),
    Flag(bool),
    Text(String),
}

/// The exits of a recording.
#[derive(Clone, Debug, Default)]
pub struct Template {
    pub(super) kinds: BTreeMap<KindKey, KindSums>,
    /// The recorded time.
    pub(super) covered_ns: i64,
    /// Its row of `sessions`, by column.
    pub(super) session: Vec<Cell>,
}

const KEYS: [&str; 7] = ["machine", "vm", "isa", "reason", "code", "level", "waiting"];

impl Template {
    /// Reads a recording's tables `sessions`, `exit_rollup` and `exit_hist`.
    ///
    /// # Errors
    /// When they can't be read.
    pub fn read([sessions, rollup, hist]: [File; 3]) -> io::Result<Self> {
        let mut template = Self::default();
        let names: Vec<&str> = SESSIONS.columns.iter().map(|column| column.name).collect();
        each_group(sessions, &SESSIONS, &names, &mut |group| {
            template.session = group.all().iter().map(|values| cell(values, 0)).collect();
            Ok(())
        })?;
        template.read_sums(rollup)?;
        template.read_hists(hist)?;
        let at = names.iter().position(|name| *name == "span_ns");
        if let Some(Cell::Number(span_ns)) = at.and_then(|at| template.session.get(at)) {
            template.covered_ns = *span_ns;
        }
        Ok(template)
    }

    /// Whether the recording has no exits to simulate from.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty() || self.covered_ns <= 0
    }

    fn read_sums(&mut self, file: File) -> io::Result<()> {
        let columns = EXIT_ROLLUP.columns.iter();
        let summed =
            columns.filter(|column| column.kind == Kind::Long && column.name != "slice_ns");
        let summed: Vec<&'static str> = summed.map(|column| column.name).collect();
        let names: Vec<&str> = [&KEYS[..], &["time_sq"], &summed].concat();
        each_group(file, &EXIT_ROLLUP, &names, &mut |group| {
            let (keys, rest) = group.all().split_at(KEYS.len());
            for row in 0..group.rows {
                let kind = self.kinds.entry(key(keys, row)).or_default();
                let Some((square, values)) = rest.split_first() else { continue };
                kind.time_sq += square.double(row).unwrap_or(0.0);
                for (name, values) in summed.iter().zip(values) {
                    let Some(value) = values.number(row) else { continue };
                    let sum = kind.sums.entry(name);
                    match *name {
                        "min_ns" => sum.and_modify(|min| *min = value.min(*min)).or_insert(value),
                        "max_ns" => sum.and_modify(|max| *max = value.max(*max)).or_insert(value),
                        _ => sum
                            .and_modify(|total| *total = total.saturating_add(value))
                            .or_insert(value),
                    };
                }
            }
            Ok(())
        })
    }

    fn read_hists(&mut self, file: File) -> io::Result<()> {
        let names: Vec<&str> = [&KEYS[..], &["metric", "bucket", "n"]].concat();
        each_group(file, &EXIT_HIST, &names, &mut |group| {
            let (keys, rest) = group.all().split_at(KEYS.len());
            let [metric, bucket, n] = rest else { return Ok(()) };
            for row in 0..group.rows {
                let kind = self.kinds.entry(key(keys, row)).or_default();
                let hist =
                    kind.hists.entry(metric.text(row).unwrap_or_default().to_owned()).or_default();
                let bucket =
                    bucket.number(row).and_then(|number| i32::try_from(number).ok()).unwrap_or(0);
                *hist.entry(bucket).or_default() += n.number(row).unwrap_or(0);
            }
            Ok(())
        })
    }
}

fn key(columns: &[Values], row: usize) -> KindKey {
    let text = |at: usize| {
        columns.get(at).and_then(|column| column.text(row)).unwrap_or_default().to_owned()
    };
    let level = columns.get(5).and_then(|column| column.number(row));
    KindKey {
        texts: [0, 1, 2, 3, 4].map(text),
        level: level.and_then(|level| i32::try_from(level).ok()).unwrap_or(0),
        waiting: columns.get(6).and_then(|column| column.flag(row)).unwrap_or(false),
    }
}

fn cell(values: &Values, row: usize) -> Cell {
    match values {
        Values::Number(_) => values.number(row).map_or(Cell::Null, Cell::Number),
        Values::Double(_) => values.double(row).map_or(Cell::Null, Cell::Double),
        Values::Flag(_) => values.flag(row).map_or(Cell::Null, Cell::Flag),
        Values::Text(_) => values.text(row).map_or(Cell::Null, |text| Cell::Text(text.to_owned())),
    }
}
