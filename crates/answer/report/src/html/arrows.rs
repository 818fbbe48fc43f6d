//! Arrows between lanes, as columns of the page.

use std::io::{self, Write};

use analyses::lanes::Arrows;
use analyses::path::{Example, ExampleStep, HandoverKind, Path};
use schemars::JsonSchema;
use serde::Serialize;

use super::PageReport;
use super::columns::Columns;

/// Id of the element that contains them.
const ID: &str = "hyperscope-arrows";

/// Wake-ups between threads, as arrows between lanes.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct ArrowSet {
    /// Id of the element that holds them.
    columns_in: &'static str,
    /// Number of arrows.
    arrows: usize,
    /// Kinds by number: `wake`, from a wake-up to the run of the woken thread; `inject`, from an interrupt
    /// raised for a vCPU to its next entry.
    kinds: Vec<&'static str>,
    /// Arrows that are left out because they took the least time.
    left_out: u64,
    /// Arrows shorter than this may be left out; 0: none is.
    left_out_below_ns: u64,
    /// Arrows that are left out because one of their ends is in no lane of the page.
    without_lane: u64,
    /// For each path of `path.paths`, for each of its `examples`, for each step: index in `timeline.lanes` of
    /// the step's lane; null if it has none.
    request_lanes: Vec<Vec<Vec<Option<u32>>>>,
}

impl ArrowSet {
    /// Describes the columns, and finds the lanes of requests' steps.
    pub(super) fn new(page: &PageReport, max: usize) -> Self {
        let arrows = &page.arrows;
        let lanes = |example: &Example| -> Vec<Option<u32>> {
            let lane = |step: &ExampleStep| arrows.places.lane(step.place, step.on);
            example.steps.iter().map(lane).collect()
        };
        let requests =
            |path: &Path| -> Vec<Vec<Option<u32>>> { path.examples.iter().map(lanes).collect() };
        let paths = page.path.iter().flat_map(|path| path.paths.paths.iter().take(max));
        Self {
            columns_in: ID,
            arrows: arrows.list.len(),
            kinds: HandoverKind::ALL.map(HandoverKind::name).to_vec(),
            left_out: arrows.left_out,
            left_out_below_ns: arrows.left_out_below_ns,
            without_lane: arrows.without_lane,
            request_lanes: paths.map(requests).collect(),
        }
    }
}

/// The arrows, column by column.
pub(super) fn write(arrows: &Arrows, origin_ns: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut columns = Columns::begin(ID, out)?;
    let mut before_ns = origin_ns;
    for arrow in &arrows.list {
        columns.number(arrow.to_ns.saturating_sub(before_ns))?;
        before_ns = arrow.to_ns;
    }
    for arrow in &arrows.list {
        columns.number(arrow.to_ns.saturating_sub(arrow.from_ns))?;
    }
    for arrow in &arrows.list {
        columns.byte(arrow.kind as u8)?;
    }
    for arrow in &arrows.list {
        columns.number(arrow.from_lane.into())?;
    }
    for arrow in &arrows.list {
        columns.number(arrow.to_lane.into())?;
    }
    columns.end()
}
