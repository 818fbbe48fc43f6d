//! Whether a recording's formats show which events were enabled.

use std::collections::BTreeSet;

use crate::Recording;

/// A recording with more systems has the formats of the whole kernel, not only of enabled events:
/// kernels have at least 60 systems, and no user selects so many.
const MAX_CHOSEN_SYSTEMS: usize = 16;

impl Recording {
    /// Whether the events with formats were enabled, even if none occurred. Recorders store the
    /// formats of enabled events; but if a recorder stores the formats of the whole kernel, they do
    /// not show which events were enabled.
    #[must_use]
    pub fn formats_say_what_was_on(&self) -> bool {
        let systems = self.formats().iter().map(|(_, format)| format.system());
        systems.collect::<BTreeSet<_>>().len() <= MAX_CHOSEN_SYSTEMS
    }
}
