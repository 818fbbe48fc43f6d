//! How a guest boots and shuts down: the initcall levels of its kernel, user space up to a mark, the steps of the
//! shutdown up to its last event; and the exits and events of each phase.
//!
//! ```text
//!  host   first entry                                                          last exit
//!  guest    │ before │ console │ … │ early │ … │ late │ … │ init … mark │ … │ down │ after │
//! ```
//! The guest's part comes from the `initcall:*` events that its kernel records from its command line on. Exits
//! come from the host's recording of the same time. Guest events are counted with their bytes.

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

/// Marks that begin phases which have no kernel event.
#[derive(Clone, Debug, Default)]
pub struct BootMarks {
    /// The boot ends at the first mark that contains this text; `None`: at the first mark.
    pub until: Option<String>,
    /// The shutdown begins at the first mark that contains this text.
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

/// Max initcall levels, each of which is a phase. Kernels have nine.
const MAX_LEVELS: usize = 256;

/// Machines that boot or shut down in recordings read together.
#[derive(Debug)]
pub struct Boot {
    /// Guests with a recording of their own come first.
    pub machines: Vec<BootedMachine>,
    /// By recording of a host.
    pub losses: Vec<Losses>,
}

/// Boots and shutdowns of machines. `collected` has the collectors' files by recording. `progress` receives the
/// number of bytes read; some bytes are read more than once.
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
        // Reports of nested guests in an aligned guest's recording are not read.
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

/// Each phase ends where the next one begins, the last one at `last_ns`.
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
