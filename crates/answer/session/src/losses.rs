//! Prints on standard error what recordings lost, for results that have no place for it.

use std::path::Path;

use analyses::contents;
use sources::Recording;
use timeline::Losses;

use crate::say;

/// The losses of each recording; recordings without any are left out.
#[must_use]
pub fn losses_of(recordings: &[Recording]) -> Vec<Losses> {
    recordings.iter().filter_map(contents::losses).collect()
}

/// Prints the losses of recordings, once they have been read.
pub fn say_losses(recordings: &[Recording]) {
    for recording in recordings {
        if let Some(losses) = contents::losses(recording) {
            say_losses_of(recording.path(), &losses);
        }
    }
}

/// Prints the losses of a recording.
pub fn say_losses_of(path: &Path, losses: &Losses) {
    for note in report::losses_notes(losses, 0) {
        say(&format!("{}: {}", path.display(), note.trim_start()));
    }
}
