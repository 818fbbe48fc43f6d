//! Recordings with the clocks that an analysis uses, and the alignments of guests.

use sources::Recording;

use crate::align::GuestAlignment;
use crate::machine_names::MachineName;

/// Recordings that are analysed together.
#[derive(Clone, Copy, Debug)]
pub struct View<'s> {
    pub recordings: &'s [Recording],
    /// Applied alignments of guests. Empty if each recording uses its own clock.
    pub guests: &'s [GuestAlignment],
}

impl<'s> View<'s> {
    /// A view of recordings whose guests use their hosts' clock.
    #[must_use]
    pub const fn new(recordings: &'s [Recording], guests: &'s [GuestAlignment]) -> Self {
        Self { recordings, guests }
    }

    /// A view of recordings that use their own clocks.
    #[must_use]
    pub const fn on_own_clocks(recordings: &'s [Recording]) -> Self {
        Self { recordings, guests: &[] }
    }

    /// Name of the machine of recording `at`.
    #[must_use]
    pub fn machine(self, at: usize) -> MachineName {
        MachineName::for_recording(at, self.recordings, self.guests)
    }

    /// Machine names by recording.
    pub fn machines(self) -> impl Iterator<Item = MachineName> + 's {
        (0..self.recordings.len()).map(move |at| self.machine(at))
    }

    /// Machine names by recording, as strings.
    #[must_use]
    pub fn machine_names(self) -> Vec<String> {
        self.machines().map(|machine| machine.name).collect()
    }

    /// The applied alignment of a guest's recording.
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

    /// Paths of the recordings, which are their names in reports.
    #[must_use]
    pub fn paths(self) -> Vec<String> {
        self.recordings.iter().map(|recording| recording.path().display().to_string()).collect()
    }

    /// Size of all recordings in bytes.
    #[must_use]
    pub fn stored_len(self) -> u64 {
        self.recordings.iter().map(Recording::stored_len).sum()
    }
}
