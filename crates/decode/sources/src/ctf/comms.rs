//! Names of threads: traces have no list of them, but events that name those that they concern. Reading all
//! of them takes as long as reading the trace, so it is done when a name is first asked for.

use std::collections::HashMap;
use std::sync::Arc;

use ctf::ByteOrder;
use tracedat::Cmdlines;

use super::shape::{Behind, Shape};
use super::stream::{CtfStream, Trace};
use super::threads::is_unknown;
use crate::names::ThreadNames;

/// Threads whose names are kept, at most.
const MOST_THREADS: usize = 1 << 20;

/// The threads of a trace.
#[derive(Debug)]
pub(super) struct Comms {
    pub(super) trace: Arc<Trace>,
    pub(super) streams: Vec<Arc<CtfStream>>,
}

/// Fields of an event that name a thread: its id, its name.
const NAMED: [(&[&str], &[&str]); 4] = [
    (&["next_pid"], &["next_comm"]),
    (&["prev_pid"], &["prev_comm"]),
    // What LTTng says of threads that there are when it begins, perf's events, and others of the scheduler.
    (&["tid", "pid"], &["name", "comm"]),
    (&["child_pid"], &["child_comm"]),
];

/// Where an event has a thread's id and its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct NameAt {
    id: u16,
    name: Behind,
}

/// The names that events of a shape have; `field` finds a field's place.
pub(super) fn names_at(
    id_at: impl Fn(&[&str]) -> Option<u16>,
    name_at: impl Fn(&[&str]) -> Option<Behind>,
) -> Vec<NameAt> {
    let place =
        |(ids, names): &(&[&str], &[&str])| Some(NameAt { id: id_at(ids)?, name: name_at(names)? });
    NAMED.iter().filter_map(place).collect()
}

impl ThreadNames for Comms {
    fn all(&self) -> Cmdlines {
        let mut names: HashMap<u32, (u64, String)> = HashMap::new();
        let mut record = Vec::new();
        for stream in &self.streams {
            for part in &stream.parts {
                let clock = self.trace.clock(part);
                self.trace.each_record(part, &mut record, |shape, record, cycles| {
                    take(shape, record, self.trace.order, clock.ns(cycles), &mut names);
                    true
                });
            }
        }
        let lines = names.iter().map(|(thread, (_, name))| format!("{thread} {name}\n"));
        Cmdlines::parse(lines.collect::<String>().as_bytes())
    }
}

/// Keeps the names that an event has; of several of a thread the last.
fn take(
    shape: &Shape,
    record: &[u8],
    order: ByteOrder,
    ns: u64,
    names: &mut HashMap<u32, (u64, String)>,
) {
    for place in &shape.names_at {
        let Some(thread) = order.u32_at(record, place.id.into()) else { continue };
        let Some(name) = place.name.of(record, order) else { continue };
        if thread == 0 || is_unknown(thread) || name.is_empty() || name == b"<...>" {
            continue;
        }
        let has_room = names.len() < MOST_THREADS;
        match names.get_mut(&thread) {
            Some((at, old)) => {
                if *at <= ns && old.as_bytes() != name {
                    *old = text(name);
                }
                *at = ns.max(*at);
            }
            None if has_room => {
                names.insert(thread, (ns, text(name)));
            }
            None => {}
        }
    }
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).replace('\n', " ")
}
