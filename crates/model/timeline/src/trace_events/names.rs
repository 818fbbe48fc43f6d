//! Thread names: those that the kernel saved, and those in events.

use super::name_histories::NameHistories;
use rustc_hash::FxHashMap;
use sources::Recording;

/// The kernel's `TASK_COMM_LEN`.
pub(super) const COMM_BYTES: usize = 16;

/// Maximum threads with names: a kernel's limit (`PID_MAX_LIMIT`), which also bounds a damaged
/// recording.
const MAX_NAMES: usize = 1 << 22;

/// A name as the kernel stores it, padded with zeros.
pub(super) type Comm = [u8; COMM_BYTES];

/// Maximum number of earlier names of renamed threads in one block; the others are ignored.
const MAX_EARLIER: usize = 1 << 12;

/// A name, with the first and last time at which an event had it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) thread: u32,
    pub(super) comm: Comm,
    pub(super) from_ns: u64,
    pub(super) stamp_ns: u64,
}

/// Names in the events of a block.
#[derive(Debug, Default)]
pub(super) struct BatchNames {
    /// By thread: its latest name, except for threads in `recent`.
    latest: FxHashMap<u32, Named>,
    /// Earlier names of threads.
    earlier: Vec<Named>,
    /// The names set last, at an index derived from the thread id: most events name a recently
    /// named thread.
    recent: Vec<Option<Named>>,
}

/// Size of the cache of recent names.
const RECENT: usize = 64;

impl BatchNames {
    #[inline]
    pub(super) fn set(&mut self, thread: u32, comm: &Comm, stamp_ns: u64) {
        let recent = self.recent.get_mut(thread as usize % RECENT);
        if let Some(Some(known)) = recent
            && known.thread == thread
            && known.comm == *comm
        {
            known.stamp_ns = known.stamp_ns.max(stamp_ns);
            return;
        }
        self.note(Named { thread, comm: *comm, from_ns: stamp_ns, stamp_ns });
    }

    #[inline(never)]
    fn note(&mut self, named: Named) {
        self.recent.resize(RECENT, None);
        let Some(recent) = self.recent.get_mut(named.thread as usize % RECENT) else { return };
        let Some(before) = recent.replace(named) else { return };
        let latest = self.latest.entry(before.thread).or_insert(before);
        if latest.comm == before.comm {
            latest.from_ns = latest.from_ns.min(before.from_ns);
            latest.stamp_ns = latest.stamp_ns.max(before.stamp_ns);
            return;
        }
        let earlier = if before.stamp_ns >= latest.stamp_ns {
            std::mem::replace(latest, before)
        } else {
            before
        };
        if self.earlier.len() < MAX_EARLIER {
            self.earlier.push(earlier);
        }
    }

    pub(super) fn clear(&mut self) {
        self.latest.clear();
        self.earlier.clear();
        self.recent.clear();
    }

    /// All names; the latest name of a thread comes last, unless time stamps run back.
    pub(super) fn iter(&self) -> impl Iterator<Item = Named> {
        let earlier = self.earlier.iter().chain(self.latest.values());
        earlier.chain(self.recent.iter().flatten()).copied()
    }
}

/// Names of the threads of a recording, each with its time: blocks of different CPUs do not arrive
/// in time order.
#[derive(Clone, Debug, Default)]
pub struct ThreadNames {
    latest: FxHashMap<u32, LatestName>,
    /// All names of threads with several names.
    renamed: NameHistories,
}

/// The latest name in events, otherwise the name that the kernel saved.
#[derive(Clone, Debug)]
struct LatestName {
    name: String,
    /// Times of the first and the last event with the name; `None` if the kernel saved it.
    seen_ns: Option<(u64, u64)>,
}

impl ThreadNames {
    /// The names that the kernel saved.
    pub(super) fn saved_in(recording: &Recording) -> Self {
        let name = |name: &str| LatestName { name: name.to_owned(), seen_ns: None };
        let saved = recording.threads().map(|(thread, saved)| (thread, name(saved)));
        Self { latest: saved.collect(), renamed: NameHistories::default() }
    }

    /// The thread's name: the latest in events, otherwise the name that the kernel saved.
    #[must_use]
    pub fn get(&self, thread: u32) -> Option<&str> {
        self.latest.get(&thread).map(|latest| latest.name.as_str())
    }

    /// The thread's name at a time: a name holds until an event has another one.
    #[must_use]
    pub fn at(&self, thread: u32, now_ns: u64) -> Option<&str> {
        let earlier = self.renamed.at(thread, now_ns).map(|(_, name)| name);
        earlier.or_else(|| self.get(thread))
    }

    /// The start of the name that the thread had at a time; 0 if it had it from the beginning.
    #[must_use]
    pub fn since_ns(&self, thread: u32, now_ns: u64) -> u64 {
        self.renamed.at(thread, now_ns).map_or(0, |(from_ns, _)| from_ns)
    }

    /// The successive names of the thread, each with the time of its first event; empty if it had
    /// only one.
    pub fn history(&self, thread: u32) -> impl Iterator<Item = (u64, &str)> {
        self.renamed.names_of(thread)
    }

    /// Records a thread name from an event. Idle threads share the id 0.
    pub(super) fn set(&mut self, named: &Named) {
        let Named { thread, comm, from_ns, stamp_ns } = named;
        let end = comm.iter().position(|&byte| byte == 0).unwrap_or(COMM_BYTES);
        let name = String::from_utf8_lossy(comm.get(..end).unwrap_or(&[]));
        if *thread == 0 || name.is_empty() {
            return;
        }
        let seen_ns = (*from_ns, *stamp_ns);
        let has_room = self.latest.len() < MAX_NAMES;
        match self.latest.get_mut(thread) {
            Some(latest) => {
                if let Some(known_ns) = latest.seen_ns
                    && (latest.name != name || self.renamed.has(*thread))
                {
                    self.renamed.add(*thread, known_ns, &latest.name);
                    self.renamed.add(*thread, seen_ns, &name);
                }
                latest.set(&name, seen_ns);
            }
            None if has_room => {
                let latest = LatestName { name: name.into_owned(), seen_ns: Some(seen_ns) };
                self.latest.insert(*thread, latest);
            }
            None => {}
        }
    }
}

impl LatestName {
    /// Records that events had a name from one time to another.
    fn set(&mut self, name: &str, (from_ns, to_ns): (u64, u64)) {
        let known_ns = self.seen_ns.unwrap_or((u64::MAX, 0));
        if self.name == name {
            self.seen_ns = Some((known_ns.0.min(from_ns), known_ns.1.max(to_ns)));
        } else if to_ns >= known_ns.1 {
            *self = Self { name: name.to_owned(), seen_ns: Some((from_ns, to_ns)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comm(name: &str) -> Comm {
        let mut comm = [0; COMM_BYTES];
        comm[..name.len()].copy_from_slice(name.as_bytes());
        comm
    }

    /// The names in blocks, whose events are `(thread, name, time)`.
    fn names(blocks: &[&[(u32, &str, u64)]]) -> ThreadNames {
        let mut names = ThreadNames::default();
        for block in blocks {
            let mut batch = BatchNames::default();
            block.iter().for_each(|(thread, name, ns)| batch.set(*thread, &comm(name), *ns));
            batch.iter().for_each(|named| names.set(&named));
        }
        names
    }

    #[test]
    fn a_threads_name_is_the_last_in_time_whichever_block_comes_last() {
        let one_cpu: &[_] = &[(7, "bash", 1), (7, "gcc", 5), (7, "gcc", 9)];
        let other: &[_] = &[(7, "bash", 2), (8, "x", 3)];
        for blocks in [[one_cpu, other], [other, one_cpu]] {
            let names = names(&blocks);
            assert_eq!((names.get(7), names.get(8)), (Some("gcc"), Some("x")));
        }
        // A name that is set again counts from its last time.
        let again: &[_] = &[(7, "bash", 1), (7, "bash", 8)];
        let between: &[_] = &[(7, "gcc", 5)];
        assert_eq!(names(&[again, between]).get(7), Some("bash"));
        // Threads whose names share a cache entry.
        let other = 7 + RECENT as u32;
        let shared: &[_] = &[(7, "a", 1), (other, "b", 2), (7, "c", 3), (other, "b", 4)];
        assert_eq!(names(&[shared]).get(7), Some("c"));
    }

    #[test]
    fn a_thread_has_the_name_of_that_time_whichever_block_comes_first() {
        let one_cpu: &[_] = &[(7, "init", 1), (7, "sh", 5), (7, "sh", 9), (7, "dd", 20)];
        let other: &[_] = &[(7, "init", 3), (8, "x", 3), (7, "sh", 12)];
        for blocks in [[one_cpu, other], [other, one_cpu]] {
            let names = names(&blocks);
            let at = [0, 4, 5, 19, 20].map(|now_ns| names.at(7, now_ns).unwrap());
            assert_eq!(at, ["init", "init", "sh", "sh", "dd"]);
            assert_eq!((names.since_ns(7, 19), names.since_ns(8, 19)), (5, 0));
            assert_eq!((names.at(8, 1), names.get(7)), (Some("x"), Some("dd")));
            let history: Vec<(u64, &str)> = names.history(7).collect();
            assert_eq!(history, [(1, "init"), (5, "sh"), (20, "dd")]);
        }
    }
}
