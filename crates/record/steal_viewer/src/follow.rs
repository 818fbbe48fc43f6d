//! Follows the published spans, and cuts them into intervals without gaps or overlaps.

use shmring::spans::{Activity, By, News, Span, SpanReader};

use crate::absences::{Absence, Absences, keep_longest};
use crate::shares::{Interval, VcpuShares};

/// Max spans to hold back until they are complete. A host has at most those of an interval.
const MAX_WAITING: usize = 1 << 18;

/// State of a vCPU.
#[derive(Debug, Default)]
struct FollowedVcpu {
    shares: VcpuShares,
    /// Time up to which everything was processed; 0: nothing was published yet.
    known_to: u64,
    /// Spans that extend beyond the complete time.
    waiting: Vec<Span>,
    /// The host's count of lost events at the last read.
    lost_events: u64,
    absences: Absences,
}

/// State of all vCPUs.
#[derive(Debug)]
pub struct Follower {
    vcpus: Vec<FollowedVcpu>,
    longest: Vec<Absence>,
}

impl Follower {
    /// Follows a reader from now on.
    #[must_use]
    pub fn new(reader: &SpanReader) -> Self {
        let followed = |vcpu| {
            let shares = VcpuShares { vcpu, ..VcpuShares::default() };
            FollowedVcpu { shares, ..FollowedVcpu::default() }
        };
        Self { vcpus: reader.vcpus().map(followed).collect(), longest: Vec::new() }
    }

    /// Reads new spans. Calls `seen` with each complete span and the index of its vCPU, in order per vCPU. Unknown time
    /// is a span of its own.
    pub fn look(&mut self, reader: &mut SpanReader, seen: &mut impl FnMut(usize, &Span)) {
        for (index, vcpu) in self.vcpus.iter_mut().enumerate() {
            let news = reader.read(index);
            vcpu.take(news, &mut self.longest, &mut |span| seen(index, span));
        }
    }

    /// Numbers of the vCPUs, and the time up to which each is known; 0 if nothing is known.
    pub fn known(&self) -> impl Iterator<Item = (u32, u64)> {
        self.vcpus.iter().map(|followed_vcpu| (followed_vcpu.shares.vcpu, followed_vcpu.known_to))
    }

    /// The sums since the last call, which restart at zero.
    pub fn interval(&mut self) -> Interval {
        let next = |followed_vcpu: &mut FollowedVcpu| {
            let (vcpu, known_to) = (followed_vcpu.shares.vcpu, followed_vcpu.known_to);
            let fresh =
                VcpuShares { vcpu, from_tsc: known_to, to_tsc: known_to, ..VcpuShares::default() };
            std::mem::replace(&mut followed_vcpu.shares, fresh)
        };
        let vcpus = self.vcpus.iter_mut().map(next).collect();
        let mut longest = std::mem::take(&mut self.longest);
        keep_longest(&mut longest);
        Interval { vcpus, longest }
    }
}

impl FollowedVcpu {
    fn take(&mut self, news: News, longest: &mut Vec<Absence>, seen: &mut impl FnMut(&Span)) {
        let known_to_tsc = news.coverage.to_tsc;
        if self.known_to == 0 {
            self.begin(&news);
            return;
        }
        if self.waiting.len() > MAX_WAITING {
            self.shares.damage += 1;
            self.waiting.clear();
        }
        // The ring's positions advance even while coverage does not: missed spans count now.
        self.shares.missed = self.shares.missed.saturating_add(news.missed);
        self.shares.damage = self.shares.damage.saturating_add(news.damage);
        let lost = news.coverage.lost_events.saturating_sub(self.lost_events);
        self.shares.lost_events = self.shares.lost_events.saturating_add(lost);
        self.lost_events = news.coverage.lost_events;
        let from = self.known_to;
        let mut spans = std::mem::take(&mut self.waiting);
        if news.missed > 0 || news.damage > 0 {
            // The place of missing spans is unknown: it may be anywhere up to the first span after the gap, if no slot
            // was damaged.
            let reached = spans.last().map_or(from, Span::end_tsc);
            let first = news.spans.first().filter(|_| news.damage == 0);
            let until = first.map_or(known_to_tsc, |span| span.start_tsc).max(reached);
            spans.push(unknown(reached, until));
        }
        spans.extend(news.spans);
        if known_to_tsc <= from {
            self.waiting = spans;
            return;
        }
        let mut reached = from;
        for span in spans {
            let (certain, rest) = cut(&span, reached, known_to_tsc);
            self.waiting.extend(rest);
            let Some(certain) = certain else { continue };
            reached = certain.end_tsc();
            self.shares.add(&certain);
            self.absences.take(self.shares.vcpu, &certain, longest);
            seen(&certain);
        }
        self.absences.until(known_to_tsc, longest);
        self.known_to = known_to_tsc;
        self.shares.to_tsc = known_to_tsc;
    }

    /// The first coverage: intervals begin there.
    fn begin(&mut self, news: &News) {
        let coverage = news.coverage;
        self.lost_events = coverage.lost_events;
        if coverage.from_tsc == 0 || coverage.to_tsc == 0 {
            return;
        }
        self.known_to = coverage.to_tsc;
        (self.shares.from_tsc, self.shares.to_tsc) = (coverage.to_tsc, coverage.to_tsc);
        let open = news.spans.iter().filter(|span| span.end_tsc() > coverage.to_tsc);
        self.waiting.extend(open.copied());
    }
}

fn unknown(from: u64, to: u64) -> Span {
    Span {
        start_tsc: from,
        ticks: to.saturating_sub(from),
        activity: Activity::Unknown,
        by: By::Unknown,
        begins_exit: false,
        code: None,
        isa: 0,
        level: 1,
    }
}

/// The part of a span between two times, and its rest after the second.
fn cut(span: &Span, from: u64, to: u64) -> (Option<Span>, Option<Span>) {
    let part = |start: u64, end: u64, begins_exit| {
        (start < end).then(|| Span { start_tsc: start, ticks: end - start, begins_exit, ..*span })
    };
    let (start, end) = (span.start_tsc.max(from), span.end_tsc());
    let certain = part(start, end.min(to), span.begins_exit);
    let rest = part(start.max(to), end, span.begins_exit && certain.is_none());
    (certain, rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shmring::spans::Coverage;

    use super::*;

    fn span(start_tsc: u64, ticks: u64, activity: Activity, begins_exit: bool) -> Span {
        let code = Some(0x78);
        Span { start_tsc, ticks, activity, by: By::Others, begins_exit, code, isa: 2, level: 1 }
    }

    fn news(spans: Vec<Span>, to_tsc: u64) -> News {
        let coverage = Coverage { from_tsc: 1, to_tsc, lost_events: 0 };
        News { spans, coverage, missed: 0, damage: 0 }
    }

    fn follow(all: Vec<News>) -> (VcpuShares, Vec<Span>, Vec<Absence>) {
        let (mut followed, mut longest, mut seen) =
            (FollowedVcpu::default(), Vec::new(), Vec::new());
        for news in all {
            followed.take(news, &mut longest, &mut |span| seen.push(*span));
        }
        (followed.shares, seen, longest)
    }

    #[test]
    fn spans_are_cut_where_intervals_end() {
        let (shares, seen, longest) = follow(vec![
            news(vec![], 100),
            news(
                vec![
                    span(120, 10, Activity::Kernel, true),
                    span(130, 40, Activity::Preempted, false),
                ],
                150,
            ),
            news(vec![span(190, 5, Activity::Kernel, true)], 200),
        ]);
        assert_eq!((shares.from_tsc, shares.to_tsc, shares.running()), (100, 200, 45));
        assert_eq!((shares.away.ticks_of(Activity::Preempted), shares.stolen()), (40, 40));
        assert_eq!(shares.preempted_by, [0, 0, 0, 40]);
        assert_eq!((shares.away.count, shares.away.ticks_of(Activity::Kernel)), (2, 15));
        assert_eq!(seen.len(), 4, "{seen:?}");
        // The cut does not split an absence in two.
        assert_eq!((longest[0].start_tsc, longest[0].end_tsc, longest.len()), (120, 170, 2));
    }

    #[test]
    fn what_was_missed_is_unknown() {
        let mut gap = news(vec![span(180, 5, Activity::Kernel, true)], 200);
        gap.missed = 3;
        let (shares, ..) = follow(vec![news(vec![], 100), gap]);
        assert_eq!(
            (shares.missed, shares.away.ticks_of(Activity::Unknown), shares.running()),
            (3, 80, 15)
        );
        let mut bad = news(vec![span(180, 5, Activity::Kernel, true)], 200);
        bad.damage = 1;
        let (shares, ..) = follow(vec![news(vec![], 100), bad]);
        assert_eq!((shares.away.ticks_of(Activity::Unknown), shares.running()), (100, 0));
    }

    proptest! {
        /// For any published spans, parts add up to the interval, and the seen spans are in order.
        #[test]
        fn parts_add_up(coverage in prop::collection::vec((
            prop::collection::vec((0..2000_u64, 0..300_u64, 0..6_usize, any::<bool>()), 0..8),
            prop_oneof![0..2500_u64, any::<u64>()], 0..2_u64, 0..2_u64), 1..8)) {
            let all = coverage.into_iter().map(|(spans, to_tsc, missed, damage)| {
                let spans = spans.into_iter().map(|(start, ticks, activity, begins)| {
                    span(start, ticks, Activity::ALL[activity], begins)
                });
                News { missed, damage, ..news(spans.collect(), to_tsc) }
            });
            let (shares, seen, _) = follow(all.collect());
            prop_assert_eq!(shares.running() + shares.away.total(), shares.ticks());
            prop_assert!(seen.windows(2).all(|two| two[0].end_tsc() <= two[1].start_tsc));
            let by_reason: u64 = shares.exits.values().map(|exits| exits.total()).sum();
            prop_assert!(by_reason <= shares.away.total());
        }
    }
}
