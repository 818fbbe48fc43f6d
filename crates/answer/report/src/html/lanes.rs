//! Lanes of the timeline, as the page carries them.

use std::io::{self, Write};

use analyses::lanes::{Lane, LaneSet, State};
use serde::Serialize;
use serde_json::{Value, json};

use super::columns::Columns;

/// The element that has the spans of a lane.
fn id(at: usize) -> String {
    format!("hyperscope-lane-{at}")
}

/// What the lanes are, and in which states they can be.
#[derive(Debug, Serialize)]
pub(super) struct Timeline<'s> {
    spans: u64,
    merged_below_ns: u64,
    lanes_left_out: u64,
    states: Vec<Value>,
    labels: &'s [String],
    lanes: Vec<LaneDocument<'s>>,
}

#[derive(Debug, Serialize)]
struct LaneDocument<'s> {
    columns_in: String,
    machine: &'s str,
    kind: &'static str,
    name: &'s str,
    vm: Option<&'s str>,
    depth: Option<u32>,
    quiet: bool,
    spans: usize,
}

pub(super) fn document(set: &LaneSet) -> Timeline<'_> {
    let state = |state: &State| json!({"key": state.key(), "title": state.title()});
    Timeline {
        spans: set.spans(),
        merged_below_ns: set.merged_below_ns(),
        lanes_left_out: set.left_out(),
        states: State::ALL.iter().map(state).collect(),
        labels: set.labels(),
        lanes: set.lanes().iter().enumerate().map(LaneDocument::of).collect(),
    }
}

impl<'s> LaneDocument<'s> {
    fn of((at, lane): (usize, &'s Lane)) -> Self {
        Self {
            columns_in: id(at),
            machine: &lane.machine,
            kind: lane.kind.name(),
            name: &lane.name,
            vm: lane.vm.as_deref(),
            depth: lane.depth,
            quiet: lane.quiet,
            spans: lane.len(),
        }
    }
}

/// The spans of a lane, column by column.
pub(super) fn write(at: usize, lane: &Lane, origin_ns: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut columns = Columns::begin(&id(at), out)?;
    lane.columns(origin_ns, |bytes| columns.bytes(bytes))?;
    columns.end()
}
