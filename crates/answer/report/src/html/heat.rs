//! The heat map of exits' times over time, as columns of the page.

use std::collections::BTreeMap;
use std::io::{self, Write};

use analyses::latencies::{HeatCell, HeatName, LATENCY_ROWS_PER_OCTAVE, Latencies};
use schemars::JsonSchema;
use serde::Serialize;

use super::columns::Columns;
use crate::json::RawCode;

/// Cells by row of the exits report.
pub(super) type HeatRows = BTreeMap<HeatName, Vec<HeatCell>>;

/// Id of the element with the cells.
const ID: &str = "hyperscope-heat";

/// The heat map of exits; null if no exit has a time.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct HeatMap<'p> {
    /// Id of the element that holds the cells.
    columns_in: &'static str,
    /// Beginning of the first column, relative to origin_ns; columns begin at multiples of their width, so it can
    /// lie before the first exit.
    from_ns: i64,
    /// Width of a column: a power of two.
    column_ns: u64,
    /// Number of columns.
    columns: u64,
    /// Rows for each power of two of a duration.
    #[schemars(extend("const" = 4))]
    rows_per_octave: u64,
    /// Groups, in the order of their cells.
    groups: Vec<HeatGroup<'p>>,
}

/// The exits of one row of the exits report.
#[derive(Debug, JsonSchema, Serialize)]
struct HeatGroup<'p> {
    /// The recording.
    #[schemars(with = "String")]
    source: Option<&'p str>,
    /// The VM.
    vm: &'p str,
    /// The level.
    level: u8,
    /// The instruction set.
    isa: &'static str,
    /// The kernel's name of the reason.
    reason: &'p str,
    /// The raw code, as in the exits report.
    code: RawCode<'p>,
    /// Number of its cells.
    cells: usize,
}

impl<'p> HeatMap<'p> {
    /// Describes the columns; `None`: no exit has a time.
    pub(super) fn new(
        (latencies, rows): (&Latencies, &'p HeatRows),
        sources: &[&'p str],
        origin_ns: u64,
    ) -> Option<Self> {
        let (first, last) = latencies.heat.columns()?;
        let log2 = latencies.heat.column_log2();
        let group = |(name, cells): (&'p HeatName, &Vec<HeatCell>)| HeatGroup {
            source: sources.get(name.recording as usize).copied(),
            vm: &name.vm,
            level: name.level,
            isa: name.isa.name(),
            reason: &name.reason,
            code: RawCode(&name.code),
            cells: cells.len(),
        };
        let from_ns = i128::from(first) * (1i128 << log2) - i128::from(origin_ns);
        Some(Self {
            columns_in: ID,
            from_ns: i64::try_from(from_ns).unwrap_or(0),
            column_ns: 1u64 << log2.min(63),
            columns: last - first + 1,
            rows_per_octave: LATENCY_ROWS_PER_OCTAVE,
            groups: rows.iter().map(group).collect(),
        })
    }
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
