//! A running recording's interface to the flight recorder.

use os::folder::Folder;
use tracefs::TraceSession;
use vms::Vm;

use super::{FOLDER, Recording};
use crate::ending::Stop;
use crate::error::RecordError;
use crate::guests::{self, SharedGuests};
use crate::rolling::Rolling;
use crate::session_folder::SessionFolder;

impl Recording {
    /// The kept segments; `None` if all pages are kept.
    pub(crate) fn rolling(&mut self) -> Option<&mut Rolling> {
        self.pages.rolling.as_mut()
    }

    /// The running trace session.
    pub(crate) fn tracing(&self) -> &TraceSession {
        &self.session
    }

    pub(crate) fn folder(&self) -> &SessionFolder {
        &self.to
    }

    /// The running VMs, or the recorded one.
    pub(crate) fn vms_now(&self) -> Vec<Vm> {
        if self.of_vm { self.vms.clone() } else { vms::running() }
    }

    /// Recorded guests.
    pub(crate) fn guests(&self) -> &SharedGuests {
        &self.guest_side.guests
    }

    /// Ends it from outside.
    pub(crate) fn outside(&self) -> &Stop {
        &self.outside
    }

    /// Ends it, and removes its pages.
    pub(crate) fn discard(mut self) -> Vec<String> {
        let to: Folder = (**self.folder()).clone();
        self.outside.end();
        let names = self.guest_names();
        let _ = self.guest_side.stop();
        drop(self.guest_side.guests.lock().end());
        let failed = self.pages.rolling.as_mut().map(Rolling::end).unwrap_or_default();
        // All threads have ended; drop removes the instance.
        drop(self);
        guests::forget(&names, &to);
        let removed = match to.place() {
            // Removed by another program.
            None => Some(RecordError::FolderRemoved { path: to.path().to_owned() }.to_string()),
            Some(_) => to.remove_all(FOLDER).err().map(|error| error.to_string()),
        };
        failed.into_iter().map(|error| error.to_string()).chain(removed).collect()
    }
}
