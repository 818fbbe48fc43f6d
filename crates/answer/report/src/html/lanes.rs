//! Lanes of the timeline, as the page carries them.

use std::io::{self, Write};

use analyses::lanes::{Lane, LaneSet, State};
use serde_json::{Value, json};

use super::columns::Columns;

/// In place of a state: several spans, merged.
const MERGED: u8 = 255;

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
    let mut end_ns = origin_ns;
    for item in lane.items() {
        columns.number(item.from_ns.saturating_sub(end_ns))?;
        end_ns = item.to_ns();
    }
    for item in lane.items() {
        columns.number(item.length_ns)?;
    }
    for item in lane.items() {
        columns.byte(item.state.map_or(MERGED, State::number))?;
    }
    for item in lane.items() {
        columns.number(item.state.map_or(0, |_| u64::from(item.label)))?;
    }
    for merged in lane.merged() {
        columns.number(merged.count)?;
        let states = || (0u8..).zip(merged.state_ns).filter(|(_, ns)| *ns > 0);
        columns.byte(states().count() as u8)?;
        for (state, ns) in states() {
            columns.byte(state)?;
            columns.number(ns)?;
        }
    }
    columns.end()
}
