//! Names of threads that the recording's own list lacks, learned from events that have them.
//!
//! The kernel saves the names of some threads only, but its scheduler's events bear the names of
//! those they concern. Where pages are decoded, names are learned in blocks with a line that lacks
//! one, from its page on, after a look back at the pages before; most recordings have no such line
//! and pay nothing. Lines that still lack a name get a *blank*, which the merger fills in: it sees
//! all lines in the order of their times, and with them the names found in other such blocks.
//!
//! So a line names its thread by what it was last called before; if it never was, by what it is first called in
//! its own block. That depends on the file alone, not on how many threads read it.

use std::collections::hash_map::Entry;
use std::ops::Range;

use ftrace::eventfmt::{EventFormat, Field, FieldKind, NumberAt, Value};
use raw_bytes::ByteOrder;
use rustc_hash::FxHashMap;
use sources::Recording;

/// Fields with a thread's id and its name.
type Pair = (&'static str, &'static str);

const OWN: &[Pair] = &[("pid", "comm")];

/// Events that name threads. Not all that have fields of such names do: `sched_process_wait` has the
/// name of the thread that waits, and the id of the one waited for.
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
    // Since Linux 6.15 it has no id but that of the thread that ran.
    ("task:task_rename", &[("pid|common_pid", "newcomm")]),
    // A program that begins has the name of its file.
    (EXEC, &[("pid", "filename")]),
];

const EXEC: &str = "sched:sched_process_exec";

/// The events of one recording that name threads.
#[derive(Debug)]
pub(super) struct CommSources<'r> {
    /// By event id; as long as the greatest.
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

    /// The names that events of that id have.
    #[inline]
    pub(super) fn for_event(&self, id: u16) -> &[CommSource<'r>] {
        self.by_id.get(usize::from(id)).map_or(&[], |tellers| tellers)
    }
}

/// The kernel's `TASK_COMM_LEN`.
const COMM_BYTES: usize = 16;

/// Where an event has a thread's id and its name.
#[derive(Debug)]
pub(super) struct CommSource<'r> {
    pid: NumberAt,
    comm: &'r Field,
    /// The field has a path, of which the last part is the name.
    is_path: bool,
}

impl<'r> CommSource<'r> {
    fn new(format: &'r EventFormat, (pid, comm): &Pair) -> Option<Self> {
        let pid = pid.split('|').find_map(|pid| format.field(pid))?.number()?;
        let is_path = format.full_name() == EXEC;
        Some(Self { pid, comm: format.field(comm)?, is_path })
    }

    /// The thread; 0, the idle one, when the record is cut short.
    #[inline]
    pub(super) fn pid(&self, record: &[u8], order: ByteOrder) -> u32 {
        self.pid.read(record, order).unwrap_or(0) as u32
    }

    /// The bytes of its name and what follows them, where the field has no other place for them.
    #[inline]
    fn bytes<'p>(&self, record: &'p [u8]) -> Option<&'p [u8; COMM_BYTES]> {
        let in_place = matches!(self.comm.kind, FieldKind::Array(_));
        record.get(self.comm.offset as usize..)?.first_chunk().filter(|_| in_place)
    }

    /// Its name; `None` when the record has none.
    pub(super) fn comm<'p>(&self, record: &'p [u8], order: ByteOrder) -> Option<&'p [u8]> {
        let Value::Text(comm) = self.comm.value(record, order)? else { return None };
        let comm = if self.is_path { name_of_file(comm)? } else { comm };
        (!comm.is_empty()).then_some(comm)
    }
}

/// What the kernel calls a thread that runs a file; `None`: the path doesn't say it.
fn name_of_file(path: &[u8]) -> Option<&[u8]> {
    let name = path.rsplit(|&byte| byte == b'/').next().filter(|_| !path.starts_with(b"/dev/fd/"));
    name.map(|name| name.get(..COMM_BYTES - 1).unwrap_or(name))
}

/// A name that an event has.
#[derive(Debug)]
struct Named {
    /// Line from which on it is known.
    line: usize,
    pid: u32,
    comm: Box<[u8]>,
    /// How it stands on a line.
    text: Box<[u8]>,
}

/// A line that lacks its thread's name.
#[derive(Clone, Copy, Debug)]
struct Blank {
    line: usize,
    pid: u32,
    /// What stands in place of the name: from here on in the text, of this length.
    at: usize,
    len: usize,
}

/// Threads whose last names are at hand; a power of two.
const RECENT: usize = 128;

/// Names found in one block, and blanks left in it.
#[derive(Debug, Default)]
pub(super) struct BlockNames {
    found: Vec<Named>,
    blanks: Vec<Blank>,
    /// By thread, its first and its last name in `found`.
    threads: FxHashMap<u32, (usize, usize)>,
    /// By the low bits of a thread's id, a thread and what it was named by last: nearly all that is
    /// found has been found before.
    recent: Vec<(u32, [u8; COMM_BYTES])>,
    heard_count: usize,
    filled: usize,
}

impl BlockNames {
    /// Whether the same was said of the thread just before; else it is from here on.
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

    /// Notes a name known from a line on; `false` when it is not new.
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

    /// Writes a thread's name as found last. If there is none, writes `blank` for a line that will
    /// have it at byte `at` of the block's text, and is `false`.
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

    /// Gives `out` the part `range` of the block's text, up to line `to_line`, blanks filled in.
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

    /// Takes over the names known before line `to_line`.
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

/// Names kept of one recording: no machine has more threads, a damaged file may name more.
const MAX_NAMES: usize = 1 << 18;

/// The names of one recording's threads as known so far, as they stand on lines.
#[derive(Debug, Default)]
pub(super) struct Names {
    threads: FxHashMap<u32, Box<[u8]>>,
}
