//! Checks whether recordings can belong together: a guest and its host, the sides of a comparison.

use analyses::processor::Processor;
use anyhow::bail;
use sources::Recording;

use crate::Misuse;

/// Refuses a guest whose file names another host than those given: its times are not on the clock of
/// these hosts.
///
/// # Errors
/// When the guest's file names another host.
pub(crate) fn refuse_guest_of_another(
    guest: &Recording,
    recordings: &[Recording],
) -> anyhow::Result<()> {
    let Some(peer) = guest.peer() else { return Ok(()) };
    if recordings.iter().any(|recording| recording.trace_id() == Some(peer)) {
        return Ok(());
    }
    bail!(Misuse(format!(
        "{} belongs to a guest of another host: its clock was measured against a recording that is missing here; add the \
         recording of that host",
        guest.path().display()
    )))
}

/// Refuses a guest and a host whose processors are of different architectures.
///
/// # Errors
/// When both are known and differ.
pub(crate) fn refuse_other_processor(guest: &Recording, host: &Recording) -> anyhow::Result<()> {
    match (Processor::of_recording(guest), Processor::of_recording(host)) {
        (Some(of_guest), Some(of_host)) if of_guest != of_host => bail!(Misuse(format!(
            "{} belongs to a guest of another host: it was recorded on {}, but {} on {}; add the recording of its own host",
            guest.path().display(),
            of_guest.name(),
            host.path().display(),
            of_host.name()
        ))),
        _ => Ok(()),
    }
}

/// Refuses to compare recordings of different architectures: their exit reasons are not comparable.
///
/// # Errors
/// When architectures differ.
pub fn refuse_to_compare_processors<'r>(
    recordings: impl IntoIterator<Item = &'r Recording>,
) -> anyhow::Result<()> {
    let known = recordings
        .into_iter()
        .filter_map(|recording| Some((recording, Processor::of_recording(recording)?)));
    let known: Vec<_> = known.collect();
    let Some((first, of_first)) = known.first() else { return Ok(()) };
    match known.iter().find(|(_, processor)| processor != of_first) {
        None => Ok(()),
        Some((other, of_other)) => bail!(Misuse(format!(
            "{} was recorded on {}, but {} on {}: exits of different architectures cannot be compared",
            first.path().display(),
            of_first.name(),
            other.path().display(),
            of_other.name()
        ))),
    }
}
