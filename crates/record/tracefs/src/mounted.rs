//! Finds or mounts tracefs, and reads and writes its files.

use std::ffi::CStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::error::{Result, TracefsError};
use crate::owner::{self, run_folder};
use crate::{in_use, instance, probes};

/// The usual mount point of tracefs.
const DEFAULT_PLACE: &str = "/sys/kernel/tracing";

/// A mounted tracefs. Drop unmounts it if this recording mounted it.
#[derive(Debug)]
pub struct Tracefs {
    root: PathBuf,
    own_mount: bool,
}

impl Tracefs {
    /// Finds the mounted tracefs, or mounts it in a new folder.
    ///
    /// # Errors
    /// When the kernel has none, or the user has no permission.
    pub fn find() -> Result<Self> {
        let usual = Path::new(DEFAULT_PLACE);
        if let Some(root) = mounted() {
            fs::read_dir(&root).map_err(not_allowed(&root))?;
            return Ok(Self { root, own_mount: false });
        }
        if !usual.is_dir() {
            return Err(TracefsError::NoTracefs);
        }
        // In a folder that only this user can enter, so that nobody can replace what is at this path.
        let name = own_mount(std::process::id());
        let run = run_folder()?;
        let root = run.path().join(&name);
        run.subfolder(&name).map_err(TracefsError::io("make", &root))?;
        let mounted = mount("hyperscope", &root, "tracefs", MountFlags::empty(), None::<&CStr>);
        if let Err(error) = mounted {
            let _ = fs::remove_dir(&root);
            return Err(not_allowed(&root)(error.into()));
        }
        Ok(Self { root, own_mount: true })
    }

    /// Removes leftovers of killed recorders that have no guard.
    pub fn remove_stale(&self) {
        instance::remove_stale(&self.root);
    }

    /// Removes what a dead recorder left: instances, probes, its mount. True if all is gone; instances with readers
    /// stay.
    #[must_use]
    pub(crate) fn remove_left_by(&self, pid: u32) -> bool {
        let is_gone = instance::remove_left_by(self, pid);
        probes::Probes::remove_of(&self.root, pid);
        if is_gone {
            if let Ok(run) = run_folder() {
                unmount_own(&run.path().join(own_mount(pid)));
            }
            owner::forget(pid);
        }
        is_gone
    }

    /// `remove_left_by`, but waits for readers as long as for an instance of this process.
    pub fn await_removal_of(&self, pid: u32) {
        in_use::until_gone(|| self.remove_left_by(pid));
    }

    /// Whether this recording mounted it.
    #[must_use]
    pub fn is_own_mount(&self) -> bool {
        self.own_mount
    }

    /// The mount point.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        if self.own_mount {
            unmount_own(&self.root);
        }
    }
}

/// Name of the folder where a process mounts tracefs.
fn own_mount(pid: u32) -> String {
    format!("tracefs-{pid}")
}

fn unmount_own(root: &Path) {
    if root.is_dir() {
        // A failed unmount has no remedy here.
        let _ = unmount(root, UnmountFlags::DETACH);
        let _ = fs::remove_dir(root);
    }
}

/// The first tracefs in the list of mounts.
fn mounted() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mut fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let found = fields.find(|fields| fields.get(2) == Some(&"tracefs"))?;
    Some(PathBuf::from(found.get(1)?.replace("\\040", " ")))
}

fn not_allowed(path: &Path) -> impl FnOnce(std::io::Error) -> TracefsError {
    let path = path.to_owned();
    move |source| match source.kind() {
        std::io::ErrorKind::PermissionDenied => TracefsError::NotAllowed,
        _ => TracefsError::Io { what: "use", path, source },
    }
}

/// Writes a tracefs file with a single write, as the kernel expects.
///
/// # Errors
/// When the kernel refuses.
pub fn write(path: &Path, text: &str) -> Result<()> {
    fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
        .map_err(TracefsError::io("write", path))
}

/// Appends a line to a tracefs file.
///
/// # Errors
/// When the kernel refuses.
pub fn append(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new().append(true).open(path)?;
    std::io::Write::write_all(&mut file, text.as_bytes())
}

/// Size of a read. The kernel returns `header_page` only for the first read, whatever its size (`show_header_file()` in
/// kernel/trace/trace_events.c), and the standard library begins with a short read if a file has no size.
const READ_BYTES: usize = 64 << 10;

/// Reads a tracefs file.
///
/// # Errors
/// When there is no such file.
pub fn read(path: &Path) -> Result<String> {
    let read = || {
        let mut file = fs::File::open(path)?;
        let mut text = Vec::new();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(text),
                read => text.extend_from_slice(buffer.get(..read).unwrap_or_default()),
            }
        }
    };
    let bytes = read().map_err(TracefsError::io("read", path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Names of the subfolders, in order.
///
/// # Errors
/// When the folder can't be read.
pub fn folders(path: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(path).map_err(TracefsError::io("read", path))?;
    let mut names: Vec<String> = entries
        .filter_map(std::result::Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}
