//! Names of threads that the recording's own list lacks, learned from events.
//!
//! The kernel saves the names of some threads only, but the scheduler's events contain names. While pages are
//! decoded, names are learned in blocks that have a line without a name: from its page on, and from the pages
//! before it. Most recordings have no such line, and no overhead. A line that still lacks a name gets a
//! *blank*, which the merger fills in: it sees all lines in order of time, and with them the names found in
//! other such blocks.
//!
//! So a line shows the last known name of its thread; without an earlier one, the first name in its own block.
//! The result depends only on the file, not on the number of threads that read it.

use std::collections::hash_map::Entry;
use std::ops::Range;

use ftrace::eventfmt::{EventFormat, Field, FieldKind, NumberAt, Value};
use raw_bytes::ByteOrder;
use rustc_hash::FxHashMap;
use sources::Recording;

/// Fields with a thread's id and its name.
type Pair = (&'static str, &'static str);

const OWN: &[Pair] = &[("pid", "comm")];

/// Events that name threads. Not all events with such fields do: `sched_process_wait` has the name of the
/// waiting thread, and the id of the one that it waits for.
const TELLERS: &[(&str, &[Pair])] = &[
    ("sched:sched_switch", &[("prev_pid", "prev_comm"), ("next_pid", "next_comm")]),
    ("sched:sched_waking", OWN),
    ("sched:sched_wakeup", OWN),
    ("sched:sched_wakeup_new", OWN),
    ("sched:sched_migrate_task", OWN),
    ("sched:sched_stat_runtime", OWN),
    ("sched:sched_process_fork", &[("parent_pid", "parent_comm"), ("child_pid", "child_comm")]),
    ("sched:sched_process_exit", OWN),
    ("sched:sched_process_free", OWN),
    ("task:task_newtask", OWN),
    // Since Linux 6.15 its only id is that of the running thread.
    ("task:task_rename", &[("pid|common_pid", "newcomm")]),
    // A new program is named after its file.
    (EXEC, &[("pid", "filename")]),
];

const EXEC: &str = "sched:sched_process_exec";

/// The events of one recording that name threads.
#[derive(Debug)]
pub(super) struct CommSources<'r> {
    /// By event id, up to the greatest.
    by_id: Vec<Box<[CommSource<'r>]>>,
}

impl<'r> CommSources<'r> {
    pub(super) fn new(recording: &'r Recording) -> Self {
        let mut by_id = Vec::new();
        for (event, pairs) in TELLERS {
            let Some(format) = recording.formats().by_name(event) else { continue };
            let at = usize::from(format.id());
            if by_id.len() <= at {
                by_id.resize_with(at + 1, Box::default);
            }
            if let Some(tellers) = by_id.get_mut(at) {
                *tellers = pairs.iter().filter_map(|pair| CommSource::new(format, pair)).collect();
            }
        }
        Self { by_id }
    }

    /// The names in events with this id.
    #[inline]
    pub(super) fn for_event(&self, id: u16) -> &[CommSource<'r>] {
        self.by_id.get(usize::from(id)).map_or(&[], |tellers| tellers)
    }
}

/// The kernel's `TASK_COMM_LEN`.
const COMM_BYTES: usize = 16;

/// The positions of a thread's id and its name in an event.
#[derive(Debug)]
pub(super) struct CommSource<'r> {
    pid: NumberAt,
    comm: &'r Field,
    /// The field is a path, and its last part is the name.
    is_path: bool,
}

impl<'r> CommSource<'r> {
    fn new(format: &'r EventFormat, (pid, comm): &Pair) -> Option<Self> {
        let pid = pid.split('|').find_map(|pid| format.field(pid))?.number()?;
        let is_path = format.full_name() == EXEC;
        Some(Self { pid, comm: format.field(comm)?, is_path })
    }

    /// The thread's id; 0, the idle thread, if the record is truncated.
    #[inline]
    pub(super) fn pid(&self, record: &[u8], order: ByteOrder) -> u32 {
        self.pid.read(record, order).unwrap_or(0) as u32
    }

    /// The bytes of its name and those after it, if the field is fixed in size.
    #[inline]
    fn bytes<'p>(&self, record: &'p [u8]) -> Option<&'p [u8; COMM_BYTES]> {
        let in_place = matches!(self.comm.kind, FieldKind::Array(_));
        record.get(self.comm.offset as usize..)?.first_chunk().filter(|_| in_place)
    }

    /// The name; `None` if the record has none.
    pub(super) fn comm<'p>(&self, record: &'p [u8], order: ByteOrder) -> Option<&'p [u8]> {
        let Value::Text(comm) = self.comm.value(record, order)? else { return None };
        let comm = if self.is_path { name_of_file(comm)? } else { comm };
        (!comm.is_empty()).then_some(comm)
    }
}

/// The kernel's name for a thread that runs a file; `None` if the path doesn't contain it.
fn name_of_file(path: &[u8]) -> Option<&[u8]> {
    let name = path.rsplit(|&byte| byte == b'/').next().filter(|_| !path.starts_with(b"/dev/fd/"));
    name.map(|name| name.get(..COMM_BYTES - 1).unwrap_or(name))
}

/// A name from an event.
#[derive(Debug)]
struct Named {
    /// The line from which it is known.
    line: usize,
    pid: u32,
    comm: Box<[u8]>,
    /// The name as printed in lines.
    text: Box<[u8]>,
}

/// A line that lacks its thread's name.
#[derive(Clone, Copy, Debug)]
struct Blank {
    line: usize,
    pid: u32,
    /// Position and length of the blank in the text.
    at: usize,
    len: usize,
}

/// Number of threads whose last names are cached; a power of two.
const RECENT: usize = 128;

/// Names found in one block, and its blanks.
#[derive(Debug, Default)]
pub(super) struct BlockNames {
    found: Vec<Named>,
    blanks: Vec<Blank>,
    /// By thread, the indices in `found` of its first and its last name.
    threads: FxHashMap<u32, (usize, usize)>,
    /// By the low bits of a thread's id, a thread and its last name: nearly all names repeat.
    recent: Vec<(u32, [u8; COMM_BYTES])>,
    heard_count: usize,
    filled: usize,
}

impl BlockNames {
    /// Whether the event repeats the thread's last name; otherwise that name is recorded here.
    #[inline]
    pub(super) fn is_repeated(&mut self, pid: u32, teller: &CommSource<'_>, record: &[u8]) -> bool {
        let Some(comm) = teller.bytes(record) else { return false };
        if self.recent.is_empty() {
            self.recent.resize(RECENT, (0, [0; COMM_BYTES]));
        }
        let Some(recent) = self.recent.get_mut(pid as usize % RECENT) else { return false };
        let again = *recent == (pid, *comm);
        *recent = (pid, *comm);
        again
    }

    /// Records a name known from a line on; `false` if it is not new.
    pub(super) fn name(
        &mut self,
        (line, pid): (usize, u32),
        comm: &[u8],
        text: impl FnOnce() -> Box<[u8]>,
    ) -> bool {
        let next = self.found.len();
        match self.threads.entry(pid) {
            Entry::Occupied(mut known) => {
                let last = self.found.get(known.get().1);
                if last.is_some_and(|last| *last.comm == *comm) {
                    return false;
                }
                known.get_mut().1 = next;
            }
            Entry::Vacant(unknown) => _ = unknown.insert((next, next)),
        }
        self.found.push(Named { line, pid, comm: comm.into(), text: text() });
        true
    }

    /// Writes a thread's last known name. If there is none, writes `blank` for a line that begins at byte `at`
    /// of the block's text, and returns `false`.
    pub(super) fn write<B: AsRef<[u8]>>(
        &mut self,
        (line, pid): (usize, u32),
        at: usize,
        out: &mut Vec<u8>,
        blank: impl FnOnce() -> B,
    ) -> bool {
        if let Some((_, last)) = self.threads.get(&pid) {
            out.extend_from_slice(self.found.get(*last).map_or(&[], |name| &name.text));
            return true;
        }
        let (blank, begin) = (blank(), out.len());
        out.extend_from_slice(blank.as_ref());
        self.blanks.push(Blank { line, pid, at, len: out.len() - begin });
        false
    }

    /// Appends the part `range` of the block's text to `out`, up to line `to_line`, with blanks filled in.
    pub(super) fn fill(
        &mut self,
        names: &mut Names,
        to_line: usize,
        (text, range): (&[u8], Range<usize>),
        mut out: impl FnMut(&[u8]),
    ) {
        let mut from = range.start;
        while let Some(blank) = self.blanks.get(self.filled).filter(|blank| blank.line < to_line) {
            let blank = *blank;
            self.filled += 1;
            self.hear(names, blank.line + 1);
            let first = || self.found.get(self.threads.get(&blank.pid)?.0).map(|name| &name.text);
            if let Some(name) = names.threads.get(&blank.pid).or_else(first) {
                out(text.get(from..blank.at).unwrap_or(&[]));
                out(name);
                from = blank.at + blank.len;
            }
        }
        out(text.get(from..range.end).unwrap_or(&[]));
        self.hear(names, to_line);
    }

    /// Passes on the names known before line `to_line`.
    fn hear(&mut self, names: &mut Names, to_line: usize) {
        let rest = self.found.get_mut(self.heard_count..).unwrap_or(&mut []);
        for name in rest.iter_mut().take_while(|name| name.line < to_line) {
            self.heard_count += 1;
            if names.threads.len() < MAX_NAMES || names.threads.contains_key(&name.pid) {
                names.threads.insert(name.pid, std::mem::take(&mut name.text));
            }
        }
    }
}

/// Max names of one recording: no machine has more threads, but a damaged file may name more.
const MAX_NAMES: usize = 1 << 18;

/// The names of one recording's threads known so far, as printed in lines.
#[derive(Debug, Default)]
pub(super) struct Names {
    threads: FxHashMap<u32, Box<[u8]>>,
}
