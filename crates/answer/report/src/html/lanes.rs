//! Lanes of the timeline, as the page carries them.

use std::io::{self, Write};

use analyses::lanes::{Lane, LaneSet, State};
use serde_json::{Value, json};

use super::columns::Columns;

/// The element that has the spans of a lane.
fn id(at: usize) -> String {
    format!("hyperscope-lane-{at}")
}

/// What the lanes are, and in which states they can be.
pub(super) fn json(set: &LaneSet) -> Value {
    let lane = |(at, lane): (usize, &Lane)| {
        json!({
            "columns_in": id(at),
            "machine": lane.machine,
            "kind": lane.kind.name(),
            "name": lane.name,
            "vm": lane.vm,
            "depth": lane.depth,
            "quiet": lane.quiet,
            "spans": lane.len(),
        })
    };
    let states: Vec<Value> = State::ALL
        .iter()
        .map(|state| json!({"key": state.key(), "title": state.title()}))
        .collect();
    json!({
        "spans": set.spans(),
        "merged_below_ns": set.merged_below_ns(),
        "lanes_left_out": set.left_out(),
        "states": states,
        "labels": set.labels(),
        "lanes": set.lanes().iter().enumerate().map(lane).collect::<Vec<_>>(),
    })
}

/// The spans of a lane, column by column.
pub(super) fn write(at: usize, lane: &Lane, origin_ns: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut columns = Columns::begin(&id(at), out)?;
    lane.columns(origin_ns, |bytes| columns.bytes(bytes))?;
    columns.end()
}
