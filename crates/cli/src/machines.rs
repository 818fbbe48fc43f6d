//! The machines that events were recorded on, as tables and lists of events have them.

use analyses::align::GuestAlignment;
use analyses::machine_names::MachineName;
use report::events::Machine;
use sources::Recording;

/// The machines of all recordings.
pub(crate) fn machines(all: &[Recording], guests: &[GuestAlignment]) -> Vec<Machine> {
    let machine = |at| {
        let MachineName { name, is_guest } = MachineName::of(at, all, guests);
        Machine { name, level: u32::from(is_guest), threads: None }
    };
    (0..all.len()).map(machine).collect()
}
