//! Runs a subject once with the tracing of a step.

use std::path::Path;

use labguest::wire::Looped;

use super::Subject;
use super::guest_side;
use super::host_side::{self, HostRecording};
use super::tracer::{OnHost, Setup};
use crate::bench::error::{BenchError, Result};
use crate::bench::machines::BootedMachines;

/// Options of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunOptions {
    /// System calls; other subjects cause as many events.
    pub(crate) iterations: u64,
    /// Level of the guest.
    pub(crate) level: u8,
    /// Whether to count the events that a tracer in the guest kept, which takes long.
    pub(crate) counts: bool,
}

/// Results of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) looped: Looped,
    /// Exits of the guest meanwhile, from the counter of its host's KVM.
    pub(crate) exits: u64,
    /// Hypercalls among them.
    pub(crate) hypercalls: u64,
    /// Events of the subject found in the kept data; `None` if nothing was kept or counted.
    pub(crate) seen: Option<u64>,
    /// The host's recording.
    pub(crate) recording: Option<HostRecording>,
}

/// Runs a subject once.
pub(crate) fn run(
    subject: Subject,
    setup: Setup,
    options: RunOptions,
    machines: &mut BootedMachines,
    folder: &Path,
) -> Result<Run> {
    let rounds = subject.rounds(options.iterations);
    let guest = |machines: &mut BootedMachines| {
        guest_side::begin(subject, setup.guest, &mut machines.guest)
    };
    // A late reader of shared memory also finds earlier frames, so those of an earlier run are erased; an unrecorded
    // hypercall is lost.
    let takes = setup.host == OnHost::Taker;
    if takes {
        host_side::wipe(options.level, &mut machines.host)?;
        guest(machines)?;
    }
    let events = subject.events_of_round() * rounds;
    let host = host_side::begin(setup, options.level, events, &mut machines.host)?;
    if !takes {
        guest(machines)?;
    }
    let before = counters(machines)?;
    let command = format!("hyperscope-labguest subject {}={rounds}", subject.name());
    let output = machines.guest.shell(&guest_side::traced(subject, setup.guest, &command))?;
    let after = counters(machines)?;
    let seen = guest_side::end(subject, setup.guest, options.counts, &mut machines.guest)?;
    let recording = host_side::end(host, subject, &mut machines.host, folder)?;
    let looped = serde_json::from_str(output.trim())
        .map_err(BenchError::malformed("hyperscope-labguest subject"))?;
    Ok(Run {
        looped,
        exits: after.0.saturating_sub(before.0),
        hypercalls: after.1.saturating_sub(before.1),
        seen: seen.or(recording.map(|recording| recording.subject_events)),
        recording,
    })
}

/// KVM's counts of exits and hypercalls so far, of all guests of the host.
fn counters(machines: &mut BootedMachines) -> Result<(u64, u64)> {
    let output = machines.host.shell("cd /sys/kernel/debug/kvm && cat exits hypercalls")?;
    let mut numbers = output.lines().map(|line| line.trim().parse::<u64>());
    match (numbers.next(), numbers.next()) {
        (Some(Ok(exits)), Some(Ok(hypercalls))) => Ok((exits, hypercalls)),
        _ => Err(BenchError::Malformed { what: "KVM", text: output }),
    }
}
