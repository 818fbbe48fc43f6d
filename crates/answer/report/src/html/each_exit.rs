//! Every exit by itself, as the page carries them.

use std::io::{self, Write};

use analyses::each_exit::{ExitList, KeptExit};
use serde_json::{Value, json};

use super::columns::Columns;
use crate::json::code_json;

/// The element that has the exits of a recording.
fn id(list: &ExitList) -> String {
    format!("hyperscope-exits-{}", list.recording)
}

/// Which exits there are; lists that are not whole hold none, and are left out.
pub(super) fn json(lists: &[ExitList], sources: &[&str], origin_ns: u64) -> Value {
    let one = |list: &ExitList| {
        let groups: Vec<Value> = list
            .groups()
            .map(|(group, exits)| {
                json!({
                    "vm": group.vm,
                    "vcpu": group.vcpu,
                    "level": group.level,
                    "isa": group.isa.name(),
                    "reason": group.reason,
                    "code": code_json(&group.code),
                    "exits": exits,
                })
            })
            .collect();
        let from_ns = i128::from(first_ns(list)) - i128::from(origin_ns);
        json!({
            "source": sources.get(list.recording as usize),
            "columns_in": id(list),
            "from_ns": i64::try_from(from_ns).unwrap_or(0),
            "off_cpu_recorded": list.recorded.off_cpu,
            "halt_poll_recorded": list.recorded.halt_poll,
            "groups": groups,
            "values": list.values,
        })
    };
    lists.iter().filter(|list| list.is_whole()).map(one).collect()
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
    for group in list.exits() {
        let mut before_ns = first_ns(list);
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
