//! The map of latencies over time, as the page carries it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use analyses::latencies::{HeatCell, HeatName, LATENCY_ROWS_PER_OCTAVE, Latencies};
use serde::Serialize;
use serde_json::Value;

use super::columns::Columns;
use crate::json::code_json;

/// Cells by row of the exits report.
pub(super) type HeatRows = BTreeMap<HeatName, Vec<HeatCell>>;

/// The element that has the cells.
const ID: &str = "hyperscope-heat";

/// What the cells are about.
#[derive(Debug, Serialize)]
pub(super) struct Heat<'p> {
    columns_in: &'static str,
    from_ns: i64,
    column_ns: u64,
    columns: u64,
    rows_per_octave: u64,
    groups: Vec<Group<'p>>,
}

#[derive(Debug, Serialize)]
struct Group<'p> {
    source: Option<&'p str>,
    vm: &'p str,
    level: u8,
    isa: &'static str,
    reason: &'p str,
    code: Value,
    cells: usize,
}

/// What the cells are about; `None` where no exit has a duration.
pub(super) fn document<'p>(
    latencies: &Latencies,
    rows: &'p HeatRows,
    sources: &[&'p str],
    origin_ns: u64,
) -> Option<Heat<'p>> {
    let (first, last) = latencies.heat.columns()?;
    let log2 = latencies.heat.column_log2();
    let group = |(name, cells): (&'p HeatName, &'p Vec<HeatCell>)| Group {
        source: sources.get(name.recording as usize).copied(),
        vm: &name.vm,
        level: name.level,
        isa: name.isa.name(),
        reason: &name.reason,
        code: code_json(&name.code),
        cells: cells.len(),
    };
    let from_ns = i128::from(first) * (1i128 << log2) - i128::from(origin_ns);
    Some(Heat {
        columns_in: ID,
        from_ns: i64::try_from(from_ns).unwrap_or(0),
        column_ns: 1u64 << log2.min(63),
        columns: last - first + 1,
        rows_per_octave: LATENCY_ROWS_PER_OCTAVE,
        groups: rows.iter().map(group).collect(),
    })
}

/// The cells of all groups, one group after the other.
pub(super) fn write(latencies: &Latencies, rows: &HeatRows, out: &mut dyn Write) -> io::Result<()> {
    let Some((first, _)) = latencies.heat.columns() else { return Ok(()) };
    let mut columns = Columns::begin(ID, out)?;
    for cells in rows.values() {
        let mut before = first;
        for cell in cells {
            columns.number(cell.column - before)?;
            columns.byte(cell.row)?;
            columns.number(cell.count)?;
            before = cell.column;
        }
    }
    columns.end()
}
