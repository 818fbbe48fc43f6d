//! Checks a relation of clocks against the windows: guest events can only happen in windows of their vCPU.

use std::collections::HashMap;

use timeline::align::{Away, Line, Piece};

use super::mapping::CpuOnVcpu;
use super::stamps::CpuStamps;
use super::{AlignRow, Question};

/// A time range on a guest CPU's clock, and the line to the host's clock.
#[derive(Clone, Debug)]
pub(super) struct LineSegment {
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
    pub(super) line: Line,
    pub(super) bound_ns: Option<u64>,
    pub(super) drifts_ppb: Option<(f64, f64)>,
}

impl LineSegment {
    /// The segment between two raw times, with the line through their conversions: `both` returns the time on the
    /// guest's clock and the offset to the host's clock.
    pub(super) fn through(
        begin: u64,
        end: u64,
        both: impl Fn(u64) -> Option<(i64, i64)>,
    ) -> Option<Self> {
        let ((from_ns, from_offset), (to_ns, to_offset)) = (both(begin)?, both(end)?);
        let (at_ns, offset_ns) = both(begin.midpoint(end))?;
        let seconds = (to_ns - from_ns) as f64 / 1e9;
        let drift_ppb =
            if seconds > 0.0 { (to_offset - from_offset) as f64 / seconds } else { 0.0 };
        let line = Line { at_ns, offset_ns, drift_ppb };
        Some(Self { from_ns, to_ns, line, bound_ns: None, drifts_ppb: None })
    }
}

/// Relation of the clocks of a guest's CPUs to their host's.
#[derive(Clone, Debug, Default)]
pub(super) struct Relation {
    /// CPUs with their segments in the order of time.
    pub(super) cpus: Vec<(u32, Vec<LineSegment>)>,
    /// The recording already has this correction, so nothing is applied.
    pub(super) recorded: bool,
}

impl Relation {
    /// The relation that the windows give.
    pub(super) fn of_pieces(cpus: &[(u32, &[Piece])]) -> Self {
        let segment = |piece: &Piece| LineSegment {
            from_ns: piece.from_ns,
            to_ns: piece.to_ns,
            line: piece.line,
            bound_ns: Some(piece.bound_ns),
            drifts_ppb: Some(piece.drifts_ppb),
        };
        let cpus = cpus.iter().map(|(cpu, pieces)| (*cpu, pieces.iter().map(segment).collect()));
        Self { cpus: cpus.collect(), recorded: false }
    }
}

/// The segments of all CPUs, with the results of the check.
pub(super) fn rows(
    question: &Question<'_>,
    cpus: &[CpuOnVcpu],
    relation: &Relation,
) -> Vec<AlignRow> {
    let mut rows = Vec::new();
    let by_number: HashMap<u32, &CpuOnVcpu> =
        cpus.iter().rev().map(|cpu| (cpu.guest_cpu, cpu)).collect();
    for (guest_cpu, segments) in &relation.cpus {
        let Some(cpu) = by_number.get(guest_cpu).copied() else { continue };
        let Some(stamps) = question.guest.cpu_stamps(*guest_cpu) else { continue };
        let away = question.host.away(cpu.index);
        rows.extend(segments.iter().map(|segment| row(cpu, stamps, away, segment)));
    }
    rows
}

fn row(
    cpu: &CpuOnVcpu,
    stamps: &CpuStamps,
    away: Option<&Away>,
    segment: &LineSegment,
) -> AlignRow {
    let line = &segment.line;
    let begin = stamps.own_ns.partition_point(|&stamp| stamp < segment.from_ns);
    let end = stamps.own_ns.partition_point(|&stamp| stamp <= segment.to_ns);
    let (mut events, mut violations, mut worst_ns) = (0, 0, 0);
    for &stamp in stamps.own_ns.get(begin..end).unwrap_or_default() {
        events += 1;
        let host_ns = stamp.saturating_add(line.offset_at(stamp));
        let Some((from, to)) = away.and_then(|away| away.around(host_ns)) else { continue };
        let outside_ns = host_ns.abs_diff(from).min(host_ns.abs_diff(to));
        if outside_ns > segment.bound_ns.unwrap_or(0) {
            violations += 1;
        }
        worst_ns = worst_ns.max(outside_ns);
    }
    let on_host = |stamp: i64| stamp.saturating_add(line.offset_at(stamp));
    AlignRow {
        guest_cpu: cpu.guest_cpu,
        vcpu: cpu.vcpu,
        thread: cpu.thread,
        from_ns: on_host(segment.from_ns),
        to_ns: on_host(segment.to_ns),
        offset_ns: line.offset_at(segment.from_ns.midpoint(segment.to_ns)),
        bound_ns: segment.bound_ns,
        drift_ppb: line.drift_ppb,
        drifts_ppb: segment.drifts_ppb,
        events,
        violations,
        worst_ns,
    }
}

/// Max difference from the windows' relation where both exist, and whether it is within the bounds.
pub(super) fn compare(relation: &Relation, windows: &Relation) -> Option<(u64, bool)> {
    let by_cpu: HashMap<u32, &[LineSegment]> =
        windows.cpus.iter().map(|(cpu, segments)| (*cpu, segments.as_slice())).collect();
    let mut found: Option<(u64, bool)> = None;
    for (cpu, segments) in &relation.cpus {
        let known = by_cpu.get(cpu).copied().unwrap_or_default();
        // Both lists are in the order of time: the segment that ends first overlaps no later segment of the other
        // list.
        let (mut at, mut at_known) = (0, 0);
        while let Some((segment, other)) = segments.get(at).zip(known.get(at_known)) {
            let (from_ns, to_ns) =
                (segment.from_ns.max(other.from_ns), segment.to_ns.min(other.to_ns));
            if segment.to_ns <= other.to_ns {
                at += 1
            } else {
                at_known += 1
            }
            if from_ns > to_ns {
                continue;
            }
            let differs = |at: i64| segment.line.offset_at(at).abs_diff(other.line.offset_at(at));
            let most_ns = differs(from_ns).max(differs(to_ns));
            let bounds = [segment.bound_ns, other.bound_ns].into_iter().flatten();
            let agrees = most_ns <= bounds.fold(0, u64::saturating_add);
            let (before_ns, agreed) = found.unwrap_or((0, true));
            found = Some((before_ns.max(most_ns), agreed && agrees));
        }
    }
    found
}
