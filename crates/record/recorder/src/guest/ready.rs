//! A guest that is ready to be recorded.

use std::fmt::Debug;
use std::time::Duration;

use os::folder::Folder;

use crate::ending::{Ending, StartLimit};
use crate::error::Result;
use crate::guest::recording::GuestRecording;
use crate::in_guests::InGuests;

/// A guest whose agent has answered.
pub(crate) trait ReadyGuest: Debug + Send {
    /// The name of its recording.
    fn name(&self) -> &str;

    /// Changes the name of its recording.
    fn rename(&mut self, name: String);

    /// Default max time to begin.
    fn begin_timeout(&self) -> Duration;

    /// Starts the guest's recording, with pages in a folder of the session at `to`. It must begin within `limit`, or
    /// its recording is over.
    ///
    /// # Errors
    /// When its agent refuses, or does not send the texts that decode its pages.
    fn begin(
        self: Box<Self>,
        what: &InGuests,
        host_clock: &str,
        to: &Folder,
        limit: &StartLimit,
        ending: &Ending,
    ) -> Result<GuestRecording>;
}
