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

/// Names that the events of one block have.
#[derive(Debug, Default)]
pub(super) struct BatchNames {
    /// By thread, its latest name.
    latest: FxHashMap<u32, Comm>,
    /// Names set last, each where its thread's id says: most events name threads that were just named.
    recent: Vec<Option<(u32, Comm)>>,
}

/// Threads whose names are at hand.
const RECENT: usize = 64;

impl BatchNames {
    #[inline]
    pub(super) fn set(&mut self, thread: u32, comm: &Comm) {
        let known = self.recent.get(thread as usize % RECENT);
        if known != Some(&Some((thread, *comm))) {
            self.note(thread, comm);
        }
    }

    #[inline(never)]
    fn note(&mut self, thread: u32, comm: &Comm) {
        self.recent.resize(RECENT, None);
        if let Some(recent) = self.recent.get_mut(thread as usize % RECENT) {
            *recent = Some((thread, *comm));
        }
        self.latest.insert(thread, *comm);
    }

    pub(super) fn clear(&mut self) {
        self.latest.clear();
        self.recent.clear();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Comm)> {
        self.latest.iter().map(|(thread, comm)| (*thread, comm))
    }
}

/// Names of the threads of one recording.
#[derive(Clone, Debug, Default)]
pub struct ThreadNames(FxHashMap<u32, String>);

impl ThreadNames {
    /// Those that the kernel saved.
    pub(super) fn saved_in(recording: &Recording) -> Self {
        Self(recording.threads().map(|(thread, name)| (thread, name.to_owned())).collect())
    }

    /// The thread's name: what events called it last, else what the kernel saved.
    #[must_use]
    pub fn of(&self, thread: u32) -> Option<&str> {
        self.0.get(&thread).map(String::as_str)
    }

    /// An event has the name of a thread. Idle threads share the id 0.
    pub(super) fn set(&mut self, thread: u32, comm: &Comm) {
        let end = comm.iter().position(|&byte| byte == 0).unwrap_or(COMM_BYTES);
        let name = String::from_utf8_lossy(comm.get(..end).unwrap_or(&[]));
        let known = self.0.get(&thread).is_some_and(|known| *known == name);
        if thread != 0 && !name.is_empty() && !known && self.0.len() < MOST_NAMES {
            self.0.insert(thread, name.into_owned());
        }
    }
}
