//! The mappings of processes over time.

use std::collections::HashMap;

use crate::files::Files;

/// Maximum parents to search for mappings that a process inherited at its fork.
const MAX_PARENTS: usize = 64;

/// Maximum mappings to check for an address. Only overlapping mappings need more than one.
const MAX_CANDIDATES: usize = 1024;

/// A mapping of a file.
#[derive(Clone, Copy, Debug)]
struct Mapped {
    start: u64,
    /// Its last address (inclusive).
    last: u64,
    file_offset: u64,
    file: u32,
    from_ns: u64,
}

/// The memory of a process from exec to exec.
#[derive(Clone, Debug, Default)]
struct Program {
    from_ns: u64,
    /// Sorted by start, then by time.
    mapped: Vec<Mapped>,
    /// For each mapping: the highest last address of it and of those before it.
    reach: Vec<u64>,
    /// The program whose mappings it inherited, and the time of the fork.
    parent: Option<(usize, u64)>,
}

impl Program {
    fn finish(&mut self) {
        self.mapped.sort_by_key(|mapping| mapping.start);
        let mut reach = 0;
        self.reach.clear();
        for mapping in &self.mapped {
            reach = mapping.last.max(reach);
            self.reach.push(reach);
        }
    }

    /// The newest mapping of `address` at a time.
    fn at(&self, time_ns: u64, address: u64) -> Option<&Mapped> {
        let after = self.mapped.partition_point(|mapping| mapping.start <= address);
        let below = self.mapped.iter().zip(&self.reach).take(after).rev();
        let near = below.take(MAX_CANDIDATES).take_while(|(_, reach)| **reach >= address);
        let hits = near.map(|(mapping, _)| mapping);
        let hits = hits.filter(|mapping| mapping.last >= address && mapping.from_ns <= time_ns);
        // At equal times the last recorded one wins; it comes first here.
        hits.reduce(
            |newest, mapping| if mapping.from_ns > newest.from_ns { mapping } else { newest },
        )
    }
}

/// The mappings of a machine's processes over time.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    programs: Vec<Program>,
    /// Programs of each process in time order.
    by_pid: HashMap<u32, Vec<usize>>,
    files: Files,
    dropped: u64,
}

impl Processes {
    /// The file at an address of a process at a time, as an index in [`Processes::files`], and the
    /// offset in bytes.
    #[must_use]
    pub fn find(&self, pid: u32, time_ns: u64, address: u64) -> Option<(u32, u64)> {
        let all = self.by_pid.get(&pid)?;
        let mut programs = all.iter().rev().filter_map(|&at| Some((at, self.programs.get(at)?)));
        let now = programs.clone().find(|(_, program)| program.from_ns <= time_ns);
        let (at, _) = now.or_else(|| programs.next_back())?;
        let (mut at, mut time_ns) = (at, time_ns);
        for _ in 0..MAX_PARENTS {
            let program = self.programs.get(at)?;
            if let Some(mapping) = program.at(time_ns, address) {
                let into = address.wrapping_sub(mapping.start);
                return Some((mapping.file, mapping.file_offset.wrapping_add(into)));
            }
            (at, time_ns) = program.parent?;
        }
        None
    }

    /// All mapped files.
    #[must_use]
    pub const fn files(&self) -> &Files {
        &self.files
    }

    /// Records that exceeded the limits.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// A change of a process's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// It mapped a file.
    Map { start: u64, len: u64, file_offset: u64, file: u32 },
    /// It executed a new program.
    Exec,
    /// It was forked.
    Fork { parent: u32 },
}

/// A change with its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) time_ns: u64,
    pub(crate) pid: u32,
    pub(crate) change: Change,
}

/// Builds [`Processes`] from events in time order.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    made: Processes,
}

impl Replay {
    pub(crate) fn event(&mut self, event: &Event) {
        match event.change {
            Change::Exec => {
                self.begin(event, None);
            }
            Change::Fork { parent } => {
                let parent = self.made.by_pid.get(&parent).and_then(|all| all.last()).copied();
                self.begin(event, parent.map(|at| (at, event.time_ns)));
            }
            Change::Map { start, len, file_offset, file } => {
                let last = start.saturating_add(len.saturating_sub(1));
                let mapped = Mapped { start, last, file_offset, file, from_ns: event.time_ns };
                let known = self.made.by_pid.get(&event.pid).and_then(|all| all.last()).copied();
                let at = known.unwrap_or_else(|| self.begin(event, None));
                if let Some(program) = self.made.programs.get_mut(at) {
                    program.mapped.push(mapped);
                }
            }
        }
    }

    fn begin(&mut self, event: &Event, parent: Option<(usize, u64)>) -> usize {
        let at = self.made.programs.len();
        let program = Program { from_ns: event.time_ns, parent, ..Program::default() };
        self.made.programs.push(program);
        self.made.by_pid.entry(event.pid).or_default().push(at);
        at
    }

    pub(crate) fn finish(mut self, files: Files, dropped: u64) -> Processes {
        self.made.programs.iter_mut().for_each(Program::finish);
        Processes { files, dropped, ..self.made }
    }
}
