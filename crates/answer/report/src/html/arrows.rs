//! Arrows between lanes, as the page carries them.

use std::io::{self, Write};

use analyses::lanes::Arrows;
use analyses::path::{Example, HandoverKind, Path};
use serde_json::{Value, json};

use super::PageReport;
use super::columns::Columns;

/// The element that has them.
const ID: &str = "hyperscope-arrows";

/// Which arrows there are, and the lanes of the examples of the first `most` paths, step by step.
pub(super) fn json(page: &PageReport, most: usize) -> Value {
    let arrows = &page.arrows;
    let lanes = |example: &Example| -> Vec<Option<u32>> {
        let lane = |step: &analyses::path::ExampleStep| arrows.places.lane(step.place, step.on);
        example.steps.iter().map(lane).collect()
    };
    let requests =
        |path: &Path| -> Vec<Vec<Option<u32>>> { path.examples.iter().map(lanes).collect() };
    let paths = page.path.iter().flat_map(|path| path.paths.paths.iter().take(most));
    json!({
        "columns_in": ID,
        "arrows": arrows.list.len(),
        "kinds": HandoverKind::ALL.map(HandoverKind::name),
        "left_out": arrows.left_out,
        "left_out_below_ns": arrows.left_out_below_ns,
        "without_lane": arrows.without_lane,
        "request_lanes": paths.map(requests).collect::<Vec<_>>(),
    })
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
