//! Converts a guest's recording to its host's clock with the chosen method.

use sources::{ClockPiece, ClockPieces, Recording};
use timeline::align::Line;

use super::GuestAlignment;
use super::judge::LineSegment;

impl GuestAlignment {
    /// Corrects the times of the guest's recording. Without a usable method they stay unchanged.
    pub fn apply(&self, guest: &mut Recording) {
        let Some(relation) = self.relation.as_ref().filter(|relation| !relation.recorded) else {
            return;
        };
        let pieces = |segments: &[LineSegment]| segments.iter().map(piece).collect();
        let cpus = relation.cpus.iter().map(|(cpu, segments)| (*cpu, pieces(segments)));
        guest.set_clock_pieces(&ClockPieces::new(cpus.collect()));
    }
}

fn piece(segment: &LineSegment) -> ClockPiece {
    let Line { at_ns, offset_ns, drift_ppb } = segment.line;
    ClockPiece {
        from: u64::try_from(segment.from_ns).unwrap_or(0),
        at: u64::try_from(at_ns).unwrap_or(0),
        offset: offset_ns,
        drift: (drift_ppb * 1e6).round() as i64,
    }
}
