//! Collects changes of processes' memory from recorded events.

use std::collections::HashMap;

use perfdata::{Body, BuildId, Comm, Events, Mapping, Record, Task, kind, misc};

use crate::files::Files;
use crate::processes::{Change, Event, Processes, Replay};

/// Maximum events: a loaded host starts a thousand programs per second, each with ten mappings.
const MAX_EVENTS: usize = 1 << 21;

/// Maximum build ids by path.
const MAX_BUILD_IDS: usize = 1 << 16;

/// `pid` of kernel mappings.
const KERNEL: u32 = u32::MAX;

/// Collects changes of processes' memory. They can be added in any order, except those with the
/// same time.
#[derive(Clone, Debug, Default)]
pub struct ProcessLog {
    events: Vec<Event>,
    files: Files,
    build_ids: HashMap<Vec<u8>, BuildId>,
    dropped: u64,
}

impl ProcessLog {
    /// Adds the build id of a file by path, for mappings without a build id; must be called before
    /// they are added.
    pub fn build_id(&mut self, path: &[u8], build_id: BuildId) {
        if self.build_ids.len() < MAX_BUILD_IDS {
            self.build_ids.insert(path.to_vec(), build_id);
        }
    }

    /// Adds a record of a perf.data with these events. Ignores damaged records, and types other
    /// than mappings, names and forks.
    pub fn read(&mut self, events: &Events, record: &Record<'_>) {
        if matches!(record.kind, kind::MMAP | kind::MMAP2 | kind::COMM | kind::FORK)
            && let Ok(body) = events.body(record)
        {
            let time_ns = events.sample_id(record).ok().and_then(|id| id.time);
            self.body(time_ns.unwrap_or(0), record.misc, &body);
        }
    }

    /// Adds the content of a record with its `misc` and its time in nanoseconds.
    pub fn body(&mut self, time_ns: u64, misc: u16, body: &Body<'_>) {
        match body {
            Body::Mapping(mapping) if misc & misc::MMAP_DATA == 0 => self.mapping(time_ns, mapping),
            Body::Comm(comm) => self.comm(time_ns, comm),
            Body::Fork(task) => self.fork(time_ns, misc, task),
            _ => (),
        }
    }

    /// Adds a mapping of a file by a process.
    pub fn mapping(&mut self, time_ns: u64, mapping: &Mapping<'_>) {
        if mapping.pid == KERNEL || mapping.len == 0 {
            return;
        }
        let (start, len, file_offset) = (mapping.addr, mapping.len, mapping.file_offset);
        let known = || self.build_ids.get(mapping.path).copied();
        let build_id = mapping.build_id.filter(|id| !id.bytes().is_empty()).or_else(known);
        match self.files.number(mapping.path, build_id, (file_offset, len)) {
            Some(file) => {
                let change = Change::Map { start, len, file_offset, file };
                self.push(Event { time_ns, pid: mapping.pid, change });
            }
            None => self.dropped = self.dropped.saturating_add(1),
        }
    }

    fn comm(&mut self, time_ns: u64, comm: &Comm<'_>) {
        if comm.exec {
            self.push(Event { time_ns, pid: comm.pid, change: Change::Exec });
        }
    }

    fn fork(&mut self, time_ns: u64, misc: u16, task: &Task) {
        // Threads share their process's memory.
        if task.pid == task.parent_pid {
            return;
        }
        // For processes that existed before it started, perf reports their parents, although they
        // have since executed other programs.
        let of_perf = misc & misc::FORK_EXEC != 0;
        let change = if of_perf { Change::Exec } else { Change::Fork { parent: task.parent_pid } };
        self.push(Event { time_ns, pid: task.pid, change });
    }

    fn push(&mut self, event: Event) {
        if self.events.len() < MAX_EVENTS {
            self.events.push(event);
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    /// The mappings over time.
    #[must_use]
    pub fn finish(mut self) -> Processes {
        self.events.sort_by_key(|event| event.time_ns);
        let mut replay = Replay::default();
        self.events.iter().for_each(|event| replay.event(event));
        replay.finish(self.files, self.dropped)
    }
}
