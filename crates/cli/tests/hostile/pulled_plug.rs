//! Power fails after each operation on the files of a session: the rest is readable, and missing
//! events are reported.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use os::folder::{Observer, Operation};
use parking_lot::{Mutex, MutexGuard};

use crate::extent::extent;
use crate::failing_disk::{OwnGuest, record};
use crate::marks::{assert_losses_reported, marks_if_readable, recording};
use crate::tool::{lock_tracing, start_programs};

/// Timeout for recorded events to reach the disk here, where every sync is examined.
const LONG: Duration = Duration::from_secs(120);

/// The written data that survives a power failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    /// Only synced data: contents of files, and lists of names in folders.
    Synced,
    /// All names, which journals keep in order, but only synced contents.
    Names,
    /// Everything written so far, in order.
    Everything,
}

/// The durable data so far.
#[derive(Debug, Default)]
struct Durable {
    contents: BTreeMap<u64, Vec<u8>>,
    names: BTreeMap<u64, BTreeMap<String, Named>>,
}

/// The target of a name in a folder.
#[derive(Clone, Debug)]
struct Named {
    number: u64,
    is_folder: bool,
}

/// The current names in the folder.
fn names(folder: &Path) -> BTreeMap<String, Named> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| {
        let metadata = entry.metadata().ok()?;
        let named = Named { number: metadata.ino(), is_folder: metadata.is_dir() };
        Some((entry.file_name().into_string().ok()?, named))
    });
    named.collect()
}

impl Durable {
    /// Makes the current content of a file or folder durable.
    fn sync(&mut self, path: &Path) {
        let Ok(metadata) = fs::metadata(path) else { return };
        if metadata.is_dir() {
            self.names.insert(metadata.ino(), names(path));
        } else {
            self.contents.insert(metadata.ino(), fs::read(path).unwrap());
        }
    }

    /// Creates the folder that would be found in place of `live`, which has this number.
    fn restore(&self, keeps: Keeps, (live, number): (&Path, u64), to: &Path) {
        fs::create_dir_all(to).unwrap();
        let names = match keeps {
            Keeps::Synced => self.names.get(&number).cloned().unwrap_or_default(),
            Keeps::Names | Keeps::Everything => names(live),
        };
        for (name, named) in names {
            let (live, to) = (live.join(&name), to.join(&name));
            if named.is_folder {
                self.restore(keeps, (&live, named.number), &to);
            } else if keeps == Keeps::Everything {
                let _ = fs::copy(live, to);
            } else {
                let content = self.contents.get(&named.number).map_or(&[][..], Vec::as_slice);
                fs::write(to, content).unwrap();
            }
        }
    }
}

/// Simulates power failures after operations: after each sync, or after every n-th operation.
#[derive(Debug)]
struct Plug {
    keeps: Keeps,
    /// The machine whose recording is checked.
    machine: &'static str,
    session: PathBuf,
    restored: PathBuf,
    state: Mutex<PlugState>,
}

#[derive(Debug, Default)]
struct PlugState {
    durable: Durable,
    /// The file that the last operation syncs.
    syncing: Option<PathBuf>,
    operations: u64,
    /// The number of marks after each failure that left a recording.
    readable: Vec<u64>,
}

impl Plug {
    fn state(&self) -> MutexGuard<'_, PlugState> {
        self.state.lock()
    }

    /// The last operation is complete: checks its durable state.
    fn pull(&self) {
        let mut state = self.state();
        let synced = state.syncing.take();
        if let Some(path) = &synced {
            state.durable.sync(path);
        }
        state.operations += 1;
        let is_looked_at = match self.keeps {
            Keeps::Synced => synced.is_some(),
            Keeps::Names | Keeps::Everything => state.operations.is_multiple_of(extent(20, 1)),
        };
        if is_looked_at {
            self.look(&mut state, synced.as_deref());
        }
    }

    fn look(&self, state: &mut PlugState, synced: Option<&Path>) {
        let _ = fs::remove_dir_all(&self.restored);
        let Ok(session) = fs::metadata(&self.session) else { return };
        state.durable.restore(self.keeps, (&self.session, session.ino()), &self.restored);
        let Some(recording) = recording(&self.restored, self.machine) else { return };
        let what = format!(
            "plug of a disk that keeps {:?} pulled after operation {}, synced {synced:?}",
            self.keeps, state.operations
        );
        let max = state.readable.last().copied();
        let Some(found) = marks_if_readable(&recording) else {
            // The files for reading pages may be missing at the beginning, before any marks.
            return assert!(self.keeps != Keeps::Synced && max.unwrap_or(0) == 0, "{what}");
        };
        let count = found.len() as u64;
        // Losses are unknown unless the recording is complete.
        assert_losses_reported(&self.restored, self.machine, count, &what);
        assert_eq!(found, (1..=count).collect::<BTreeSet<u64>>(), "{what}");
        assert!(Some(count) >= max, "{what}: {max:?} marks were there before, now {count}");
        state.readable.push(count);
    }
}

/// Checks from a thread of the test: the recorder's threads may start no programs.
#[derive(Debug)]
struct Puller {
    plug: Arc<Plug>,
    pulls: Mutex<(Sender<()>, Receiver<()>)>,
}

impl Puller {
    fn new(plug: Arc<Plug>) -> Self {
        let ((ask, requests), (answer, answered)) = (channel(), channel());
        let of_thread = plug.clone();
        thread::spawn(move || {
            while requests.recv().is_ok() {
                of_thread.pull();
                if answer.send(()).is_err() {
                    break;
                }
            }
        });
        Self { plug, pulls: Mutex::new((ask, answered)) }
    }
}

impl Observer for Puller {
    fn before(&self, operation: &Operation<'_>) -> io::Result<()> {
        let pulls = self.pulls.lock();
        let is_pulled = pulls.0.send(()).is_ok() && pulls.1.recv().is_ok();
        assert!(is_pulled, "the thread that pulls has panicked");
        if let Operation::Sync(path) = operation {
            self.plug.state().syncing = Some(path.to_path_buf());
        }
        Ok(())
    }
}

/// Simulates power failures during a recording of this machine, or of it as its own guest.
fn pull(keeps: Keeps, machine: &'static str) {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let guest = (machine != "host").then(|| OwnGuest::start(folder.path()));
    let plug = Arc::new(Plug {
        keeps,
        machine,
        session: folder.path().join("s"),
        restored: folder.path().join("restored"),
        state: Mutex::default(),
    });
    // Recorded events reach the disk soon, long before the recording ends.
    let is_on_disk = |written| {
        let deadline = Instant::now() + LONG;
        while keeps != Keeps::Everything && plug.state().readable.last() != Some(&written) {
            let readable = plug.state().readable.clone();
            assert!(Instant::now() < deadline, "the disk has no more by now: {readable:?}");
            // The state after a sync is checked at a later operation, so events must continue.
            start_programs(1);
            thread::sleep(Duration::from_millis(10));
        }
    };
    let puller = Arc::new(Puller::new(plug.clone()));
    let (written, came) = record(&plug.session, guest.as_ref(), puller, is_on_disk);
    assert_eq!(came, Ok(true));
    let mut state = plug.state();
    plug.look(&mut state, None);
    println!("{keeps:?}: marks left of {written}: {:?}", state.readable);
    // It is readable from its beginning, and completely once it has ended.
    assert!(state.readable.len() > 2, "{:?}", state.readable);
    assert_eq!(state.readable.last(), Some(&written));
}

#[test]
fn a_pulled_plug_leaves_what_was_synced() {
    pull(Keeps::Synced, "host");
}

#[test]
fn a_pulled_plug_leaves_what_was_synced_of_a_guest() {
    pull(Keeps::Synced, "guest-g");
}

#[test]
fn a_disk_that_kept_names_without_contents_leaves_what_was_synced() {
    pull(Keeps::Names, "host");
}

#[test]
fn every_prefix_of_the_writes_can_be_read() {
    pull(Keeps::Everything, "host");
    pull(Keeps::Everything, "guest-g");
}
