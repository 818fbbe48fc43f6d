//! A tracefs instance: buffers and settings of this recording, removed when it ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Result, TracefsError};
use crate::in_use;
use crate::mounted::{self, Tracefs};
use crate::owner::{Owner, is_removable};
use crate::top_level;

/// Prefix of instance names; the recorder's process id follows.
const PREFIX: &str = "hyperscope-";

/// Default limit for the buffers of all CPUs together.
const ALL_BUFFERS_KIB: u64 = 256 << 10;
/// Min and max size of a CPU's buffer.
const BUFFER_KIB: (u64, u64) = (1 << 10, 16 << 10);

/// Default buffer size per CPU.
#[must_use]
pub fn usual_buffer_kib(cpus: usize) -> u64 {
    let (min, max) = BUFFER_KIB;
    (ALL_BUFFERS_KIB / cpus.max(1) as u64).clamp(min, max)
}

#[derive(Debug)]
pub struct Instance {
    path: PathBuf,
    what: What,
    /// Marks this process as the owner while it exists. `None`: the instance belongs to another process, or the owner's
    /// file can't be made.
    _owner: Option<Arc<Owner>>,
}

/// Who owns an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// This recording: drop removes the instance.
    Own,
    /// Nobody: drop leaves it alone.
    Top,
    /// The top-level buffers, borrowed by this process: drop restores their settings.
    Borrowed(u32),
}

impl Instance {
    /// Makes an instance. First removes stale instances that belong to no session.
    ///
    /// # Errors
    /// When the user has no permission, or has an instance already.
    pub fn make(tracefs: &Tracefs) -> Result<Self> {
        remove_stale(tracefs.root());
        Self::make_at(tracefs.root().join("instances").join(name(std::process::id())))
    }

    /// Makes another instance of this process, for a purpose other than recording.
    ///
    /// # Errors
    /// When the user has no permission.
    pub fn make_another(tracefs: &Tracefs) -> Result<Self> {
        Self::make_at(another(&tracefs.root().join("instances")))
    }

    fn make_at(path: PathBuf) -> Result<Self> {
        // Without an owner's file, as on a system without a writable /run, the process id in the name identifies the
        // owner.
        let owner = Owner::this_process().ok();
        let another = || another(path.parent().unwrap_or(&path));
        let path = in_use::make(path.clone(), another).map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => TracefsError::NotAllowed,
            _ => TracefsError::io("make", &path)(error),
        })?;
        let instance = Self { path, what: What::Own, _owner: owner };
        instance.set("tracing_on", "0")?;
        Ok(instance)
    }

    /// The instance that a dead recorder left, if any.
    #[must_use]
    pub fn left_by(tracefs: &Tracefs, pid: u32) -> Option<Self> {
        if top_level::is_taken_by(pid) {
            return Some(Self::top(tracefs).borrowed(pid));
        }
        let path = tracefs.root().join("instances").join(name(pid));
        path.is_dir().then_some(Self { path, what: What::Own, _owner: None })
    }

    /// The top-level buffers, which exist from boot on.
    #[must_use]
    pub fn top(tracefs: &Tracefs) -> Self {
        Self { path: tracefs.root().to_owned(), what: What::Top, _owner: None }
    }

    /// An instance of another owner, by its folder.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path, what: What::Top, _owner: None }
    }

    /// The top-level buffers; drop restores the settings in the note of `pid`.
    pub(crate) fn borrowed(mut self, pid: u32) -> Self {
        self.what = What::Borrowed(pid);
        self
    }

    /// Leaves the instance unchanged for the next cleanup.
    pub fn keep(mut self) {
        self.what = What::Top;
    }

    /// Enabled events, as `SYSTEM:NAME`.
    ///
    /// # Errors
    /// When the instance is gone.
    pub fn enabled(&self) -> Result<Vec<String>> {
        Ok(self.get("set_event")?.lines().map(str::to_owned).collect())
    }

    /// Path of a file or folder in the instance.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether the instance still exists: tracefs may be unmounted, and a process without open files can't keep others
    /// from removing it.
    pub(crate) fn is_there(&self) -> bool {
        self.file("tracing_on").exists()
    }

    /// Writes a file of the instance.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set(&self, name: &str, text: &str) -> Result<()> {
        mounted::write(&self.file(name), text)
    }

    /// Reads a file of the instance.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn get(&self, name: &str) -> Result<String> {
        mounted::read(&self.file(name))
    }

    /// Enables an event (`SYSTEM:NAME`).
    ///
    /// # Errors
    /// When there is no such event.
    pub fn enable(&self, event: &str) -> Result<()> {
        let (system, name) = event.split_once(':').unwrap_or(("", event));
        self.set(&format!("events/{system}/{name}/enable"), "1")
    }

    /// Sets the filter of an event (`SYSTEM:NAME`).
    ///
    /// # Errors
    /// When there is no such event, or the kernel rejects the filter.
    pub fn set_filter(&self, event: &str, filter: &str) -> Result<()> {
        let (system, name) = event.split_once(':').unwrap_or(("", event));
        self.set(&format!("events/{system}/{name}/filter"), filter)
    }

    /// Numbers of the CPUs that have buffers, in order.
    ///
    /// # Errors
    /// When the instance is gone.
    pub fn cpus(&self) -> Result<Vec<u32>> {
        let names = mounted::folders(&self.file("per_cpu"))?;
        let mut cpus: Vec<u32> =
            names.iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
        cpus.sort_unstable();
        Ok(cpus)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        match self.what {
            What::Own => in_use::remove_own(&self.path),
            What::Top => {}
            What::Borrowed(pid) => top_level::give_back(&self.path, pid),
        }
    }
}

/// A name that no instance of this process has had in this folder.
fn another(instances: &Path) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    instances.join(format!("{}-{number}", name(std::process::id())))
}

/// Process id of the recorder that owns the instance of this name. A recorder's further instances have other names and
/// no recorded events.
pub(crate) fn recorder_of(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.parse().ok()
}

pub(crate) fn name(pid: u32) -> String {
    format!("{PREFIX}{pid}")
}

/// Removes the instances and probes of killed recorders.
pub(crate) fn remove_stale(tracefs: &Path) {
    top_level::remove_stale(tracefs);
    let Ok(names) = mounted::folders(&tracefs.join("instances")) else { return };
    for name in names {
        if owner(&name).is_some_and(is_removable) {
            // The kernel keeps an instance that is in use: the process id may belong to another PID namespace.
            let _ = fs::remove_dir(tracefs.join("instances").join(&name));
        }
    }
    crate::probes::remove_stale(tracefs);
}

/// Removes a dead recorder's instances and restores the settings that it changed; true if nothing is left.
pub(crate) fn remove_left_by(tracefs: &Tracefs, pid: u32) -> bool {
    if top_level::is_taken_by(pid) {
        top_level::give_back(tracefs.root(), pid);
    }
    let folder = tracefs.root().join("instances");
    let names = mounted::folders(&folder).unwrap_or_default();
    let leftovers = names.iter().filter(|name| owner(name) == Some(pid));
    leftovers.fold(true, |all, name| {
        let path = folder.join(name);
        in_use::remove(&path) && all
    })
}

/// The process id in the name of an instance: PID or PID-NUMBER follow the prefix.
fn owner(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

/// Process ids of current and former owners of instances.
pub(crate) fn owners(tracefs: &Path) -> Vec<u32> {
    let names = mounted::folders(&tracefs.join("instances")).unwrap_or_default();
    names.iter().filter_map(|name| owner(name)).collect()
}
