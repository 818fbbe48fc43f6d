//! Counts a guest's events that arrived on the host.

use std::io::{self, Write};
use std::path::Path;

use analyses::contents::contents;
use report::events::{Machine, Style, write_events};
use sources::Recording;
use timeline::event_filter::Filter;

use crate::bench::channels::Variant;
use crate::bench::error::{BenchError, Result};

/// Page size of the lab's x86 guests.
const PAGE_BYTES: u64 = 4096;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// Events of all kinds.
    pub(crate) events: u64,
    /// Switches away from a thread of the load; `None` if the recording stayed in the guest.
    pub(crate) load_switches: Option<u64>,
    /// Events that the guest's kernel dropped.
    pub(crate) events_lost: u64,
    /// Number of losses without a count.
    pub(crate) uncounted_losses: u64,
    /// Bytes that were sent and did not arrive.
    pub(crate) lost_bytes: u64,
    /// Bytes of pages that arrived.
    pub(crate) bytes: u64,
}

impl Arrived {
    /// Whether everything arrived, according to the recording.
    pub(crate) fn is_whole(&self) -> bool {
        self.events_lost == 0 && self.uncounted_losses == 0 && self.lost_bytes == 0
    }
}

/// Counts the content of a recording.
pub(crate) fn count(variant: Variant, path: &Path) -> Result<Arrived> {
    let unreadable = |source| BenchError::Recording { variant: variant.name(), source };
    let recording = sources::open(path).map_err(unreadable)?;
    let contents = contents(&recording, &|_| {});
    let pages: u64 = contents.cpus.iter().map(|cpu| cpu.pages).sum();
    Ok(Arrived {
        events: contents.total(),
        load_switches: Some(
            load_switches(&recording).map_err(BenchError::io("cannot read", path))?,
        ),
        events_lost: contents.events_lost(),
        uncounted_losses: contents.uncounted_losses(),
        lost_bytes: 0,
        bytes: pages * PAGE_BYTES,
    })
}

/// Number of switches away from threads of the load.
fn load_switches(recording: &Recording) -> io::Result<u64> {
    let filter = Filter { events: vec!["sched:sched_switch".to_owned()], ..Filter::default() };
    let machines = [Machine { name: String::new(), level: 0, threads: None }];
    let mut counter = Counter { line: Vec::new(), count: 0 };
    let all = std::slice::from_ref(recording);
    write_events(all, &machines, &filter, Style::Jsonl, &mut counter, &|_| {})
        .map_err(io::Error::other)?;
    Ok(counter.count)
}

/// Counts lines of JSON whose previous thread belongs to the load.
struct Counter {
    line: Vec<u8>,
    count: u64,
}

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let before = format!("\"prev_comm\":\"{}", labguest::wire::LOAD_THREAD);
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let (line, after) = rest.split_at(end);
            self.line.extend_from_slice(line);
            let is_load = self.line.windows(before.len()).any(|part| part == before.as_bytes());
            self.count += u64::from(is_load);
            self.line.clear();
            rest = after.get(1..).unwrap_or_default();
        }
        self.line.extend_from_slice(rest);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
