//! Parts of exits that a recording has events for.

use ftrace::eventfmt::EventFormat;
use sources::Recording;
use timeline::arch::{self, SCHED_SWITCH};
use timeline::{Kind, KindSet};

/// Parts of exits that a recording has events for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedParts {
    /// Whether exits to user space are recorded (`kvm_userspace_exit`).
    pub user: bool,
    /// Whether the return from user space is recorded.
    pub user_return: bool,
    /// Whether thread switches are recorded.
    pub off_cpu: bool,
    /// Whether wake-ups are recorded, so that runnable and blocked are separate.
    pub wake: bool,
    /// Whether halt polling is recorded.
    pub halt_poll: bool,
    /// Whether host work is recorded.
    pub host_work: bool,
    /// Whether nested guests' exits are recorded.
    pub nested: bool,
}

impl RecordedParts {
    /// Parts for a recording in which events of the kinds `seen` occurred.
    #[must_use]
    pub fn new(recording: &Recording, seen: KindSet) -> Self {
        let enabled = Enabled::new(recording);
        let has = |kind| seen.contains(kind) || enabled.has(kind);
        let user = has(Kind::UserExit);
        Self {
            user,
            // Without any exit to user space, no return can be missing.
            user_return: seen.contains(Kind::UserReturn) || user && !seen.contains(Kind::UserExit),
            off_cpu: has(Kind::SchedOut),
            wake: has(Kind::Wake),
            halt_poll: seen.contains(Kind::VcpuWakeup),
            host_work: has(Kind::HostWork) || has(Kind::SchedOut),
            nested: seen.contains(Kind::NestedExit) || seen.contains(Kind::NestedEnter),
        }
    }

    /// Whether kernel, user space and waiting are separate.
    #[must_use]
    pub fn is_split(&self) -> bool {
        self.user && self.off_cpu
    }
}

/// Formats of the events that were enabled, even if none occurred.
struct Enabled<'r>(Vec<&'r EventFormat>);

impl<'r> Enabled<'r> {
    fn new(recording: &'r Recording) -> Self {
        if !recording.formats_say_what_was_on() {
            return Self(Vec::new());
        }
        Self(recording.formats().iter().map(|(_, format)| format).collect())
    }

    fn has(&self, kind: Kind) -> bool {
        self.0.iter().any(|format| is_of(format, kind))
    }
}

fn is_of(format: &EventFormat, kind: Kind) -> bool {
    match kind {
        Kind::SchedOut => format.full_name() == SCHED_SWITCH,
        kind => arch::rule_for(format).is_some_and(|(_, rule)| rule.kind() == kind),
    }
}

/// Whether `recording` can have events of a kind, according to its formats.
fn can_have(recording: &Recording, kind: Kind) -> bool {
    recording.formats().iter().any(|(_, format)| is_of(format, kind))
}

/// Whether `recording` can have thread switches, according to its formats.
pub(crate) fn has_switches(recording: &Recording) -> bool {
    can_have(recording, Kind::SchedOut)
}

/// Whether `recording` can have the events that split exits into kernel, user space and waiting, according to its
/// formats.
pub(crate) fn can_split(recording: &Recording) -> bool {
    has_switches(recording) && can_have(recording, Kind::UserExit)
}
