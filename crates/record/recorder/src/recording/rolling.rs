//! What a flight recorder needs of a recording that goes on.

use os::folder::Folder;
use tracefs::TraceSession;
use vms::Vm;

use super::{FOLDER, Recording};
use crate::ending::Stop;
use crate::error::RecordError;
use crate::flight::Rolling;
use crate::guests::{self, SharedGuests};
use crate::session_folder::SessionFolder;

impl Recording {
    /// The pages that are kept; none: it keeps all of them.
    pub(crate) fn rolling(&mut self) -> Option<&mut Rolling> {
        self.pages.rolling.as_mut()
    }

    /// The tracing that goes on.
    pub(crate) fn tracing(&self) -> &TraceSession {
        &self.session
    }

    pub(crate) fn folder(&self) -> &SessionFolder {
        &self.to
    }

    /// VMs that run now, or the one that is recorded.
    pub(crate) fn vms_now(&self) -> Vec<Vm> {
        if self.of_vm { self.vms.clone() } else { vms::running() }
    }

    /// Guests that are recorded, too.
    pub(crate) fn guests(&self) -> &SharedGuests {
        &self.guest_side.guests
    }

    /// Who ends it from outside.
    pub(crate) fn outside(&self) -> &Stop {
        &self.outside
    }

    /// Ends it, and leaves nothing of what it kept.
    pub(crate) fn discard(mut self) -> Vec<String> {
        let to: Folder = (**self.folder()).clone();
        self.outside.end();
        let names = self.guest_names();
        let _ = self.guest_side.stop();
        drop(self.guest_side.guests.lock().end());
        let failed = self.pages.rolling.as_mut().map(Rolling::end).unwrap_or_default();
        // Threads have ended; the instance goes now.
        drop(self);
        guests::forget(&names, &to);
        let removed = match to.place() {
            // With what was in it.
            None => Some(RecordError::FolderRemoved { path: to.path().to_owned() }.to_string()),
            Some(_) => to.remove_all(FOLDER).err().map(|error| error.to_string()),
        };
        failed.into_iter().map(|error| error.to_string()).chain(removed).collect()
    }
}
