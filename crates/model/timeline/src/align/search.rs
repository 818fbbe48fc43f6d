//! Finds the offset of two clocks without prior knowledge, by testing every offset at once.
//!
//! The set of possible offsets is stored as intervals. Each guest event removes the offsets that
//! would place it where the vCPU was away; between events the set grows by the maximum clock drift.
//! It starts with all offsets for which the recordings overlap, and ends as one place or several.
//! Only a single place is an answer.

use super::{Away, Budget};

/// Maximum rate difference of two clocks: a wrong TSC calibration reaches some hundred parts per
/// million.
pub(super) const MAX_DRIFT_PPM: i64 = 500;

/// A set of offsets this narrow is left to the exact solution, which narrows it better.
const NARROW_NS: i64 = 200_000;

/// Possible offsets farther apart than this are no answer.
const WIDEST_NS: i64 = 50_000_000;

/// Maximum number of positions that are compared.
const MAX_PLACES: usize = 32;

/// Bits of evidence that an answer needs: a coincidence has a probability of one in a million.
pub(super) const ENOUGH_BITS: f64 = 20.0;

/// Maximum events that are used to separate evidence from chance; more are sampled evenly.
const MAX_WEIGHED: usize = 1 << 16;

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SearchResult {
    /// The offset at this event lies between these two values.
    At { event: usize, low: i64, high: i64 },
    /// This event ruled out the last offset.
    Nothing { event: usize },
    /// Offsets that are far apart remain possible at the end.
    Several,
    /// One place remains, but chance could explain it.
    Weak,
    /// The budget was spent before the search ended.
    OverBudget,
}

/// Offsets are no candidates if they place less than this fraction (1/N) of the events that fit
/// into the host's recording there.
const MIN_INSIDE: usize = 4;

/// Candidates closer than this are not distinguished at first.
const SAME_NS: i64 = 1_000_000;

/// The offsets that place a large part of the events into the host's recording, which extends from
/// `extent.0` to `extent.1`.
pub(super) fn overlapping(stamps: &[i64], extent: (i64, i64)) -> Vec<(i64, i64)> {
    let length = extent.1.saturating_sub(extent.0);
    let max = inside(stamps, length).map(|(_, count)| count).max().unwrap_or(0);
    let mut candidates: Vec<(i64, i64)> = Vec::new();
    let mut since = None;
    for (begin, count) in inside(stamps, length) {
        if count >= max.div_ceil(MIN_INSIDE).max(1) {
            since.get_or_insert(begin);
        } else if let Some(since) = since.take() {
            let low = extent.0.saturating_sub(begin).saturating_add(1);
            let high = extent.0.saturating_sub(since);
            match candidates.last_mut() {
                Some(last) if last.0.saturating_sub(high) < SAME_NS => last.0 = low,
                _ => candidates.push((low, high)),
            }
        }
    }
    candidates.reverse();
    candidates
}

/// The number of events in an interval of this length, by its start: times at which the number
/// changes, with the new number. The last number is 0.
fn inside(stamps: &[i64], length: i64) -> impl Iterator<Item = (i64, usize)> {
    let (mut entered, mut left_count) = (0, 0);
    std::iter::from_fn(move || {
        let leaves = stamps.get(left_count)?.saturating_add(1);
        let enters = stamps.get(entered).map(|stamp| stamp.saturating_sub(length));
        let begin = match enters.filter(|&enters| enters < leaves) {
            Some(enters) => {
                entered += 1;
                enters
            }
            None => {
                left_count += 1;
                leaves
            }
        };
        Some((begin, entered - left_count))
    })
}

/// Searches for the offset of guest events among `candidates`, which are sorted and disjoint
/// ranges.
pub(super) fn search(
    stamps: &[i64],
    away: &Away,
    candidates: &[(i64, i64)],
    budget: &mut Budget,
) -> SearchResult {
    let Some(&first) = stamps.first() else { return SearchResult::Several };
    let mut offsets = candidates.to_vec();
    let (mut spare, mut before) = (Vec::new(), first);
    let mut evidence = Evidence::new(away, candidates);
    for (event, &stamp) in stamps.iter().enumerate() {
        let grown = drift_ns(stamp.saturating_sub(before));
        before = stamp;
        remove_away(&offsets, grown, stamp, away, &mut spare);
        std::mem::swap(&mut offsets, &mut spare);
        budget.spend(spare.len().max(offsets.len()));
        if budget.is_spent() {
            return SearchResult::OverBudget;
        }
        let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
            return SearchResult::Nothing { event };
        };
        let (low, high) = (first.0, last.1);
        if high.saturating_sub(low) <= NARROW_NS
            && evidence.is_enough(stamps.get(..=event).unwrap_or_default(), (low, high), budget)
        {
            return SearchResult::At { event, low, high };
        }
    }
    choose(stamps, &offsets, &evidence, budget)
}

/// Selects among the remaining places the one that is no coincidence, if all others could be.
fn choose(
    stamps: &[i64],
    offsets: &[(i64, i64)],
    evidence: &Evidence<'_>,
    budget: &mut Budget,
) -> SearchResult {
    let mut places: Vec<(i64, i64)> = Vec::new();
    for &(low, high) in offsets {
        match places.last_mut() {
            Some(last) if high.saturating_sub(last.0) <= WIDEST_NS => last.1 = high,
            _ => places.push((low, high)),
        }
    }
    if places.len() > MAX_PLACES {
        return SearchResult::Several;
    }
    budget.spend(places.len().saturating_mul(stamps.len().min(MAX_WEIGHED)));
    let bits = |&(low, high): &(i64, i64)| evidence.now(stamps, low, high);
    let mut weighed: Vec<(f64, (i64, i64))> =
        places.iter().map(|place| (bits(place), *place)).collect();
    weighed.sort_by(|first, other| other.0.total_cmp(&first.0));
    let others = weighed.get(1).map_or(0.0, |(bits, _)| bits.max(0.0));
    match weighed.first() {
        Some(&(bits, (low, high))) if bits - others >= ENOUGH_BITS => {
            if high.saturating_sub(low) > WIDEST_NS {
                return SearchResult::Several;
            }
            SearchResult::At { event: stamps.len().saturating_sub(1), low, high }
        }
        Some(_) if weighed.len() > 1 => SearchResult::Several,
        _ => SearchResult::Weak,
    }
}

/// Maximum clock drift in a period.
fn drift_ns(time_ns: i64) -> i64 {
    time_ns.saturating_mul(MAX_DRIFT_PPM) / 1_000_000 + 1
}

/// Grows the offsets by the drift at each end, and leaves those that place `stamp` at a possible
/// time.
fn remove_away(
    offsets: &[(i64, i64)],
    grown: i64,
    stamp: i64,
    away: &Away,
    out: &mut Vec<(i64, i64)>,
) {
    out.clear();
    let mut spans: &[(i64, i64)] = &[];
    let mut looked_up = false;
    let mut reached = i64::MIN;
    for &(low, high) in offsets {
        let mut low = low.saturating_sub(grown).max(reached).saturating_add(stamp);
        let high = high.saturating_add(grown).saturating_add(stamp);
        if looked_up {
            let passed = gallop(spans, low);
            spans = spans.get(passed..).unwrap_or_default();
        } else {
            spans = away.from(low);
            looked_up = true;
        }
        for &(from, to) in spans.iter().take_while(|span| span.0 < high) {
            add(out, low, from, stamp);
            low = low.max(to);
        }
        add(out, low, high, stamp);
        reached = high.saturating_sub(stamp);
    }
}

/// The number of `spans` that end at or before `at`: usually near the front.
fn gallop(spans: &[(i64, i64)], at: i64) -> usize {
    let mut step = 1;
    while spans.get(step - 1).is_some_and(|span| span.1 <= at) {
        step *= 2;
    }
    let begin = step / 2;
    let part = spans.get(begin..spans.len().min(step)).unwrap_or_default();
    begin + part.partition_point(|span| span.1 <= at)
}

fn add(out: &mut Vec<(i64, i64)>, from: i64, to: i64, stamp: i64) {
    if from > to {
        return;
    }
    let (low, high) = (from.saturating_sub(stamp), to.saturating_sub(stamp));
    match out.last_mut() {
        Some(last) if last.1 >= low => last.1 = last.1.max(high),
        _ => out.push((low, high)),
    }
}

/// The probability that events unrelated to the vCPU fit by chance.
///
/// Each window of the vCPU that contains events is a trial, which succeeds with the share of time
/// that the vCPU spends in its guest. The number of places to try is how often the answer fits into
/// the search range.
struct Evidence<'a> {
    away: &'a Away,
    /// Total length of the candidate ranges.
    searched_ns: i64,
    /// Number of events at which to evaluate again; each evaluation takes time.
    next: usize,
}

impl<'a> Evidence<'a> {
    fn new(away: &'a Away, candidates: &[(i64, i64)]) -> Self {
        let lengths = candidates.iter().map(|(low, high)| high.saturating_sub(*low));
        Self { away, searched_ns: lengths.fold(0, i64::saturating_add), next: 0 }
    }

    fn is_enough(&mut self, stamps: &[i64], (low, high): (i64, i64), budget: &mut Budget) -> bool {
        if stamps.len() < self.next {
            return false;
        }
        self.next = stamps.len() + stamps.len() / 8 + 1;
        budget.spend(stamps.len().min(MAX_WEIGHED));
        self.now(stamps, low, high) >= ENOUGH_BITS
    }

    fn now(&self, stamps: &[i64], low: i64, high: i64) -> f64 {
        let offset = low.midpoint(high);
        let Some((begin, end)) = self.away.extent() else { return 0.0 };
        let (mut windows, mut last) = (0_u32, None);
        let (mut first_ns, mut last_ns) = (end, begin);
        let every = stamps.len() / MAX_WEIGHED + 1;
        for at in stamps.iter().step_by(every).map(|stamp| stamp.saturating_add(offset)) {
            if at < begin || at > end {
                continue;
            }
            (first_ns, last_ns) = (first_ns.min(at), last_ns.max(at));
            let window = self.away.window(at);
            if last != Some(window) {
                windows += 1;
                last = Some(window);
            }
        }
        let share = self
            .away
            .share_possible(first_ns, last_ns.max(first_ns.saturating_add(1)))
            .clamp(1e-6, 1.0);
        let places = self.searched_ns.max(1) as f64 / high.saturating_sub(low).max(1000) as f64;
        f64::from(windows) * -share.log2() - places.max(1.0).log2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_that_put_an_event_where_the_vcpu_was_away_go() {
        let mut away = Away::default();
        for (from, to) in [(100, 110), (120, 130), (140, 150)] {
            away.push(from, to);
        }
        let mut remaining = Vec::new();
        remove_away(&[(-30, 40)], 0, 105, &away, &mut remaining);
        assert_eq!(remaining, [(-30, -5), (5, 15), (25, 35)]);
        // The event is now at 112; ranges that grew together are merged.
        remove_away(&remaining.clone(), 6, 112, &away, &mut remaining);
        assert_eq!(remaining, [(-36, -12), (-2, 8), (18, 28), (38, 41)]);
    }

    #[test]
    fn candidates_put_events_into_the_hosts_recording() {
        // Five events in 4 ns, then five in 4 ns, far apart; the host recorded 5 ns.
        let stamps = [0, 1, 2, 3, 4, 1_000_000_000, 1_000_000_001, 1_000_000_002];
        let candidates = overlapping(&stamps, (100, 105));
        // At least two of the five events that fit; the second group is too far away for a single
        // candidate.
        assert_eq!(candidates, [(100 - 1_000_000_001, 104 - 1_000_000_000), (97, 104)]);
    }

    #[test]
    fn galloping_finds_what_walking_finds() {
        let spans: Vec<(i64, i64)> = (0..100).map(|at| (10 * at, 10 * at + 4)).collect();
        for at in -5..1010 {
            assert_eq!(gallop(&spans, at), spans.iter().filter(|span| span.1 <= at).count());
        }
    }
}
