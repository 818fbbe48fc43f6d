//! Lanes of the timeline, as the page carries them.

use std::io::{self, Write};

use analyses::lanes::{Lane, LaneSet, State};
use schemars::JsonSchema;
use serde::Serialize;

use super::columns::Columns;

/// The element that has the spans of a lane.
fn id(at: usize) -> String {
    format!("hyperscope-lane-{at}")
}

/// The lanes.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Timeline<'p> {
    /// Spans that were seen, merged or not.
    spans: u64,
    /// Neighbours shorter than this may be merged into one item; 0: none are.
    merged_below_ns: u64,
    /// Lanes of threads and tasks that are not in the page: they ran least.
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

/// One thing that time is drawn for.
#[derive(Debug, JsonSchema, Serialize)]
struct LaneRow<'p> {
    /// Id of the element that holds its spans.
    columns_in: String,
    /// The machine that was recorded: host, or a guest's name.
    machine: &'p str,
    /// What it is: a CPU, a vCPU, a thread of the machine, a task of a guest, the functions that a thread was in at
    /// one depth of its stack.
    #[schemars(extend("enum" = ["cpu", "vcpu", "thread", "task", "call"]))]
    kind: &'static str,
    /// Its name within the machine.
    name: &'p str,
    /// The VM that it belongs to.
    vm: Option<&'p str>,
    /// Of a lane of calls, how many calls are around them; null: it is of something else.
    depth: Option<u32>,
    /// Its thread or task ran less than those that are shown at first.
    quiet: bool,
    /// Items in its columns.
    spans: usize,
}

impl<'p> Timeline<'p> {
    /// What the columns are about.
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
