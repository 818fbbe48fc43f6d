//! An instance of tracefs: buffers and switches of this recording's own, gone when it ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Result, TracefsError};
use crate::in_use;
use crate::mounted::{self, Tracefs};
use crate::owner::{Owner, is_removable};
use crate::top_level;

/// What names of instances begin with; the recorder's process id follows.
const PREFIX: &str = "hyperscope-";

/// Default limit for all buffers of a machine.
const ALL_BUFFERS_KIB: u64 = 256 << 10;
/// A buffer is at least and at most so large.
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
    /// Says whose it is, as long as it is there. None: it is not this process's own.
    _owner: Option<Arc<Owner>>,
}

/// Whose an instance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// This recording's own: it goes when this is dropped.
    Own,
    /// The kernel's own buffers, as they are.
    Top,
    /// The same, borrowed by this process: they get back what they had.
    Borrowed(u32),
}

impl Instance {
    /// Makes an instance. Those whose owners are gone, and that belong to no session, are removed first.
    ///
    /// # Errors
    /// When this user may not, or has one already.
    pub fn make(tracefs: &Tracefs) -> Result<Self> {
        remove_stale(tracefs.root());
        Self::make_at(tracefs.root().join("instances").join(name(std::process::id())))
    }

    /// Makes one more instance of this process, for another purpose than recording.
    ///
    /// # Errors
    /// When this user may not.
    pub fn make_another(tracefs: &Tracefs) -> Result<Self> {
        Self::make_at(another(&tracefs.root().join("instances")))
    }

    fn make_at(path: PathBuf) -> Result<Self> {
        // Where no owner's file can be, as on a system without a writable /run, the process id says it.
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

    /// The instance of a recorder that is gone, if it left one.
    #[must_use]
    pub fn left_by(tracefs: &Tracefs, pid: u32) -> Option<Self> {
        if top_level::is_taken_by(pid) {
            return Some(Self::top(tracefs).borrowed(pid));
        }
        let path = tracefs.root().join("instances").join(name(pid));
        path.is_dir().then_some(Self { path, what: What::Own, _owner: None })
    }

    /// The kernel's own buffers, which are there from the moment it boots.
    #[must_use]
    pub fn top(tracefs: &Tracefs) -> Self {
        Self { path: tracefs.root().to_owned(), what: What::Top, _owner: None }
    }

    /// An instance of another owner, in its folder.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path, what: What::Top, _owner: None }
    }

    /// The kernel's own buffers, with what they get back when this is dropped noted by a process.
    pub(crate) fn borrowed(mut self, pid: u32) -> Self {
        self.what = What::Borrowed(pid);
        self
    }

    /// Leaves it unchanged for the next cleanup.
    pub fn keep(mut self) {
        self.what = What::Top;
    }

    /// Events that are on, as `SYSTEM:NAME`.
    ///
    /// # Errors
    /// When the instance is gone.
    pub fn enabled(&self) -> Result<Vec<String>> {
        Ok(self.get("set_event")?.lines().map(str::to_owned).collect())
    }

    /// A file or folder in it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether it can still be found: tracefs may be unmounted, and who holds none of its files can't keep others from
    /// removing it.
    pub(crate) fn is_there(&self) -> bool {
        self.file("tracing_on").exists()
    }

    /// Writes one of its files.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set(&self, name: &str, text: &str) -> Result<()> {
        mounted::write(&self.file(name), text)
    }

    /// Reads one of its files.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn get(&self, name: &str) -> Result<String> {
        mounted::read(&self.file(name))
    }

    /// Switches an event (`SYSTEM:NAME`) on.
    ///
    /// # Errors
    /// When there is no such event here.
    pub fn enable(&self, event: &str) -> Result<()> {
        let (system, name) = event.split_once(':').unwrap_or(("", event));
        self.set(&format!("events/{system}/{name}/enable"), "1")
    }

    /// Records of an event (`SYSTEM:NAME`) only those that a filter lets through.
    ///
    /// # Errors
    /// When there is no such event here, or the kernel can't read the filter.
    pub fn set_filter(&self, event: &str, filter: &str) -> Result<()> {
        let (system, name) = event.split_once(':').unwrap_or(("", event));
        self.set(&format!("events/{system}/{name}/filter"), filter)
    }

    /// Numbers of the CPUs it has buffers for, in order.
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

/// A name that no instance of this process has had, in this folder.
fn another(instances: &Path) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    instances.join(format!("{}-{number}", name(std::process::id())))
}

/// The recorder whose buffers an instance of this name is; further instances of it hold other things.
pub(crate) fn recorder_of(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.parse().ok()
}

pub(crate) fn name(pid: u32) -> String {
    format!("{PREFIX}{pid}")
}

/// Removes what recorders left that were killed: their instances and their probes.
pub(crate) fn remove_stale(tracefs: &Path) {
    top_level::remove_stale(tracefs);
    let Ok(names) = mounted::folders(&tracefs.join("instances")) else { return };
    for name in names {
        if owner(&name).is_some_and(is_removable) {
            // One that somebody uses stays as it is: process ids may be those of another namespace.
            let _ = fs::remove_dir(tracefs.join("instances").join(&name));
        }
    }
    crate::probes::remove_stale(tracefs);
}

/// Removes the instances of a recorder that is gone, and gives back what it borrowed; whether none is left.
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
