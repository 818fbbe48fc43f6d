//! The losses of a round, and which of them a thread must process.
//!
//! Losses concern every thread. A damaged recording can have as many threads and losses as pages,
//! so passing each loss to each thread would take quadratic time. Between two of its events a
//! thread needs only the last loss of a stream: earlier losses have ended by then and change
//! nothing.

use crate::thread_batch::Run;
use crate::thread_event::ThreadEvent;

/// Up to this number, all losses are passed to all threads.
const FEW: usize = 32;

/// Losses of a stream in the order of their batches.
#[derive(Debug, Default)]
struct StreamGaps {
    /// Runs of one event each.
    runs: Vec<Run>,
    last_end_ns: u64,
    /// A later loss begins or ends before an earlier one, because of damaged time stamps.
    unordered: bool,
}

/// Losses of a round.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    /// By lane; reused between rounds for its memory.
    streams: Vec<StreamGaps>,
    count: usize,
}

impl Gaps {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a run of loss events.
    pub(crate) fn push(&mut self, run: Run, events: &[ThreadEvent]) {
        if self.streams.len() <= run.lane {
            self.streams.resize_with(run.lane + 1, StreamGaps::default);
        }
        let Some(stream) = self.streams.get_mut(run.lane) else { return };
        for (from, event) in (run.from..).zip(events) {
            let last_ns = stream.runs.last().map_or(0, |run| run.last_ns);
            stream.unordered |= event.stamp_ns < last_ns || event.value < stream.last_end_ns;
            stream.last_end_ns = event.value;
            let (first_ns, last_ns) = (event.stamp_ns, event.stamp_ns);
            stream.runs.push(Run { from, to: from + 1, first_ns, last_ns, ..run });
        }
        self.count += events.len();
    }

    pub(crate) fn clear(&mut self) {
        self.count = 0;
        for stream in &mut self.streams {
            stream.runs.clear();
            stream.last_end_ns = 0;
            stream.unordered = false;
        }
    }

    /// Adds to `out` the losses that a thread with these events must process.
    pub(crate) fn needed_with<'e>(
        &self,
        events: impl Iterator<Item = &'e ThreadEvent> + Clone,
        out: &mut Vec<Run>,
    ) {
        let max = FEW.max(4 * events.clone().count());
        for stream in &self.streams {
            let runs = stream.runs.as_slice();
            if runs.len() <= max || stream.unordered {
                out.extend_from_slice(runs);
                continue;
            }
            let begin = out.len();
            for event in events.clone() {
                let before = runs.partition_point(|run| run.first_ns < event.stamp_ns);
                // At equal times either can come first.
                let with = runs.partition_point(|run| run.first_ns <= event.stamp_ns);
                out.extend_from_slice(runs.get(before.saturating_sub(1)..with).unwrap_or(&[]));
            }
            out.extend(runs.last());
            if let Some(stream_runs) = out.get_mut(begin..) {
                stream_runs.sort_unstable_by_key(|run| (run.batch, run.from));
            }
        }
        out.dedup();
    }
}

#[cfg(test)]
mod tests {
    use testkit::Random;

    use super::*;
    use crate::exit_span::ExitSpan;
    use crate::thread_event::Kind;
    use crate::vcpu::ExitSink;
    use crate::vcpus::Vcpus;

    const STREAMS: usize = 3;
    const THREAD: u32 = 7;

    #[derive(Default)]
    struct Spans(Vec<String>);

    impl ExitSink for Spans {
        fn exit(&mut self, vcpu: usize, span: &ExitSpan) {
            self.0.push(format!("{vcpu} {span:?}"));
        }
    }

    /// Feeds a thread as `Lanes` does.
    fn spans(rounds: &[(Vec<Run>, Vec<ThreadEvent>)], lanes: &[Vec<ThreadEvent>]) -> Vec<String> {
        let (mut vcpus, mut sink) = (Vcpus::default(), Spans::default());
        for (runs, thread_events) in rounds {
            let mut runs = runs.clone();
            runs.sort_by_key(|run| (run.lane, run.batch, run.from));
            let mut events: Vec<ThreadEvent> =
                runs.iter().flat_map(|run| &lanes[run.lane][run.from..run.to]).copied().collect();
            events.extend(thread_events);
            events.sort_by_key(|event| event.stamp_ns);
            vcpus.feed(THREAD, &events, &mut sink);
        }
        vcpus.finish(&mut sink);
        sink.0
    }

    fn own_event(random: &mut Random, stamp_ns: u64) -> ThreadEvent {
        const KINDS: [Kind; 8] = [
            Kind::Exit,
            Kind::Entry,
            Kind::Exit,
            Kind::Entry,
            Kind::SchedOut,
            Kind::SchedIn,
            Kind::NestedEnter,
            Kind::HostWork,
        ];
        let kind = KINDS[random.below(8) as usize];
        let stream = random.below(STREAMS as u64) as u16;
        ThreadEvent { stamp_ns, value: 1, thread: THREAD, stream, kind, flag: 1 }
    }

    #[test]
    fn the_losses_left_out_change_nothing() {
        let mut random = Random(0x10_55E5);
        let mut left_out = 0;
        for _ in 0..300 {
            let mut lanes = vec![Vec::new(); STREAMS];
            let (mut all, mut needed, mut now_ns) = (Vec::new(), Vec::new(), 0);
            for _ in 0..4 {
                let (mut gaps, mut thread_events, mut runs) =
                    (Gaps::default(), Vec::new(), Vec::new());
                let often = 2 + random.below(60);
                for _ in 0..400 {
                    now_ns += random.below(3);
                    if random.below(often) == 0 {
                        thread_events.push(own_event(&mut random, now_ns));
                    } else {
                        let lane = random.below(STREAMS as u64) as usize;
                        let last_ns = lanes[lane].last().map_or(0, |gap: &ThreadEvent| gap.value);
                        let end_ns = last_ns.max(now_ns + random.below(20));
                        let gap = ThreadEvent::lost(lane as u16, now_ns, end_ns);
                        let from = lanes[lane].len();
                        lanes[lane].push(gap);
                        let (first_ns, last_ns) = (now_ns, now_ns);
                        let run = Run { lane, batch: 0, from, to: from + 1, first_ns, last_ns };
                        gaps.push(run, &[gap]);
                        runs.push(run);
                    }
                }
                let mut some = Vec::new();
                gaps.needed_with(thread_events.iter(), &mut some);
                left_out += runs.len() - some.len();
                all.push((runs, thread_events.clone()));
                needed.push((some, thread_events));
            }
            assert_eq!(spans(&all, &lanes), spans(&needed, &lanes));
        }
        assert!(left_out > 100_000, "only {left_out} losses are left out");
    }
}
