//! Says on standard error what recordings lost, for results that have no place for it.

use std::path::Path;

use analyses::contents;
use sources::Recording;
use timeline::Losses;

use crate::say;

/// What each recording lost; none where nothing says that anything is missing.
#[must_use]
pub fn losses_of(recordings: &[Recording]) -> Vec<Losses> {
    recordings.iter().filter_map(contents::losses).collect()
}

/// Says what recordings lost, once they have been read.
pub fn say_losses(recordings: &[Recording]) {
    for recording in recordings {
        if let Some(losses) = contents::losses(recording) {
            say_losses_of(recording.path(), &losses);
        }
    }
}

/// Says what a recording lost.
pub fn say_losses_of(path: &Path, losses: &Losses) {
    for note in report::losses_notes(losses, 0) {
        say(&format!("{}: {}", path.display(), note.trim_start()));
    }
}
