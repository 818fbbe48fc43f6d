//! Tracers, and the steps that each is measured in.
//!
//! The steps of a tracer form a ladder: each does what the one before does, and one thing more. What
//! a step takes longer than the one before is what that thing costs, so all parts together are the whole.

use lab::Tool;
use serde::{Serialize, Serializer};

/// A way to trace a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracer {
    /// The guest's own ftrace, to its ring buffer.
    Ftrace,
    /// `perf record` in the guest, to its buffer.
    Perf,
    /// LTTng in the guest, to its own ring buffer.
    Lttng,
    /// Hypercalls with at most `events` events each, where 0 stands for as many as have room, and
    /// `words` words.
    Hypercall {
        /// Events a hypercall.
        events: u32,
        /// Words a hypercall: its four arguments, and further registers.
        words: u32,
    },
    /// Frames in memory that the guest shares with its host.
    Shm,
}

/// What an event's cost is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A tracer in the guest that keeps what it sees there.
    GuestTracing,
    /// The kernel's call of the module, which returns at once.
    Probe,
    /// The event's time, and packing it.
    Pack,
    /// The exit, what KVM does about it, and the entry.
    Transport,
    /// What that takes longer in a guest's guest.
    Nested,
    /// The host's event of the hypercall, in its kernel's buffer.
    HostTracing,
    /// Reading that buffer and writing the file, as far as it is done meanwhile.
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

/// How the module is loaded.
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
    /// To memory that the host has, too.
    Store,
}

impl Module {
    /// The parameters that it is loaded with.
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

/// What the host records of hypercalls.
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

/// As many words as a frame can have; those in memory do.
const MAX_WORDS: u32 = hypertrace::MAX_WORDS as u32;
/// Words that are the hypercall's own arguments: all that a stock host records.
pub(crate) const ARGUMENTS: u32 = hypertrace::MIN_WORDS as u32;

impl Tracer {
    /// Those that can be asked for, in the order of reports.
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

    /// The program that it needs in the guest.
    pub(crate) const fn tool(self) -> Option<Tool> {
        match self {
            Self::Perf => Some(Tool::Perf),
            Self::Lttng => Some(Tool::Lttng),
            Self::Ftrace | Self::Hypercall { .. } | Self::Shm => None,
        }
    }

    /// Whether a guest's guest has a way to its own host by it. Memory is not one: all machines of a lab
    /// share the same, which is a file at level 1 alone.
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
        // The event of a stock host has no place for more.
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
