//! The relation that the recorder measured: TIME_SHIFT samples in the guest's file.

use sources::Recording;

use super::Question;
use super::judge::{LineSegment, Relation};
use super::mapping::CpuOnVcpu;
use super::stamps::CpuStamps;

/// Relates the clocks by TIME_SHIFT; an error says why the recordings do not allow it.
pub(super) fn relation(question: &Question<'_>, cpus: &[CpuOnVcpu]) -> Result<Relation, String> {
    let guest = question.guest_recording;
    let Some(peer) = guest.peer() else {
        return Err("the guest's recording has no TIME_SHIFT".to_owned());
    };
    if question.host_recording.trace_id().is_some_and(|id| id != peer) {
        return Err("the guest's TIME_SHIFT refers to another recording".to_owned());
    }
    let known: Vec<&CpuStamps> =
        cpus.iter().filter_map(|cpu| question.guest.cpu_stamps(cpu.guest_cpu)).collect();
    let segments = known.iter().map(|cpu| (cpu.cpu, segments(guest, peer, cpu)));
    let cpus: Vec<_> = segments.filter(|(_, segments)| !segments.is_empty()).collect();
    if cpus.is_empty() {
        return Err("no vCPU of the host is known to match a CPU of the guest".to_owned());
    }
    Ok(Relation { cpus, recorded: true })
}

/// Interpolates linearly between samples, and extrapolates the first and the last line.
fn segments(guest: &Recording, peer: u64, cpu: &CpuStamps) -> Vec<LineSegment> {
    let (Some(&first), Some(&last)) = (cpu.raw.first(), cpu.raw.last()) else { return Vec::new() };
    let mut bounds: Vec<u64> = sample_times(guest, peer, cpu.cpu);
    let inner = bounds.len().saturating_sub(1);
    bounds = bounds.get(1..inner).unwrap_or_default().to_vec();
    bounds.retain(|time| (first..last).contains(time));
    let begins = std::iter::once(first).chain(bounds.iter().copied());
    let ends = bounds.iter().copied().map(|time| time.saturating_sub(1)).chain([last]);
    begins.zip(ends).filter_map(|(begin, end)| segment(guest, cpu, begin, end)).collect()
}

fn sample_times(guest: &Recording, peer: u64, cpu: u32) -> Vec<u64> {
    let shift = guest.info().time_shifts.iter().rev().find(|shift| shift.peer == peer);
    let samples = shift.and_then(|shift| shift.cpus.get(cpu as usize));
    samples.map(|samples| samples.iter().map(|sample| sample.time).collect()).unwrap_or_default()
}

/// The line through the recorded corrections of two raw times.
fn segment(guest: &Recording, cpu: &CpuStamps, begin: u64, end: u64) -> Option<LineSegment> {
    let corrections = guest.streams().iter().map(|stream| guest.correction(stream));
    let shifted = corrections.into_iter().find(|correction| correction.peer().is_some())?;
    let own_clock = shifted.on_own_clock();
    let both = |raw: u64| {
        let own_ns = i64::try_from(own_clock.ns(raw, cpu.cpu)).ok()?;
        let host_ns = i64::try_from(shifted.ns(raw, cpu.cpu)).ok()?;
        Some((own_ns, host_ns.checked_sub(own_ns)?))
    };
    LineSegment::through(begin, end, both)
}
