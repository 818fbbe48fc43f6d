//! Lanes of the timeline, as columns of the page.

use std::io::{self, Write};

use analyses::lanes::{Lane, LaneSet, State};
use schemars::JsonSchema;
use serde::Serialize;

use super::columns::Columns;

/// Id of the element with the spans of a lane.
fn id(at: usize) -> String {
    format!("hyperscope-lane-{at}")
}

/// The lanes.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Timeline<'p> {
    /// Number of all spans, merged or not.
    spans: u64,
    /// Adjacent spans shorter than this may be merged into one item; 0: none are.
    merged_below_ns: u64,
    /// Lanes of threads and tasks that are left out: they ran least.
    lanes_left_out: u64,
    /// States by their numbers.
    states: Vec<StateName>,
    /// Labels by their numbers; the first is empty.
    labels: &'p [String],
    /// The lanes.
    lanes: Vec<LaneRow<'p>>,
}

/// A state.
#[derive(Debug, JsonSchema, Serialize)]
struct StateName {
    /// Its name for programs.
    key: &'static str,
    /// Its name for people.
    title: &'static str,
}

/// A lane.
#[derive(Debug, JsonSchema, Serialize)]
struct LaneRow<'p> {
    /// Id of the element that holds its spans.
    columns_in: String,
    /// The recorded machine: host, or a guest's name.
    machine: &'p str,
    /// Its kind: a CPU, a vCPU, a thread of the machine, a task of a guest, or the functions of a thread at one
    /// depth of its stack.
    #[schemars(extend("enum" = ["cpu", "vcpu", "thread", "task", "call"]))]
    kind: &'static str,
    /// Its name within the machine.
    name: &'p str,
    /// The VM of the lane.
    vm: Option<&'p str>,
    /// Depth in the stack, for a lane of calls; null: another kind.
    depth: Option<u32>,
    /// Whether its thread or task ran less than those that are shown first.
    quiet: bool,
    /// Items in its columns.
    spans: usize,
}

impl<'p> Timeline<'p> {
    /// Describes the columns.
    pub(super) fn new(set: &'p LaneSet) -> Self {
        let lane = |(at, lane): (usize, &'p Lane)| LaneRow {
            columns_in: id(at),
            machine: &lane.machine,
            kind: lane.kind.name(),
            name: &lane.name,
            vm: lane.vm.as_deref(),
            depth: lane.depth,
            quiet: lane.quiet,
            spans: lane.len(),
        };
        let states = State::ALL.iter();
        Self {
            spans: set.spans(),
            merged_below_ns: set.merged_below_ns(),
            lanes_left_out: set.left_out(),
            states: states
                .map(|state| StateName { key: state.key(), title: state.title() })
                .collect(),
            labels: set.labels(),
            lanes: set.lanes().iter().enumerate().map(lane).collect(),
        }
    }
}

/// The spans of a lane, column by column.
pub(super) fn write(at: usize, lane: &Lane, origin_ns: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut columns = Columns::begin(&id(at), out)?;
    lane.columns(origin_ns, |bytes| columns.bytes(bytes))?;
    columns.end()
}
