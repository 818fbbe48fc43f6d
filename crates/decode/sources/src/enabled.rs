//! Whether a recording says by its formats which events were on.

use std::collections::BTreeSet;

use crate::Recording;

/// A recording with formats of more systems has those of the whole kernel, not only those of the enabled
/// events: kernels have at least 60 systems, and no user names that many.
const MAX_CHOSEN_SYSTEMS: usize = 16;

impl Recording {
    /// Whether events with a format were on, though none may have come. Recorders store the formats of
    /// the events that they enable; where the formats of a whole kernel are stored, they say nothing.
    #[must_use]
    pub fn formats_say_what_was_on(&self) -> bool {
        let systems = self.formats().iter().map(|(_, format)| format.system());
        systems.collect::<BTreeSet<_>>().len() <= MAX_CHOSEN_SYSTEMS
    }
}
