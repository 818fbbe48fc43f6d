//! A guest that can be recorded, before it is.

use std::fmt::Debug;
use std::time::Duration;

use os::folder::Folder;

use crate::ending::{Ending, StartLimit};
use crate::error::Result;
use crate::guest::recording::GuestRecording;
use crate::in_guests::InGuests;

/// A guest whose agent has answered: it can be recorded.
pub(crate) trait ReadyGuest: Debug + Send {
    /// The name that it is recorded under.
    fn name(&self) -> &str;

    /// Has it recorded under another name.
    fn rename(&mut self, name: String);

    /// How long it may take to begin, by default.
    fn begin_timeout(&self) -> Duration;

    /// Has it record, with its pages in a folder of the session at `to`. It has begun within `limit`, or its
    /// recording is over then.
    ///
    /// # Errors
    /// When its agent refuses, or does not say how its pages are to be read.
    fn begin(
        self: Box<Self>,
        what: &InGuests,
        host_clock: &str,
        to: &Folder,
        limit: &StartLimit,
        ending: &Ending,
    ) -> Result<GuestRecording>;
}
