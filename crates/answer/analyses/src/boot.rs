//! How a guest boots and goes down: by level of its kernel's initcalls, then in user space up to a
//! mark, then step by step to its last event; with what each of that cost its host.
//!
//! ```text
//!  host   first entry                                                          last exit
//!  guest    │ before │ console │ … │ early │ … │ late │ … │ init … mark │ … │ down │ after │
//! ```
//! The guest's part comes from `initcall:*` events that its kernel records from its command line on, exits from
//! the host's recording of the same time, events in the guest by their bytes.

mod events;
mod follow;
mod guest_events;
mod guest_recording;
mod host;
mod initcalls;
mod machine;
mod shutdown;
mod sums;
mod tally;
mod tracing;

use sources::Collected;
use timeline::Losses;

use self::guest_events::GuestReports;
use self::guest_recording::{edges, measured_mut, segments};
use crate::view::View;

pub use events::{Weight, recorded_in as has_boot_events};
pub use machine::{BootedMachine, HostCost, InPhase, Initcall, Phase, PhaseKind, ReasonCost};
pub use tracing::{EventCost, TracingCost};

/// Where phases begin that no event of a kernel's own marks.
#[derive(Clone, Debug, Default)]
pub struct BootMarks {
    /// The boot is over at the first mark that has this in it; unset: at the first mark of all.
    pub until: Option<String>,
    /// The shutdown begins at the first mark that has this in it.
    pub down: Option<String>,
}

impl BootMarks {
    fn is_until(&self, text: &str) -> bool {
        self.until.as_ref().is_none_or(|until| text.contains(until))
    }

    fn is_down(&self, text: &str) -> bool {
        self.down.as_ref().is_some_and(|down| text.contains(down))
    }
}

/// Levels that a kernel is believed to have: each is a phase, and there are nine.
const MAX_LEVELS: usize = 256;

/// Machines that boot or go down in some recordings that are read as one.
#[derive(Debug)]
pub struct Boot {
    /// Guests first that have a recording of their own.
    pub machines: Vec<BootedMachine>,
    /// By host's recording.
    pub losses: Vec<Losses>,
}

/// How machines boot and go down. `collected` is what collectors wrote next to recordings, by recording;
/// `tick` receives the number of bytes read, and more than once of the same.
#[must_use]
pub fn boot(
    view: View<'_>,
    collected: &[Option<Collected>],
    marks: &BootMarks,
    progress: &(dyn Fn(u64) + Sync),
) -> Boot {
    let View { recordings, .. } = view;
    let placed = |at: usize| view.alignment(at).filter(|guest| guest.chosen.is_some());
    let mut machines = Vec::new();
    for (at, recording) in recordings.iter().enumerate() {
        let is_its = events::recorded_in(recording);
        let machine =
            is_its.then(|| guest_recording::machine(recording, marks, progress)).flatten();
        let Some(mut machine) = machine else { continue };
        machine.guest = Some(at);
        if let Some(alignment) = placed(at) {
            (machine.host, machine.vm) = (Some(alignment.host), Some(alignment.vm.clone()));
        }
        machines.push(machine);
    }
    let mut losses = Vec::new();
    for (at, host) in recordings.iter().enumerate() {
        let hosted_machines: Vec<_> =
            machines.iter_mut().filter(|machine| machine.host == Some(at)).collect();
        // What a guest that is placed hosts itself is not asked here.
        let reports = placed(at).is_none().then(|| {
            let collected = collected.get(at).unwrap_or(&None);
            GuestReports::hear(host, collected, marks, progress)
        });
        if hosted_machines.is_empty() && reports.is_none() {
            continue;
        }
        let found = host::add(host, hosted_machines, reports.as_ref(), marks, progress);
        losses.extend(found.losses);
        machines.extend(
            found.others.into_iter().map(|machine| BootedMachine { host: Some(at), ..machine }),
        );
    }
    Boot { machines, losses }
}

/// Phases that begin so and end where the next one begins, the last one at `last_ns`.
fn phases(
    begins: Vec<(u64, PhaseKind, String)>,
    last_ns: u64,
    guest: Option<&InPhase>,
) -> Vec<Phase> {
    let ends: Vec<u64> = begins.iter().skip(1).map(|(ns, ..)| *ns).chain([last_ns]).collect();
    let phase = |((from_ns, kind, name), to_ns)| Phase {
        kind,
        name,
        from_ns,
        to_ns,
        guest: guest.cloned(),
        host: None,
    };
    begins.into_iter().zip(ends).map(phase).collect()
}
