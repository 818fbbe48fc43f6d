//! Recording variants for a guest that reports its events by hypercall: how much data the host stores.

use super::tracer::{ARGUMENTS, DataPath, FRAMES, InGuest, Module, OnHost, Setup};

/// Events for complete data about an exit.
const EXITS: &[&str] = &["kvm:kvm_exit", "kvm:kvm_hypercall", "kvm:kvm_entry"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordingVariant {
    events: &'static [&'static str],
    packed: bool,
}

impl RecordingVariant {
    /// All variants, the simplest first: the others are compared with it.
    pub(crate) const ALL: [Self; 4] = [
        Self { events: EXITS, packed: false },
        Self { events: FRAMES, packed: false },
        Self { events: EXITS, packed: true },
        Self { events: FRAMES, packed: true },
    ];

    pub(crate) fn is_packed(self) -> bool {
        self.packed
    }

    pub(crate) fn recorded(self) -> &'static str {
        if self.events.len() > 1 { "exit, hypercall and entry" } else { "hypercall alone" }
    }

    pub(crate) fn setup(self) -> Setup {
        let events = u32::from(!self.packed);
        let module = Module { data_path: DataPath::Send, events, words: ARGUMENTS };
        Setup { guest: InGuest::Module(module), host: OnHost::Recorder(self.events) }
    }
}
