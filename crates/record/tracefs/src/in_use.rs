//! Ended instances of this process that can't be removed yet, because another process has one of their files open.
//!
//! The kernel refuses to remove an instance with open files (`EBUSY`): one administrator who reads its `trace_pipe` is
//! enough. A thread retries until the instance is gone or [`REMOVING`] is over. Then the next recording of this
//! process, or its guard, removes it.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::mounted;

/// Max time to wait for an instance.
const REMOVING: Duration = Duration::from_secs(20);
/// Time between two tries.
const BEFORE_NEXT_TRY: Duration = Duration::from_millis(20);

/// The remaining instances, and whether a thread tries to remove them. Code that removes or makes an instance of this
/// process holds the lock, so that the thread never removes a new instance of the same name.
static IN_USE: Mutex<InUse> = Mutex::new(InUse { paths: Vec::new(), has_thread: false });

#[derive(Debug)]
struct InUse {
    paths: Vec<PathBuf>,
    has_thread: bool,
}

impl InUse {
    /// Tries to remove each; true if all are gone.
    fn remove(&mut self) -> bool {
        self.paths.retain(|path| !remove(path));
        self.paths.is_empty()
    }
}

/// Disables an instance's events and removes it; true if it is gone.
pub(crate) fn remove(path: &Path) -> bool {
    let _ = mounted::write(&path.join("events/enable"), "0");
    let _ = fs::remove_dir(path);
    !path.exists()
}

/// Removes an instance of this process now, or later if it is in use.
pub(crate) fn remove_own(path: &Path) {
    let mut in_use = IN_USE.lock();
    if remove(path) {
        return;
    }
    in_use.paths.push(path.to_owned());
    if !in_use.has_thread {
        // Without a thread, the next recording removes it.
        in_use.has_thread =
            thread::Builder::new().name("instances".into()).spawn(remove_all).is_ok();
    }
}

/// Makes the folder of an instance; uses another name if the last instance of this name is still in use. Returns the
/// path.
pub(crate) fn make(path: PathBuf, another: impl Fn() -> PathBuf) -> std::io::Result<PathBuf> {
    let mut in_use = IN_USE.lock();
    in_use.remove();
    let path = if in_use.paths.contains(&path) { another() } else { path };
    fs::create_dir(&path).map(|()| path)
}

/// Retries until another process's leftovers are gone, for at most [`REMOVING`].
pub(crate) fn until_gone(mut is_gone: impl FnMut() -> bool) {
    let end = Instant::now() + REMOVING;
    while !is_gone() && Instant::now() < end {
        thread::sleep(BEFORE_NEXT_TRY);
    }
}

/// Retries until all are gone, for at most [`REMOVING`]. Does not use [`until_gone`]: `has_thread` must change under
/// the same lock as the list.
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
