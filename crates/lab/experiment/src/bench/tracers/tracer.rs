//! Tracers, and their steps.
//!
//! The steps of a tracer form a ladder: each does what the previous one does, and one thing more. The additional time
//! of a step is the cost of that thing, so all parts add up to the total.

use lab::Tool;
use serde::{Serialize, Serializer};

/// A way to trace a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracer {
    /// The guest's ftrace, to its ring buffer.
    Ftrace,
    /// `perf record` in the guest, to its buffer.
    Perf,
    /// LTTng in the guest, to its own ring buffer.
    Lttng,
    /// Hypercalls with at most `events` events each, where 0 means as many as fit, and `words` words.
    Hypercall {
        /// Events per hypercall.
        events: u32,
        /// Words per hypercall: its four arguments, and further registers.
        words: u32,
    },
    /// Frames in memory that the guest shares with its host.
    Shm,
}

/// A part of an event's cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A tracer that keeps its data in the guest.
    GuestTracing,
    /// The kernel's call of the module's probe, which returns at once.
    Probe,
    /// Reading the clock, and packing the event.
    Pack,
    /// The exit, its handling in KVM, and the entry.
    Transport,
    /// The additional time of that in a nested guest.
    Nested,
    /// The host's event of the hypercall, in its kernel's buffer.
    HostTracing,
    /// Reading that buffer and writing the file, as far as it happens meanwhile.
    Write,
}

impl Part {
    /// All, in the order of reports.
    pub(crate) const ALL: [Self; 7] = [
        Self::GuestTracing,
        Self::Probe,
        Self::Pack,
        Self::Transport,
        Self::Nested,
        Self::HostTracing,
        Self::Write,
    ];

    /// Its name in JSON.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::GuestTracing => "guest_tracing",
            Self::Probe => "probe",
            Self::Pack => "pack",
            Self::Transport => "transport",
            Self::Nested => "nested",
            Self::HostTracing => "host_tracing",
            Self::Write => "write",
        }
    }
}

/// The guest's side of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InGuest {
    Nothing,
    Ftrace,
    Perf,
    Lttng,
    Module(Module),
}

/// Parameters of the loaded module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) data_path: DataPath,
    pub(crate) events: u32,
    pub(crate) words: u32,
}

/// How far events go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataPath {
    /// To the module's probes.
    Probe,
    /// Into frames.
    Pack,
    /// To the host.
    Send,
    /// To memory shared with the host.
    Store,
}

impl Module {
    /// The module parameters.
    pub(crate) fn parameters(self) -> String {
        let data_path = match self.data_path {
            DataPath::Probe => "idle=1",
            DataPath::Pack => "channel=none",
            DataPath::Send => "channel=hypercall",
            DataPath::Store => "channel=shm",
        };
        format!("{data_path} events_per_frame={} words={}", self.events, self.words)
    }
}

/// The host's side of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnHost {
    Nothing,
    /// The hypercalls' event goes to an unread kernel buffer.
    Buffer,
    /// `hyperscope record` writes these events to a file.
    Recorder(&'static [&'static str]),
    /// `hyperscope record` takes frames out of the shared memory and writes them to a file.
    Taker,
}

/// The host's event of hypercalls.
pub(crate) const FRAMES: &[&str] = &["kvm:kvm_hypercall"];

/// Both sides of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setup {
    pub(crate) guest: InGuest,
    pub(crate) host: OnHost,
}

impl Setup {
    /// Nothing is traced.
    pub(crate) const NONE: Self = Self { guest: InGuest::Nothing, host: OnHost::Nothing };
}

/// Max words of a frame, and the size of frames in memory.
const MAX_WORDS: u32 = hypertrace::MAX_WORDS as u32;
/// Words in the hypercall's own arguments: a stock host records only these.
pub(crate) const ARGUMENTS: u32 = hypertrace::MIN_WORDS as u32;

impl Tracer {
    /// Tracers that a user can select, in the order of reports.
    pub const ALL: [Self; 11] = [
        Self::Ftrace,
        Self::Perf,
        Self::Lttng,
        Self::Hypercall { events: 1, words: ARGUMENTS },
        Self::Hypercall { events: 2, words: ARGUMENTS },
        Self::Hypercall { events: 4, words: ARGUMENTS },
        Self::Hypercall { events: 8, words: ARGUMENTS },
        Self::Hypercall { events: 0, words: ARGUMENTS },
        Self::Hypercall { events: 0, words: 9 },
        Self::Hypercall { events: 0, words: MAX_WORDS },
        Self::Shm,
    ];

    /// Its name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ftrace => "ftrace",
            Self::Perf => "perf",
            Self::Lttng => "lttng",
            Self::Shm => "shm",
            Self::Hypercall { events: 1, .. } => "hypercall-1",
            Self::Hypercall { events: 2, .. } => "hypercall-2",
            Self::Hypercall { events: 4, .. } => "hypercall-4",
            Self::Hypercall { events: 8, .. } => "hypercall-8",
            Self::Hypercall { words: 9, .. } => "hypercall-9-words",
            Self::Hypercall { words: MAX_WORDS, .. } => "hypercall-13-words",
            Self::Hypercall { .. } => "hypercall",
        }
    }

    /// The tool that it needs in the guest.
    pub(crate) const fn tool(self) -> Option<Tool> {
        match self {
            Self::Perf => Some(Tool::Perf),
            Self::Lttng => Some(Tool::Lttng),
            Self::Ftrace | Self::Hypercall { .. } | Self::Shm => None,
        }
    }

    /// Whether it works from a nested guest to its host. Shared memory does not: all machines of a lab share the same
    /// memory, which is a file only at level 1.
    pub(crate) const fn can_be_nested(self) -> bool {
        matches!(self, Self::Hypercall { .. })
    }

    /// Its ladder.
    pub(crate) fn steps(self) -> Vec<(Part, Setup)> {
        let quiet = |guest| Setup { guest, host: OnHost::Nothing };
        let (events, words, last) = match self {
            Self::Ftrace => return vec![(Part::GuestTracing, quiet(InGuest::Ftrace))],
            Self::Perf => return vec![(Part::GuestTracing, quiet(InGuest::Perf))],
            Self::Lttng => return vec![(Part::GuestTracing, quiet(InGuest::Lttng))],
            Self::Hypercall { events, words } => (events, words, DataPath::Send),
            Self::Shm => (0, MAX_WORDS, DataPath::Store),
        };
        let module = |data_path| InGuest::Module(Module { data_path, events, words });
        let mut steps = vec![
            (Part::Probe, quiet(module(DataPath::Probe))),
            (Part::Pack, quiet(module(DataPath::Pack))),
            (Part::Transport, quiet(module(last))),
        ];
        if self == Self::Shm {
            let setup = Setup { guest: module(last), host: OnHost::Taker };
            steps.push((Part::Write, setup));
        }
        // The event of a stock host has no fields for more.
        if words == ARGUMENTS {
            let guest = module(DataPath::Send);
            steps.push((Part::HostTracing, Setup { guest, host: OnHost::Buffer }));
            steps.push((Part::Write, Setup { guest, host: OnHost::Recorder(FRAMES) }));
        }
        steps
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.key())
    }
}

impl Serialize for Tracer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_distinct() {
        let names: BTreeSet<&str> = Tracer::ALL.into_iter().map(Tracer::name).collect();
        assert_eq!(names.len(), Tracer::ALL.len());
    }

    #[test]
    fn each_step_adds_a_part_of_its_own() {
        for tracer in Tracer::ALL {
            let parts: Vec<usize> = tracer
                .steps()
                .iter()
                .map(|(part, _)| Part::ALL.iter().position(|candidate| candidate == part).unwrap())
                .collect();
            assert!(parts.windows(2).all(|two| two[0] < two[1]), "{tracer:?}");
        }
    }
}
