//! Leftovers of owners that ended, and the process that cleans them up.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;

use os::folder::Folder;
use rustix::fs::FlockOperation;

use super::{Look, SessionNote, is_no_process, look, run_folder};
use crate::error::Result;
use crate::instance::{self, Instance};
use crate::mounted::Tracefs;

/// What a dead owner left. While this exists, no other process cleans it up.
#[derive(Debug)]
pub struct LeftOver {
    pid: u32,
    session: Option<SessionNote>,
    /// The folder of the owner's file, and the locked file. `None`: the owner has no file, as in earlier versions.
    file: Option<(Folder, File)>,
}

impl LeftOver {
    /// The leftovers of all dead owners.
    ///
    /// # Errors
    /// When the folder of the owners' files can't be used.
    pub fn all(tracefs: &Tracefs) -> Result<Vec<Self>> {
        let folder = run_folder()?;
        let names = folder.names().unwrap_or_default();
        let noted = names.iter().filter_map(|name| name.parse().ok());
        let pids: BTreeSet<u32> = noted.chain(instance::owners(tracefs.root())).collect();
        let left_over = |pid| Self::look(&folder, pid, FlockOperation::NonBlockingLockExclusive);
        Ok(pids.into_iter().filter_map(left_over).collect())
    }

    /// Waits until the owner with this process id ends, and returns its leftovers.
    ///
    /// # Errors
    /// When the folder of the owners' files can't be used.
    pub fn wait_for(pid: u32) -> Result<Option<Self>> {
        Ok(Self::look(&run_folder()?, pid, FlockOperation::LockExclusive))
    }

    fn look(folder: &Folder, pid: u32, how: FlockOperation) -> Option<Self> {
        match look(folder, &pid.to_string(), how) {
            Look::Lives => None,
            Look::Gone(file, note) => {
                Some(Self { pid, session: note.session, file: Some((folder.clone(), file)) })
            }
            Look::Unknown => {
                // This process has an owner's file before it has instances.
                let is_gone = pid == std::process::id() || is_no_process(pid);
                is_gone.then_some(Self { pid, session: None, file: None })
            }
        }
    }

    /// The owner's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The session that the owner recorded into.
    #[must_use]
    pub fn session(&self) -> Option<&SessionNote> {
        self.session.as_ref()
    }

    /// Whether the owner has a note: a note without a session means that nothing has to be kept.
    #[must_use]
    pub fn is_noted(&self) -> bool {
        self.file.is_some()
    }

    /// Its first instance, or the top-level buffers that it borrowed.
    #[must_use]
    pub fn instance(&self, tracefs: &Tracefs) -> Option<Instance> {
        Instance::left_by(tracefs, self.pid)
    }

    /// Whether a visible process has files of its instance open.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        let folder = format!("/instances/{}", instance::name(self.pid));
        let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
        let processes = entries(Path::new("/proc"));
        let mut files = processes.flat_map(|process| entries(&process.path().join("fd")));
        files.any(|file| {
            let path = fs::read_link(file.path()).unwrap_or_default();
            path.to_str().is_some_and(|path| {
                path.split_once(&folder)
                    .is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with(['/', '-']))
            })
        })
    }

    /// Removes everything that the owner left, and its note. Instances with readers stay for the next cleanup.
    pub fn remove(self, tracefs: &Tracefs) {
        if !tracefs.remove_left_by(self.pid) {
            return;
        }
        if let Some((folder, file)) = &self.file {
            let name = self.pid.to_string();
            if folder.is_still(&name, file) {
                // A file that stays is found again by the next cleanup, with nothing left to do.
                let _ = folder.remove(&name);
            }
        }
    }
}
