//! The relation that KVM set: a guest's TSC is its host's TSC plus an offset, and `kvm_write_tsc_offset` reports
//! each change. Both sides need the clock `x86-tsc`.

use std::collections::HashMap;

use sources::Recording;
use timeline::align::Away;

use super::Question;
use super::judge::{LineSegment, Relation};
use super::mapping::CpuOnVcpu;
use super::stamps::CpuStamps;
use super::tsc_writes::{Write, writes};

/// Rounding of the clocks: they are read and converted in integer ticks and nanoseconds.
const ROUNDING_NS: u64 = 2;

/// Scaling of the guest's TSC: `guest = (host * ratio >> bits) + offset`.
#[derive(Clone, Copy, Debug)]
struct Scaling {
    ratio: u64,
    bits: u32,
}

impl Scaling {
    const NONE: Self = Self { ratio: 1, bits: 0 };

    /// The host's TSC for a guest's TSC.
    fn host(self, guest_tsc: u64, offset: i64) -> Option<u64> {
        let unscaled = u128::from(guest_tsc.wrapping_sub(offset.cast_unsigned()));
        let host = unscaled.checked_shl(self.bits)?.checked_div(self.ratio.into())?;
        u64::try_from(host).ok()
    }

    fn guest(self, host_tsc: u64, offset: i64) -> Option<u64> {
        let scaled = u128::from(host_tsc).checked_mul(self.ratio.into())?.checked_shr(self.bits)?;
        Some(u64::try_from(scaled).ok()?.wrapping_add_signed(offset))
    }
}

/// Relates the clocks by TSC offsets; an error says why the recordings do not allow it.
pub(super) fn relation(question: &Question<'_>, cpus: &[CpuOnVcpu]) -> Result<Relation, String> {
    for (whose, recording) in
        [("host", question.host_recording), ("guest", question.guest_recording)]
    {
        if !recording.is_of_tsc() {
            let clock = recording.info().clock.as_deref().unwrap_or("unknown");
            return Err(format!("the {whose} was recorded with the clock {clock}, not x86-tsc"));
        }
    }
    let writes = writes(question.host_recording);
    let mut by_thread: HashMap<u32, Vec<Write>> = HashMap::new();
    let mut by_vcpu: HashMap<u32, Vec<Write>> = HashMap::new();
    for write in writes {
        by_thread.entry(write.thread).or_default().push(write);
        by_vcpu.entry(write.vcpu).or_default().push(write);
    }
    let recorded: HashMap<u32, (i64, Scaling)> = recorded_offsets(question.guest_recording);
    let mut related = Vec::new();
    for cpu in cpus {
        let Some(stamps) = question.guest.cpu_stamps(cpu.guest_cpu) else { continue };
        let mut writes = by_thread.get(&cpu.thread).cloned().unwrap_or_default();
        // Numbers of vCPUs are only unique within one VM.
        if writes.is_empty() && question.host.vms.len() == 1 {
            writes = by_vcpu.get(&cpu.vcpu).cloned().unwrap_or_default();
        }
        let known = recorded.get(&cpu.guest_cpu);
        let scaling = known.map_or(Scaling::NONE, |(_, scaling)| *scaling);
        let initial = writes.first().map(|write| write.before).or(known.map(|(offset, _)| *offset));
        let Some(initial) = initial else { continue };
        let away = question.host.away(cpu.index);
        let created = creation(question, away, &writes);
        let initial = created.map_or(initial, |(_, write)| write.after);
        writes.drain(..created.map_or(0, |(count, _)| count));
        let writes = effective(question, away, writes);
        let segments = segments(question, stamps, initial, &writes, scaling);
        if !segments.is_empty() {
            related.push((cpu.guest_cpu, segments));
        }
    }
    if related.is_empty() {
        return Err(
            "neither kvm_write_tsc_offset nor the guest's file contains a TSC offset".to_owned()
        );
    }
    Ok(Relation { cpus: related, recorded: false })
}

/// Offset and scaling per guest CPU from trace-cmd's `kvm` protocol: TIME_SHIFT samples without interpolation, of
/// a guest on `x86-tsc`. trace-cmd stores the value to *add* to the guest's scaled time, so the sign is inverted
/// here.
fn recorded_offsets(guest: &Recording) -> HashMap<u32, (i64, Scaling)> {
    let steps = guest.info().time_shifts.iter().rev().find(|shift| !shift.interpolates());
    let Some(shift) = steps else { return HashMap::new() };
    (0_u32..)
        .zip(&shift.cpus)
        .filter_map(|(cpu, samples)| {
            let sample = samples.first()?;
            let bits = u32::try_from(sample.fraction).ok().filter(|&bits| bits < u64::BITS)?;
            let plain = sample.scaling <= 1 || bits == 0;
            // A ratio other than 1 converts from guest to host.
            let scaling = if plain { Scaling::NONE } else { inverse(sample.scaling, bits)? };
            let offset = sample.offset.checked_neg()?;
            // The file's offset is in host ticks, KVM's in guest ticks.
            let offset = if plain { offset } else { scaled(offset, scaling)? };
            Some((cpu, (offset, scaling)))
        })
        .collect()
}

/// Inverts trace-cmd's ratio, which converts guest times to host times.
fn inverse(ratio: u64, bits: u32) -> Option<Scaling> {
    let unit_squared = 1_u128.checked_shl(bits.checked_mul(2)?)?;
    let ratio = u64::try_from(unit_squared.checked_div(ratio.into())?).ok()?;
    Some(Scaling { ratio, bits })
}

fn scaled(ticks: i64, scaling: Scaling) -> Option<i64> {
    let ticks = i128::from(ticks).checked_mul(scaling.ratio.into())? >> scaling.bits;
    i64::try_from(ticks).ok()
}

/// Number of writes before a new vCPU's first run, and the last of them: the guest never saw an earlier offset. A
/// vCPU starts with the offset 0.
fn creation(
    question: &Question<'_>,
    away: Option<&Away>,
    writes: &[Write],
) -> Option<(usize, Write)> {
    let is_new = writes.first().is_some_and(|write| write.before == 0);
    let (first_exit_ns, _) = away?.extent().filter(|_| is_new)?;
    let host = question.host_recording;
    let to_ns = host.correction(host.streams().first()?).on_own_clock();
    let is_before = |write: &&Write| {
        i64::try_from(to_ns.ns(write.host_tsc, 0)).is_ok_and(|host_ns| host_ns < first_exit_ns)
    };
    writes
        .iter()
        .take_while(is_before)
        .copied()
        .enumerate()
        .last()
        .map(|(at, write)| (at + 1, write))
}

/// Writes that changed the offset from one stay in the guest to the next. KVM may write several times between an
/// exit and the next entry: if the host's TSC is unstable, it sets the guest's TSC back and forward again whenever
/// the thread is scheduled in. Only their sum counts.
fn effective(question: &Question<'_>, away: Option<&Away>, writes: Vec<Write>) -> Vec<Write> {
    let host = question.host_recording;
    let to_ns = host.streams().first().map(|stream| host.correction(stream).on_own_clock());
    let stay = |write: &Write| {
        let host_ns = i64::try_from(to_ns.as_ref()?.ns(write.host_tsc, 0)).ok()?;
        away?.around(host_ns)
    };
    let mut effective: Vec<(Option<(i64, i64)>, Write)> = Vec::new();
    for write in writes {
        let away = stay(&write);
        match effective.last_mut() {
            Some((last, sum)) if away.is_some() && *last == away => sum.after = write.after,
            _ => effective.push((away, write)),
        }
    }
    effective.retain(|(_, write)| write.before != write.after);
    effective.into_iter().map(|(_, write)| write).collect()
}

/// The offset is constant between writes; each segment goes from the guest's TSC at one write to that at the next.
fn segments(
    question: &Question<'_>,
    stamps: &CpuStamps,
    initial: i64,
    writes: &[Write],
    scaling: Scaling,
) -> Vec<LineSegment> {
    let (Some(&first), Some(&last)) = (stamps.raw.first(), stamps.raw.last()) else {
        return Vec::new();
    };
    // Start, end and offset of each segment.
    let mut parts = vec![(first, last, initial)];
    for write in writes {
        let offsets = (
            scaling.guest(write.host_tsc, write.before),
            scaling.guest(write.host_tsc, write.after),
        );
        let (Some(before), Some(after)) = offsets else { continue };
        let Some(part) = parts.last_mut() else { continue };
        if before <= part.0 {
            // This write is before the first event, or directly follows the previous write.
            part.2 = write.after;
            continue;
        }
        // A TSC that is set back repeats values: the first reading counts as before the write.
        let begin = after.max(part.0.saturating_add(1));
        if before > last || begin > last {
            break;
        }
        part.1 = before.clamp(part.0, begin.saturating_sub(1));
        parts.push((begin, last, write.after));
    }
    parts
        .into_iter()
        .filter_map(|(begin, end, offset)| {
            segment(question, stamps.cpu, (begin, end), |raw| scaling.host(raw, offset))
        })
        .collect()
}

fn segment(
    question: &Question<'_>,
    cpu: u32,
    (begin, end): (u64, u64),
    host_tsc: impl Fn(u64) -> Option<u64>,
) -> Option<LineSegment> {
    let host = question.host_recording;
    let to_host_ns = host.streams().first().map(|stream| host.correction(stream).on_own_clock())?;
    let guest = question.guest_recording;
    let to_own_ns =
        guest.streams().first().map(|stream| guest.correction(stream).on_own_clock())?;
    let both = |raw: u64| {
        let own_ns = i64::try_from(to_own_ns.ns(raw, cpu)).ok()?;
        let host_ns = i64::try_from(to_host_ns.ns(host_tsc(raw)?, 0)).ok()?;
        Some((own_ns, host_ns.checked_sub(own_ns)?))
    };
    let segment = LineSegment::through(begin, end, both)?;
    let drift_ppb = segment.line.drift_ppb;
    let drifts_ppb = Some((drift_ppb, drift_ppb));
    Some(LineSegment { bound_ns: Some(ROUNDING_NS), drifts_ppb, ..segment })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaling_goes_both_ways() {
        let scaling = Scaling { ratio: 3 << 31, bits: 32 };
        for (host, offset) in [(1_000_000_000_000, 77), (5, -9), (1 << 50, i64::MIN / 2)] {
            let guest = scaling.guest(host, offset).unwrap_or_default();
            assert!(scaling.host(guest, offset).unwrap_or_default().abs_diff(host) <= 1);
        }
        assert_eq!(Scaling { ratio: 0, bits: 0 }.host(1, 0), None);
    }
}
