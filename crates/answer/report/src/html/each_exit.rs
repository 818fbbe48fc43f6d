//! Individual exits, as columns of the page.

use std::io::{self, Write};

use analyses::each_exit::{ExitList, KeptExit, ListedGroup};
use schemars::JsonSchema;
use serde::Serialize;

use super::columns::Columns;
use crate::json::RawCode;

/// Id of the element with the exits of a recording.
fn id(list: &ExitList) -> String {
    format!("hyperscope-exits-{}", list.recording)
}

/// The exits of a recording.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct ListedExits<'p> {
    /// The recording.
    #[schemars(with = "String")]
    source: Option<&'p str>,
    /// Id of the element that holds them.
    columns_in: String,
    /// Begin of the first exit.
    from_ns: i64,
    /// Whether switches were recorded: otherwise the cost of exits is unknown.
    off_cpu_recorded: bool,
    /// Whether polling before a halt was recorded.
    halt_poll_recorded: bool,
    /// Exits of one vCPU with the same level, reason and code, in the order of their columns.
    groups: Vec<ExitGroup<'p>>,
    /// Details of exits, and positions of their guests, which columns refer to by index.
    values: &'p [String],
}

/// A group of exits.
#[derive(Debug, JsonSchema, Serialize)]
struct ExitGroup<'p> {
    /// The VM.
    vm: &'p str,
    /// The number of the vCPU in the VM.
    vcpu: u32,
    /// Level of the guest that exited.
    level: u8,
    /// Instruction set.
    isa: &'static str,
    /// The kernel's name of the reason.
    reason: &'p str,
    /// Its raw code; null: not recorded.
    code: RawCode<'p>,
    /// Number of exits.
    #[schemars(extend("minimum" = 1))]
    exits: usize,
}

impl<'p> ListedExits<'p> {
    /// The lists of recordings whose exits are complete.
    pub(super) fn of_all(lists: &'p [ExitList], sources: &[&'p str], origin_ns: u64) -> Vec<Self> {
        let complete_lists = lists.iter().filter(|list| list.is_whole());
        complete_lists.map(|list| Self::new(list, sources, origin_ns)).collect()
    }

    fn new(list: &'p ExitList, sources: &[&'p str], origin_ns: u64) -> Self {
        let group = |(group, exits): (&'p ListedGroup, usize)| ExitGroup {
            vm: &group.vm,
            vcpu: group.vcpu,
            level: group.level,
            isa: group.isa.name(),
            reason: &group.reason,
            code: RawCode(&group.code),
            exits,
        };
        let from_ns = i128::from(first_ns(list)) - i128::from(origin_ns);
        Self {
            source: sources.get(list.recording as usize).copied(),
            columns_in: id(list),
            from_ns: i64::try_from(from_ns).unwrap_or(0),
            off_cpu_recorded: list.recorded.off_cpu,
            halt_poll_recorded: list.recorded.halt_poll,
            groups: list.groups().map(group).collect(),
            values: &list.values,
        }
    }
}

fn first_ns(list: &ExitList) -> u64 {
    list.first_ns().unwrap_or(0)
}

/// The numbers of an exit, except its begin.
const NUMBERS: [fn(&KeptExit) -> u64; 8] = [
    |exit| exit.length_ns,
    |exit| exit.parts.user_ns,
    |exit| exit.parts.runnable_ns,
    |exit| exit.parts.blocked_ns,
    |exit| exit.parts.halt_poll_ns,
    |exit| exit.before_exit_ns,
    |exit| u64::from(exit.pc),
    |exit| u64::from(exit.about),
];

/// The exits of all groups, column by column.
pub(super) fn write(list: &ExitList, out: &mut dyn Write) -> io::Result<()> {
    if !list.is_whole() {
        return Ok(());
    }
    let mut columns = Columns::begin(&id(list), out)?;
    // The minimum requires a pass over all groups.
    let first_ns = first_ns(list);
    for group in list.exits() {
        let mut before_ns = first_ns;
        for exit in group {
            columns.number(exit.start_ns.saturating_sub(before_ns))?;
            before_ns = exit.start_ns;
        }
    }
    for exit in list.exits().flatten() {
        columns.byte(exit.flags())?;
    }
    for number in NUMBERS {
        for exit in list.exits().flatten() {
            columns.number(number(&exit))?;
        }
    }
    columns.end()
}
