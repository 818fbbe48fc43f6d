//! Recordings as an analysis reads them: on their current clocks, with the relation of guests to hosts.

use sources::Recording;

use crate::align::GuestAlignment;
use crate::machine_names::MachineName;

/// Recordings that are read as one.
#[derive(Clone, Copy, Debug)]
pub struct View<'s> {
    pub recordings: &'s [Recording],
    /// Guests whose alignment was applied. None if each recording uses its own clock.
    pub guests: &'s [GuestAlignment],
}

impl<'s> View<'s> {
    /// Recordings whose guests were brought to their hosts' clock.
    #[must_use]
    pub const fn new(recordings: &'s [Recording], guests: &'s [GuestAlignment]) -> Self {
        Self { recordings, guests }
    }

    /// Recordings that go by their own clocks.
    #[must_use]
    pub const fn on_own_clocks(recordings: &'s [Recording]) -> Self {
        Self { recordings, guests: &[] }
    }

    /// What the machine of a recording is called.
    #[must_use]
    pub fn machine(self, at: usize) -> MachineName {
        MachineName::for_recording(at, self.recordings, self.guests)
    }

    /// What the machine of each recording is called.
    pub fn machines(self) -> impl Iterator<Item = MachineName> + 's {
        (0..self.recordings.len()).map(move |at| self.machine(at))
    }

    /// By recording, what its machine is called.
    #[must_use]
    pub fn machine_names(self) -> Vec<String> {
        self.machines().map(|machine| machine.name).collect()
    }

    /// The alignment of a recording, where it was brought to a host's clock.
    #[must_use]
    pub fn alignment(self, at: usize) -> Option<&'s GuestAlignment> {
        self.guests.iter().find(|guest| guest.guest == at)
    }

    /// Whether a recording was made on a host, as far as it is known.
    #[must_use]
    pub fn is_host(self, at: usize) -> bool {
        let is_peer = self.recordings.get(at).is_some_and(|recording| recording.peer().is_some());
        !is_peer && self.alignment(at).is_none()
    }

    /// Recordings as they are named in reports: by their paths.
    #[must_use]
    pub fn paths(self) -> Vec<String> {
        self.recordings.iter().map(|recording| recording.path().display().to_string()).collect()
    }

    /// Bytes of all of it.
    #[must_use]
    pub fn stored_len(self) -> u64 {
        self.recordings.iter().map(Recording::stored_len).sum()
    }
}
