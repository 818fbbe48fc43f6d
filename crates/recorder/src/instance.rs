//! An instance of tracefs: buffers and switches of this recording's own, gone when it ends.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, test_kill_process};

use crate::error::{RecordError, Result};
use crate::tracefs::{self, Tracefs};

/// What names of instances begin with; the recorder's process id follows.
const PREFIX: &str = "hyperscope-";

/// An instance.
#[derive(Debug)]
pub(crate) struct Instance {
    path: PathBuf,
}

impl Instance {
    /// Makes an instance. Those whose recorders are gone are removed first.
    pub(crate) fn make(tracefs: &Tracefs) -> Result<Self> {
        remove_stale(tracefs.root());
        let path = tracefs.root().join("instances").join(name(std::process::id()));
        fs::create_dir(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => RecordError::NotAllowed,
            _ => RecordError::io("make", &path)(error),
        })?;
        let instance = Self { path };
        instance.set("tracing_on", "0")?;
        Ok(instance)
    }

    /// The instance of a recorder that is gone, if it left one.
    pub(crate) fn of(tracefs: &Tracefs, pid: u32) -> Option<Self> {
        let path = tracefs.root().join("instances").join(name(pid));
        path.is_dir().then_some(Self { path })
    }

    /// A file or folder in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes one of its files.
    pub(crate) fn set(&self, name: &str, text: &str) -> Result<()> {
        tracefs::write(&self.file(name), text)
    }

    /// Reads one of its files.
    pub(crate) fn get(&self, name: &str) -> Result<String> {
        tracefs::read(&self.file(name))
    }

    /// Numbers of the CPUs it has buffers for, in order.
    pub(crate) fn cpus(&self) -> Result<Vec<u32>> {
        let names = tracefs::folders(&self.file("per_cpu"))?;
        let mut cpus: Vec<u32> =
            names.iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
        cpus.sort_unstable();
        Ok(cpus)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn name(pid: u32) -> String {
    format!("{PREFIX}{pid}")
}

/// Removes what recorders left that were killed: their instances and their probes.
pub(crate) fn remove_stale(tracefs: &Path) {
    let Ok(names) = tracefs::folders(&tracefs.join("instances")) else { return };
    for name in names {
        let pid =
            name.strip_prefix(PREFIX).and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
        if pid.is_some_and(|pid| test_kill_process(pid).is_err()) {
            remove(&tracefs.join("instances").join(&name));
        }
    }
    crate::probes::remove_stale(tracefs);
}

/// Removes an instance; its events are off then. One that is read by somebody else stays.
fn remove(path: &Path) {
    let _ = tracefs::write(&path.join("events/enable"), "0");
    let _ = fs::remove_dir(path);
}
