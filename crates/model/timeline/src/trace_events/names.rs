//! Names of threads: those the kernel saved, and those that events carry.

use rustc_hash::FxHashMap;
use sources::Recording;

/// The kernel's `TASK_COMM_LEN`.
pub(super) const COMM_BYTES: usize = 16;

/// Threads whose names are kept: as many as a kernel has at once (`PID_MAX_LIMIT`) would fit, but a
/// damaged recording has no more threads than this either.
const MOST_NAMES: usize = 1 << 22;

/// A name as the kernel keeps it: filled up with zeros.
pub(super) type Comm = [u8; COMM_BYTES];

/// A name, and when an event last had it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) thread: u32,
    pub(super) comm: Comm,
    pub(super) stamp_ns: u64,
}

/// Names that the events of one block have.
#[derive(Debug, Default)]
pub(super) struct BatchNames {
    /// By thread, its latest name, but for those at hand.
    latest: FxHashMap<u32, (Comm, u64)>,
    /// Names set last, each where its thread's id says: most events name threads that were just named.
    recent: Vec<Option<Named>>,
}

/// Threads whose names are at hand.
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
        self.note(Named { thread, comm: *comm, stamp_ns });
    }

    #[inline(never)]
    fn note(&mut self, named: Named) {
        self.recent.resize(RECENT, None);
        let Some(recent) = self.recent.get_mut(named.thread as usize % RECENT) else { return };
        let Some(before) = recent.replace(named) else { return };
        let latest = self.latest.entry(before.thread).or_insert((before.comm, before.stamp_ns));
        if before.stamp_ns >= latest.1 {
            *latest = (before.comm, before.stamp_ns);
        }
    }

    pub(super) fn clear(&mut self) {
        self.latest.clear();
        self.recent.clear();
    }

    /// All of them; of a thread's the last in time comes last, unless stamps go back.
    pub(super) fn iter(&self) -> impl Iterator<Item = Named> {
        let latest = self.latest.iter();
        let latest = latest.map(|(&thread, &(comm, stamp_ns))| Named { thread, comm, stamp_ns });
        latest.chain(self.recent.iter().flatten().copied())
    }
}

/// Names of the threads of one recording, each with the moment of which it is: blocks of different CPUs come in an order
/// that is not that of their times.
#[derive(Clone, Debug, Default)]
pub struct ThreadNames(FxHashMap<u32, (String, u64)>);

impl ThreadNames {
    /// Those that the kernel saved.
    pub(super) fn saved_in(recording: &Recording) -> Self {
        let saved = recording.threads().map(|(thread, name)| (thread, (name.to_owned(), 0)));
        Self(saved.collect())
    }

    /// The thread's name: what events called it last, else what the kernel saved.
    #[must_use]
    pub fn of(&self, thread: u32) -> Option<&str> {
        self.0.get(&thread).map(|(name, _)| name.as_str())
    }

    /// An event has the name of a thread. Idle threads share the id 0.
    pub(super) fn set(&mut self, named: &Named) {
        let Named { thread, comm, stamp_ns } = named;
        let end = comm.iter().position(|&byte| byte == 0).unwrap_or(COMM_BYTES);
        let name = String::from_utf8_lossy(comm.get(..end).unwrap_or(&[]));
        if *thread == 0 || name.is_empty() {
            return;
        }
        let has_room = self.0.len() < MOST_NAMES;
        match self.0.get_mut(thread) {
            Some((_, known_ns)) if *known_ns > *stamp_ns => {}
            Some((known, known_ns)) => {
                *known_ns = *stamp_ns;
                if *known != name {
                    *known = name.into_owned();
                }
            }
            None if has_room => {
                self.0.insert(*thread, (name.into_owned(), *stamp_ns));
            }
            None => {}
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

    /// The names that blocks have, whose events are `(thread, name, time)`.
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
            assert_eq!((names.of(7), names.of(8)), (Some("gcc"), Some("x")));
        }
        // A name that was set again counts from its last time on.
        let again: &[_] = &[(7, "bash", 1), (7, "bash", 8)];
        let between: &[_] = &[(7, "gcc", 5)];
        assert_eq!(names(&[again, between]).of(7), Some("bash"));
        // Threads whose names share a place.
        let other = 7 + RECENT as u32;
        let shared: &[_] = &[(7, "a", 1), (other, "b", 2), (7, "c", 3), (other, "b", 4)];
        assert_eq!(names(&[shared]).of(7), Some("c"));
    }
}
