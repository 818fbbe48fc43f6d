//! Ended instances of this process that can't be removed yet, because another process has a file of
//! theirs open.
//!
//! The kernel removes no instance whose files are open (`EBUSY`): an administrator who reads its
//! `trace_pipe` is enough. A thread tries again until it is gone or [`REMOVING`] is over; what is left then
//! goes with the next recording of this process, or with its guard.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::mounted;

/// How long an instance is waited for.
const REMOVING: Duration = Duration::from_secs(20);
/// How long after one try the next is made.
const BEFORE_NEXT_TRY: Duration = Duration::from_millis(20);

/// Those that are still there, and whether a thread tries to remove them. Whoever removes or makes an
/// instance of this process holds the lock: none is made under a name that the thread is about to remove.
static IN_USE: Mutex<InUse> = Mutex::new(InUse { paths: Vec::new(), has_thread: false });

#[derive(Debug)]
struct InUse {
    paths: Vec<PathBuf>,
    has_thread: bool,
}

impl InUse {
    /// Tries to remove each; whether none is left.
    fn remove(&mut self) -> bool {
        self.paths.retain(|path| !remove(path));
        self.paths.is_empty()
    }
}

/// Switches an instance's events off and removes it; whether it is gone.
pub(crate) fn remove(path: &Path) -> bool {
    let _ = mounted::write(&path.join("events/enable"), "0");
    let _ = fs::remove_dir(path);
    !path.exists()
}

/// Removes an instance of this process, later if it is in use.
pub(crate) fn remove_own(path: &Path) {
    let mut in_use = IN_USE.lock();
    if remove(path) {
        return;
    }
    in_use.paths.push(path.to_owned());
    if !in_use.has_thread {
        // Without a thread it goes with the next recording.
        in_use.has_thread =
            thread::Builder::new().name("instances".into()).spawn(remove_all).is_ok();
    }
}

/// Makes the folder of an instance, under another name if the last one of this name is still in use;
/// returns which.
pub(crate) fn make(path: PathBuf, another: impl Fn() -> PathBuf) -> std::io::Result<PathBuf> {
    let mut in_use = IN_USE.lock();
    in_use.remove();
    let path = if in_use.paths.contains(&path) { another() } else { path };
    fs::create_dir(&path).map(|()| path)
}

/// Tries to remove what another process left until it is gone, or for long enough.
pub(crate) fn until_gone(mut is_gone: impl FnMut() -> bool) {
    let end = Instant::now() + REMOVING;
    while !is_gone() && Instant::now() < end {
        thread::sleep(BEFORE_NEXT_TRY);
    }
}

/// Tries until all are gone, or for long enough. Not [`until_gone`]: whether it still tries changes with the
/// list, under one lock.
fn remove_all() {
    let end = Instant::now() + REMOVING;
    loop {
        thread::sleep(BEFORE_NEXT_TRY);
        let mut in_use = IN_USE.lock();
        if in_use.remove() || Instant::now() > end {
            in_use.has_thread = false;
            return;
        }
    }
}
