//! One run of a subject, traced as a step says.

use std::path::Path;

use labguest::wire::Looped;

use super::Subject;
use super::guest_side;
use super::host_side::{self, HostRecording};
use super::tracer::{OnHost, Setup};
use crate::bench::error::{BenchError, Result};
use crate::bench::machines::BootedMachines;

/// How subjects are run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunOptions {
    /// System calls; other subjects make as many events.
    pub(crate) iterations: u64,
    /// Level of the guest.
    pub(crate) level: u8,
    /// Whether what a tracer in the guest kept is counted, which takes long.
    pub(crate) counts: bool,
}

/// What came of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) looped: Looped,
    /// Exits of the guest meanwhile, as its host's KVM counts them.
    pub(crate) exits: u64,
    /// Hypercalls among them.
    pub(crate) hypercalls: u64,
    /// Events of the subject that were found in what was kept; none where nothing was, or it was not
    /// looked at.
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
    // Whoever comes to shared memory late finds what was there before, so what an earlier run left is
    // wiped out; a hypercall that nobody records yet is gone.
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

/// Exits and hypercalls that the host's KVM has counted so far, of all its guests.
fn counters(machines: &mut BootedMachines) -> Result<(u64, u64)> {
    let output = machines.host.shell("cd /sys/kernel/debug/kvm && cat exits hypercalls")?;
    let mut numbers = output.lines().map(|line| line.trim().parse::<u64>());
    match (numbers.next(), numbers.next()) {
        (Some(Ok(exits)), Some(Ok(hypercalls))) => Ok((exits, hypercalls)),
        _ => Err(BenchError::Malformed { what: "KVM", text: output }),
    }
}
