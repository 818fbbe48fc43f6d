//! Which parts of exits a recording has events for.

use ftrace::eventfmt::EventFormat;
use sources::Recording;
use timeline::arch::{self, SCHED_SWITCH};
use timeline::{Kind, KindSet};

/// Which parts of exits the recording has events for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedParts {
    /// Exits to user space are recorded (`kvm_userspace_exit`).
    pub user: bool,
    /// The return from there is recorded too.
    pub user_return: bool,
    /// Switches of threads are recorded.
    pub off_cpu: bool,
    /// Wake-ups are recorded, so that waiting for a CPU is known from waiting for work.
    pub wake: bool,
    /// Halt-polling is recorded.
    pub halt_poll: bool,
    /// Host work is recorded.
    pub host_work: bool,
    /// Nested guests' exits are recorded.
    pub nested: bool,
}

impl RecordedParts {
    /// What a recording in which these kinds of events were seen has events for.
    #[must_use]
    pub fn new(recording: &Recording, seen: KindSet) -> Self {
        let enabled = Enabled::new(recording);
        let has = |kind| seen.contains(kind) || enabled.has(kind);
        let user = has(Kind::UserExit);
        Self {
            user,
            // A thread that never left counts as returned.
            user_return: seen.contains(Kind::UserReturn) || user && !seen.contains(Kind::UserExit),
            off_cpu: has(Kind::SchedOut),
            wake: has(Kind::Wake),
            halt_poll: seen.contains(Kind::VcpuWakeup),
            host_work: has(Kind::HostWork) || has(Kind::SchedOut),
            nested: seen.contains(Kind::NestedExit) || seen.contains(Kind::NestedEnter),
        }
    }

    /// Whether running in the kernel is known from running in user space, and both from waiting.
    #[must_use]
    pub fn is_split(&self) -> bool {
        self.user && self.off_cpu
    }
}

/// Events that were on though none may have come.
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

/// Whether `recording` can have events of a kind: known before it is read.
fn can_have(recording: &Recording, kind: Kind) -> bool {
    recording.formats().iter().any(|(_, format)| is_of(format, kind))
}

/// Whether `recording` can have switches of threads: known before it is read.
pub(crate) fn has_switches(recording: &Recording) -> bool {
    can_have(recording, Kind::SchedOut)
}

/// Whether `recording` can have events that split exits into kernel, user space and waiting: known
/// before it is read.
pub(crate) fn can_split(recording: &Recording) -> bool {
    has_switches(recording) && can_have(recording, Kind::UserExit)
}
