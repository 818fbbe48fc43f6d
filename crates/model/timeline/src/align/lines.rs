//! All possible relations of two clocks: lines `offset + rate * time`, stored as a convex polygon
//! in the (offset, rate) plane. A constraint at one moment cuts the polygon with a straight line.

/// A set of lines. Offsets are in nanoseconds from a base, times in seconds from an origin, rates
/// in nanoseconds per second (parts per billion).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lines {
    /// Corners (offset, rate) in the order of the boundary.
    corners: Vec<(f64, f64)>,
}

/// Slack of constraints: times on both sides are rounded to whole nanoseconds.
const ROUNDING_NS: f64 = 1.0;

/// A polygon with more corners is not cut further, which makes it too large, but not wrong.
const MAX_CORNERS: usize = 256;

impl Lines {
    /// All lines with an offset at time 0 and a rate in these ranges.
    pub(super) fn between(offset: (f64, f64), rate: (f64, f64)) -> Self {
        let corners =
            vec![(offset.0, rate.0), (offset.1, rate.0), (offset.1, rate.1), (offset.0, rate.1)];
        Self { corners }
    }

    /// The minimum and maximum offset at a time.
    pub(super) fn range(&self, time: f64) -> (f64, f64) {
        let values = self.corners.iter().map(|(offset, rate)| offset + rate * time);
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        })
    }

    /// The minimum and maximum rate.
    pub(super) fn rates(&self) -> (f64, f64) {
        let rates = self.corners.iter().map(|(_, rate)| *rate);
        rates.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), rate| {
            (low.min(rate), high.max(rate))
        })
    }

    /// Restricts the lines to those inside a range at a time; if none remains, changes nothing and
    /// returns `false`.
    pub(super) fn cut(&mut self, time: f64, range: (f64, f64)) -> bool {
        let (low, high) = (range.0 - ROUNDING_NS, range.1 + ROUNDING_NS);
        let below = clip(&self.corners, |(offset, rate)| high - (offset + rate * time));
        let corners = clip(&below, |(offset, rate)| offset + rate * time - low);
        let any = !corners.is_empty();
        if any && corners.len() <= MAX_CORNERS {
            self.corners = corners;
        }
        any
    }

    /// Whether the set contains the line with this offset and rate.
    pub(super) fn has(&self, offset: f64, rate: f64) -> bool {
        let next = self.corners.iter().cycle().skip(1);
        let sides = self.corners.iter().zip(next).map(|(corner, other)| {
            (other.0 - corner.0) * (rate - corner.1) - (other.1 - corner.1) * (offset - corner.0)
        });
        let (mut on_left, mut right) = (false, false);
        for side in sides {
            on_left |= side > 0.0;
            right |= side < 0.0;
        }
        !(on_left && right)
    }

    /// A line in the middle of the set.
    pub(super) fn middle(&self) -> (f64, f64) {
        let count = self.corners.len().max(1) as f64;
        let sum = self
            .corners
            .iter()
            .fold((0.0, 0.0), |sum, corner| (sum.0 + corner.0, sum.1 + corner.1));
        (sum.0 / count, sum.1 / count)
    }
}

/// The part of a convex polygon in which `inside` is non-negative.
fn clip(corners: &[(f64, f64)], inside: impl Fn((f64, f64)) -> f64) -> Vec<(f64, f64)> {
    let mut polygon = Vec::with_capacity(corners.len() + 1);
    let next = corners.iter().cycle().skip(1);
    for (&corner, &other) in corners.iter().zip(next) {
        let (here, there) = (inside(corner), inside(other));
        if here >= 0.0 {
            polygon.push(corner);
        }
        if (here > 0.0 && there < 0.0) || (here < 0.0 && there > 0.0) {
            let part = here / (here - there);
            polygon.push((
                corner.0 + (other.0 - corner.0) * part,
                corner.1 + (other.1 - corner.1) * part,
            ));
        }
    }
    polygon
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_at_two_times_fix_offset_and_rate() {
        let mut lines = Lines::between((-1000.0, 1000.0), (-500.0, 500.0));
        assert!(lines.cut(0.0, (10.0, 20.0)));
        assert!(lines.cut(10.0, (110.0, 120.0)));
        let (low, high) = lines.range(5.0);
        assert!((58.0..61.0).contains(&low) && (69.0..72.0).contains(&high), "{low} {high}");
        let (low, high) = lines.rates();
        assert!((8.0..9.1).contains(&low) && (10.9..12.0).contains(&high), "{low} {high}");
        let (offset, rate) = lines.middle();
        assert!(lines.has(offset, rate) && !lines.has(offset + 20.0, rate));
    }

    #[test]
    fn what_contradicts_changes_nothing() {
        let mut lines = Lines::between((0.0, 10.0), (0.0, 0.0));
        let before = lines.clone();
        assert!(!lines.cut(1.0, (20.0, 30.0)));
        assert_eq!(lines, before);
    }
}
