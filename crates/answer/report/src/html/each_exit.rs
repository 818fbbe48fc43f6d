//! Every exit by itself, as the page carries them.

use std::io::{self, Write};

use analyses::each_exit::{ExitList, KeptExit, ListedGroup};
use serde::Serialize;
use serde_json::Value;

use super::columns::Columns;
use crate::json::code_json;

/// The element that has the exits of a recording.
fn id(list: &ExitList) -> String {
    format!("hyperscope-exits-{}", list.recording)
}

/// Which exits of a recording there are.
#[derive(Debug, Serialize)]
pub(super) struct ListDocument<'p> {
    source: Option<&'p str>,
    columns_in: String,
    from_ns: i64,
    off_cpu_recorded: bool,
    halt_poll_recorded: bool,
    groups: Vec<Group<'p>>,
    values: &'p [String],
}

#[derive(Debug, Serialize)]
struct Group<'p> {
    vm: &'p str,
    vcpu: u32,
    level: u8,
    isa: &'static str,
    reason: &'p str,
    code: Value,
    exits: usize,
}

/// Which exits there are; lists that are not whole hold none, and are left out.
pub(super) fn documents<'p>(
    lists: &'p [ExitList],
    sources: &[&'p str],
    origin_ns: u64,
) -> Vec<ListDocument<'p>> {
    let document = |list: &'p ExitList| {
        let from_ns = i128::from(first_ns(list)) - i128::from(origin_ns);
        ListDocument {
            source: sources.get(list.recording as usize).copied(),
            columns_in: id(list),
            from_ns: i64::try_from(from_ns).unwrap_or(0),
            off_cpu_recorded: list.recorded.off_cpu,
            halt_poll_recorded: list.recorded.halt_poll,
            groups: list.groups().map(Group::of).collect(),
            values: &list.values,
        }
    };
    lists.iter().filter(|list| list.is_whole()).map(document).collect()
}

impl<'p> Group<'p> {
    fn of((group, exits): (&'p ListedGroup, usize)) -> Self {
        Self {
            vm: &group.vm,
            vcpu: group.vcpu,
            level: group.level,
            isa: group.isa.name(),
            reason: &group.reason,
            code: code_json(&group.code),
            exits,
        }
    }
}

fn first_ns(list: &ExitList) -> u64 {
    list.first_ns().unwrap_or(0)
}

/// The numbers of an exit, but for when it began.
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
    // It takes a look at all groups.
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
