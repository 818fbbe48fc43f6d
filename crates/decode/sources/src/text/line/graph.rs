//! Parses lines of the kernel's function_graph tracer with the options `funcgraph-abstime` and
//! `funcgraph-proc`.
//!
//! ```text
//!   360.774522 |   1)    sh-4802     |   0.541 us    |    kvm_load();
//!   360.774530 |   1)    sh-4802     |               |    /* kvm_entry: vcpu 0 */
//! ```

use super::{EventLine, Form, Line, all_digits, name, place, time};
use crate::text::graph::GraphLine;

/// Maximum columns between the thread and the call: flags and the duration.
const MAX_COLUMNS: usize = 2;

/// Parses a line of this format; `None` for other lines.
pub(super) fn graph(text: &str) -> Option<Line<'_>> {
    if is_switch(text) {
        return Some(Line::Nothing);
    }
    let (stamp, rest) = text.split_once(" |")?;
    let (before, time) = time::last(stamp).filter(|(_, time)| time.digits.is_some())?;
    let (cpu, rest) = rest.split_once(')')?;
    let cpu = place::cpu(cpu.trim()).filter(|_| before.trim().is_empty())?;
    let (thread, mut body) = rest.split_once(" |")?;
    let (comm, thread) = thread.trim().rsplit_once('-')?;
    let thread = thread.parse().ok().filter(|_| all_digits(thread))?;
    let event = |name, system, form, body| {
        Line::Event(EventLine { comm, thread, cpu, time, flags: None, form, system, name, body })
    };
    for _ in 0..MAX_COLUMNS {
        if let Some(line) = GraphLine::read(body) {
            return Some(event(line.name(), None, Form::Plain, body));
        }
        let (_, call) = body.split_once('|')?;
        if let Some(comment) = call.trim().strip_prefix("/* ") {
            let text = comment.strip_suffix("*/").unwrap_or(comment).trim_end();
            let name::AfterTime::Event(named) = name::after_time(text) else {
                return Some(Line::Nothing);
            };
            return Some(event(named.name, named.system, named.form, named.body));
        }
        // Start or end of an interrupt: its function is on a line of its own.
        if body.contains("==========") {
            return Some(Line::Nothing);
        }
        body = call;
    }
    None
}

/// ` 1)   bash-1714  =>  cat-1850  `: a switch to another thread on this CPU.
fn is_switch(text: &str) -> bool {
    let Some((cpu, threads)) = text.split_once(')') else { return false };
    let cpu = cpu.rsplit('|').next().unwrap_or(cpu).trim();
    let is_thread = |text: &str| text.trim().rsplit_once('-').is_some_and(|(_, id)| all_digits(id));
    let threads = threads.split_once(" => ");
    all_digits(cpu) && threads.is_some_and(|(from, to)| is_thread(from) && is_thread(to))
}
