//! Distribution of a time over a recording, to find when it starts.

/// Max intervals of a recording.
const INTERVALS: usize = 128;
/// Initial length of an interval.
const FIRST_WIDTH_NS: u64 = 1 << 20;
/// A share of one in this many is negligible before the start.
const REST: u64 = 50;

/// Times by intervals of a recording. Beyond `INTERVALS`, the interval length doubles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    width_ns: u64,
    intervals: Vec<u64>,
}

impl Spread {
    /// Adds a time span that starts `after_ns` after the recording's start. The result does not depend on how a
    /// span is split.
    pub(super) fn add(&mut self, after_ns: u64, ns: u64) {
        let end_ns = after_ns.saturating_add(ns);
        self.reach(end_ns.saturating_sub(1));
        let mut from_ns = after_ns;
        while from_ns < end_ns {
            let at = from_ns / self.width_ns;
            let to_ns = at.saturating_add(1).saturating_mul(self.width_ns).min(end_ns);
            self.put(at, to_ns - from_ns);
            from_ns = to_ns;
        }
    }

    pub fn merge(&mut self, other: &Self) {
        for (at, ns) in (0..).zip(&other.intervals).filter(|(_, ns)| **ns > 0) {
            let after_ns = other.width_ns.saturating_mul(at);
            self.reach(after_ns);
            self.put(after_ns / self.width_ns, *ns);
        }
    }

    /// Doubles the interval length until this time is within range.
    fn reach(&mut self, after_ns: u64) {
        self.width_ns = self.width_ns.max(FIRST_WIDTH_NS);
        while after_ns / self.width_ns >= INTERVALS as u64 {
            self.widen();
        }
    }

    /// Adds to an interval.
    fn put(&mut self, at: u64, ns: u64) {
        let at = at as usize;
        if self.intervals.len() <= at {
            self.intervals.resize(at + 1, 0);
        }
        if let Some(interval) = self.intervals.get_mut(at) {
            *interval = interval.saturating_add(ns);
        }
    }

    fn widen(&mut self) {
        let pairs = self.intervals.chunks(2);
        self.intervals =
            pairs.map(|pair| pair.iter().fold(0, |a, b| u64::saturating_add(a, *b))).collect();
        self.width_ns = self.width_ns.saturating_mul(2);
    }

    /// Start relative to the recording's start; the time before it is negligible.
    #[must_use]
    pub fn begins_ns(&self) -> u64 {
        let all = self.intervals.iter().fold(0, |a, b| u64::saturating_add(a, *b));
        let mut before = 0u64;
        let begins = self.intervals.iter().take_while(|ns| {
            before = before.saturating_add(**ns);
            before <= all / REST
        });
        (begins.count() as u64).saturating_mul(self.width_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn pieces_of_a_span_add_up_to_it() {
        let (mut unsplit, mut pieces) = (Spread::default(), Spread::default());
        unsplit.add(3 * MS, 900 * MS);
        for at in 0..900 {
            pieces.add(3 * MS + at * MS, MS);
        }
        assert_eq!(unsplit, pieces);
        assert_eq!(unsplit.intervals.iter().sum::<u64>(), 900 * MS);
        unsplit.add(u64::MAX - 5, u64::MAX);
        assert!(unsplit.intervals.len() <= INTERVALS);
    }

    #[test]
    fn what_begins_late_begins_then() {
        let mut late = Spread::default();
        late.add(100 * MS, 1);
        (0..1000).for_each(|at| late.add(8000 * MS + at * 2 * MS, MS));
        let begins_ns = late.begins_ns();
        assert!((7_700 * MS..=8_100 * MS).contains(&begins_ns), "{begins_ns}");
        let mut always = Spread::default();
        (0..1000).for_each(|at| always.add(at * 10 * MS, MS));
        assert!(always.begins_ns() <= 300 * MS, "{}", always.begins_ns());
        let mut both = late.clone();
        both.merge(&always);
        assert!(both.begins_ns() <= 600 * MS, "{}", both.begins_ns());
        assert_eq!(Spread::default().begins_ns(), 0);
    }
}
