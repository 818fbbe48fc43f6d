//! Each operation on the files of a session fails in turn, and the plug is pulled behind each: what is
//! left can be read, and what is missing is reported.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use folder::{Observer, Operation};
use nix::errno::Errno;
use recorder::{Modes, Profile, RecordPlan, Recording, SessionFolder, Stop};

use crate::extent::extent;
use crate::marks::{assert_losses_reported, instance, marks, recording, write_marks};
use crate::tool::{left_in_tracefs, lock_tracing, wait_until};

/// Marks in a recording.
const MARKS: u64 = 2000;

/// Records this machine, in this process, with marks from the beginning to the end. How many the kernel
/// took, and whether all was written. `before_end` is given how many the kernel took.
fn record(
    session: &Path,
    observer: Arc<dyn Observer>,
    before_end: impl Fn(u64),
) -> (u64, Result<bool, String>) {
    let recorded = || -> recorder::Result<(u64, bool)> {
        let folder = SessionFolder::take_observed(session, Modes::default(), Some(observer))?;
        let plan = RecordPlan {
            events: vec!["sched_process_exec".into()],
            profile: None::<Profile>,
            buffer_kib: Some(64),
            flush: Some(Duration::from_millis(100)),
            ..RecordPlan::default()
        };
        let recording =
            Recording::begin(&plan, &folder, &Stop::new()?).inspect_err(|_| folder.abandon())?;
        let [written] = write_marks([&instance(std::process::id())], MARKS);
        before_end(written);
        let recorded = recording.end(&|_| ());
        folder.give_back();
        // What can't be written in the end is reported, and stays where it is.
        Ok((written, recorded.is_ok_and(|recorded| recorded.faults.is_empty())))
    };
    match recorded() {
        Ok((written, is_whole)) => (written, Ok(is_whole)),
        Err(error) => (0, Err(error.to_string())),
    }
}

/// Fails one operation, or all from one on.
#[derive(Debug)]
struct Failing {
    error: Errno,
    from: u64,
    is_lasting: bool,
    seen: AtomicU64,
}

impl Observer for Failing {
    fn before(&self, _: &Operation<'_>) -> io::Result<()> {
        let at = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
        if at == self.from || (self.is_lasting && at > self.from) {
            return Err(io::Error::from_raw_os_error(self.error as i32));
        }
        Ok(())
    }
}

/// Records with one operation that fails; how many there were.
fn fail(error: Errno, is_lasting: bool, from: u64) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("s");
    let failing = Arc::new(Failing { error, from, is_lasting, seen: AtomicU64::new(0) });
    let (written, came) = record(&session, failing.clone(), |_| ());
    let seen = failing.seen.load(Ordering::Relaxed);
    let what = format!("{error} at operation {from} of {seen}, lasting: {is_lasting}: {came:?}");
    assert_eq!(left_in_tracefs(), Vec::<String>::new(), "{what}");
    match &came {
        Err(text) => assert!(text.contains(session.to_str().unwrap()), "{what}"),
        Ok(_) => assert_losses_reported(&session, "host", written, &what),
    }
    if error == Errno::EINTR || from > seen {
        let host = recording(&session, "host").unwrap_or_else(|| panic!("{what}"));
        assert_eq!((came, marks(&host).len() as u64), (Ok(true), written), "{what}");
    }
    seen
}

/// Fails operations in turn; the samples are parts of all there are.
fn fail_each(error: Errno, is_lasting: bool) {
    let Some(_lock) = lock_tracing() else { return };
    let all = fail(error, is_lasting, u64::MAX);
    let step = extent((all / 4).max(1), 1);
    let mut from = extent(all / 5, 1);
    while from <= all {
        fail(error, is_lasting, from);
        from += step;
    }
    println!("{error}: {all} operations");
}

#[test]
fn a_disk_that_is_full_from_any_operation_on_leaves_what_was_written() {
    fail_each(Errno::ENOSPC, true);
}

#[test]
fn a_disk_that_fails_once_at_any_operation_leaves_what_is_reported() {
    fail_each(Errno::EIO, false);
}

#[test]
fn a_signal_at_any_operation_changes_nothing() {
    fail_each(Errno::EINTR, false);
}

/// What a disk has when the plug is pulled, if it keeps nothing but what was synced: contents of
/// files, and the lists of names of folders.
#[derive(Debug, Default)]
struct Durable {
    contents: BTreeMap<u64, Vec<u8>>,
    names: BTreeMap<u64, BTreeMap<String, Named>>,
}

/// What a name in a folder stands for.
#[derive(Clone, Debug)]
struct Named {
    number: u64,
    is_folder: bool,
}

impl Durable {
    /// What is there now of a file or folder becomes durable.
    fn sync(&mut self, path: &Path) {
        let Ok(metadata) = fs::metadata(path) else { return };
        if !metadata.is_dir() {
            self.contents.insert(metadata.ino(), fs::read(path).unwrap());
            return;
        }
        let entries = fs::read_dir(path).unwrap().flatten();
        let named = entries.filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            let named = Named { number: metadata.ino(), is_folder: metadata.is_dir() };
            Some((entry.file_name().into_string().ok()?, named))
        });
        self.names.insert(metadata.ino(), named.collect());
    }

    /// Makes the folder that would be found.
    fn restore(&self, number: u64, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for (name, named) in self.names.get(&number).into_iter().flatten() {
            let to = to.join(name);
            if named.is_folder {
                self.restore(named.number, &to);
            } else {
                let content = self.contents.get(&named.number).map_or(&[][..], Vec::as_slice);
                fs::write(to, content).unwrap();
            }
        }
    }
}

/// Pulls the plug behind each sync: in between a disk that keeps only what was synced does not change.
#[derive(Debug)]
struct Plug {
    session: PathBuf,
    restored: PathBuf,
    durable: Mutex<(Durable, Option<PathBuf>)>,
    /// Pulls that left a recording, and the marks that each had.
    readable: Mutex<Vec<u64>>,
}

impl Plug {
    /// The last sync has been done by now: looks at what would be left of it.
    fn pull(&self) {
        let mut guarded = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        let (durable, syncing) = &mut *guarded;
        let Some(path) = syncing.take() else { return };
        durable.sync(&path);
        let _ = fs::remove_dir_all(&self.restored);
        durable.restore(fs::metadata(&self.session).unwrap().ino(), &self.restored);
        let Some(host) = recording(&self.restored, "host") else { return };
        let found = marks(&host);
        let what = format!("plug pulled behind the sync of {}", path.display());
        // It is not said that nothing is missing unless the recording has come to its end.
        assert_losses_reported(&self.restored, "host", found.len() as u64, &what);
        let numbers: BTreeSet<u64> = (1..=found.len() as u64).collect();
        assert_eq!(found, numbers, "{what}");
        self.readable.lock().unwrap_or_else(PoisonError::into_inner).push(found.len() as u64);
    }
}

/// Pulls the plug from a thread of the test's: those of the recorder may start no programs.
#[derive(Debug)]
struct Puller {
    plug: Arc<Plug>,
    pulls: Mutex<(Sender<()>, Receiver<()>)>,
}

impl Puller {
    fn new(plug: Arc<Plug>) -> Self {
        let ((ask, asked), (answer, answered)) = (channel(), channel());
        let of_thread = plug.clone();
        thread::spawn(move || {
            while asked.recv().is_ok() {
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
        let pulls = self.pulls.lock().unwrap_or_else(PoisonError::into_inner);
        pulls.0.send(()).unwrap();
        pulls.1.recv().unwrap();
        drop(pulls);
        let plug = &self.plug;
        if let Operation::Sync(path) = operation {
            let mut durable = plug.durable.lock().unwrap_or_else(PoisonError::into_inner);
            durable.1 = Some(path.to_path_buf());
        }
        Ok(())
    }
}

#[test]
fn a_pulled_plug_leaves_what_was_synced() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let plug = Arc::new(Plug {
        session: folder.path().join("s"),
        restored: folder.path().join("restored"),
        durable: Mutex::default(),
        readable: Mutex::default(),
    });
    // All that was recorded by now is on the disk soon, long before the recording ends.
    let is_on_disk = |written| {
        wait_until("the disk has no more than this after a flush", || {
            let readable = plug.readable.lock().unwrap_or_else(PoisonError::into_inner);
            readable.last() == Some(&written)
        });
    };
    let (written, came) = record(&plug.session, Arc::new(Puller::new(plug.clone())), is_on_disk);
    assert_eq!(came, Ok(true));
    plug.pull();
    let readable = plug.readable.lock().unwrap_or_else(PoisonError::into_inner).clone();
    println!("recordings left by each sync, in marks: {readable:?}");
    // It can be read from its beginning on, and all of it once it has ended.
    assert!(readable.len() > 2, "{readable:?}");
    assert_eq!(readable.last(), Some(&written));
}
