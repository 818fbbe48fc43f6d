//! Thread names. Traces have no list of them, but events name the threads that they concern.
//! Reading all events takes as long as reading the trace, so it happens when a name is first
//! requested.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tracedat::Cmdlines;

use super::shape::{Behind, THREADS};
use super::stream::{CtfStream, Trace};
use super::threads::is_unknown;
use crate::names::ThreadNames;

/// Maximum threads with names.
const MAX_THREADS: usize = 1 << 20;
/// Number of slots for recent threads, indexed by the low bits of the thread id; the latest thread
/// wins.
const RECENT: usize = 1 << 10;

/// The threads of a trace.
#[derive(Debug)]
pub(super) struct Comms {
    pub(super) trace: Arc<Trace>,
    pub(super) streams: Vec<Arc<CtfStream>>,
}

/// Fields that name a thread in an event: its id, its name.
const NAMED: [(&[&str], &[&str]); 4] = [
    (&["next_pid"], &["next_comm"]),
    (&["prev_pid"], &["prev_comm"]),
    // Events from LTTng's state dump, perf events, and other scheduler events.
    (&["tid", "pid"], &["name", "comm"]),
    (&["child_pid"], &["child_comm"]),
];

/// The same for contexts, which any event can have: they name the thread that ran.
const CONTEXT: (&[&str], &[&str]) = (&THREADS, &["context_procname"]);

/// Positions of a thread's id and name in an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct NameAt {
    id: u16,
    name: Behind,
}

/// Positions of names in the events of a shape, which may be events about threads; the callbacks
/// find a field's position.
pub(super) fn names_at(
    is_of_threads: bool,
    id_at: impl Fn(&[&str]) -> Option<u16>,
    name_at: impl Fn(&[&str]) -> Option<Behind>,
) -> Vec<NameAt> {
    let place =
        |(ids, names): &(&[&str], &[&str])| Some(NameAt { id: id_at(ids)?, name: name_at(names)? });
    let of_threads = if is_of_threads { &NAMED[..] } else { &[] };
    [CONTEXT].iter().chain(of_threads).filter_map(place).collect()
}

impl ThreadNames for Comms {
    fn all(&self) -> Cmdlines {
        // The result is independent of the parallel reading order.
        let mut names = Named::default();
        for found in self.of_streams() {
            for entry in found.all {
                names.take(entry.thread, entry.ns, entry.name.as_bytes());
            }
        }
        let lines = names.all.iter().map(|entry| format!("{} {}\n", entry.thread, entry.name));
        Cmdlines::parse(lines.collect::<String>().as_bytes())
    }
}

impl Comms {
    /// The names in each stream, read by as many threads as there are CPUs.
    fn of_streams(&self) -> Vec<Named> {
        let found: Vec<Mutex<Named>> = self.streams.iter().map(|_| Mutex::default()).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some((stream, found)) = self.streams.get(at).zip(found.get(at)) else { return };
                *found.lock() = self.of_stream(stream);
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        std::thread::scope(|scope| {
            for _ in 1..threads.min(self.streams.len()) {
                scope.spawn(work);
            }
            work();
        });
        found.into_iter().map(Mutex::into_inner).collect()
    }

    fn of_stream(&self, stream: &CtfStream) -> Named {
        let (mut names, mut record) = (Named::default(), Vec::new());
        let order = self.trace.order;
        for part in &stream.parts {
            let clock = self.trace.clock(part);
            self.trace.each_record(part, &mut record, |shape, record, cycles| {
                let ns = clock.nearest_ns(cycles);
                for place in &shape.names_at {
                    let Some(thread) = order.u32_at(record, place.id.into()) else { continue };
                    let Some(name) = place.name.text_in(record, order) else { continue };
                    let is_none = name.is_empty() || name == b"<...>";
                    if thread != 0 && !is_unknown(thread) && !is_none {
                        names.take(thread, ns, name);
                    }
                }
                true
            });
        }
        names
    }
}

/// Threads with the latest name of each.
#[derive(Debug)]
struct Named {
    all: Vec<NamedThread>,
    /// Index of each thread by id.
    places: HashMap<u32, usize>,
    /// Index of the latest thread for each value of the low id bits.
    recent: Vec<usize>,
}

#[derive(Debug)]
struct NamedThread {
    thread: u32,
    /// Time of the latest event with a name.
    ns: u64,
    name: String,
}

impl Default for Named {
    fn default() -> Self {
        Self { all: Vec::new(), places: HashMap::new(), recent: vec![usize::MAX; RECENT] }
    }
}

impl Named {
    /// Records a name; the latest name of a thread wins.
    fn take(&mut self, thread: u32, ns: u64, name: &[u8]) {
        let recent = self.recent.get(thread as usize % RECENT).copied().unwrap_or(usize::MAX);
        let is_recent = self.all.get(recent).is_some_and(|entry| entry.thread == thread);
        let at = if is_recent { Some(recent) } else { self.places.get(&thread).copied() };
        let at = match at {
            Some(at) => at,
            None if self.all.len() < MAX_THREADS => {
                self.places.insert(thread, self.all.len());
                self.all.push(NamedThread { thread, ns, name: text(name) });
                self.all.len() - 1
            }
            None => return,
        };
        if let Some(recent) = self.recent.get_mut(thread as usize % RECENT) {
            *recent = at;
        }
        let Some(entry) = self.all.get_mut(at) else { return };
        if entry.ns <= ns && entry.name.as_bytes() != name {
            entry.name = text(name);
        }
        entry.ns = ns.max(entry.ns);
    }
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_name_of_a_thread_is_kept() {
        let mut names = Named::default();
        let other = 7 + RECENT as u32;
        for (thread, ns, name) in
            [(7, 5, "a"), (other, 1, "x"), (7, 9, "b\n"), (7, 8, "c"), (other, 1, "y")]
        {
            names.take(thread, ns, name.as_bytes());
        }
        let all: Vec<_> =
            names.all.iter().map(|entry| (entry.thread, entry.ns, &*entry.name)).collect();
        assert_eq!(all, [(7, 9, "b "), (other, 1, "y")]);
    }
}
