//! The runs of a ladder of steps, and their results.

use stats::Estimate;

use super::outcome::{PartCost, Row, Volume};
use super::run::Run;
use super::tracer::{Part, Setup};
use super::volume::RecordingVariant;
use super::{Subject, Tracer};
use crate::bench::channels::float;

/// Steps that are compared with each other, and with no tracing.
#[derive(Clone, Debug)]
pub(crate) struct Ladder {
    pub(crate) subject: Subject,
    /// Level of the guest.
    pub(crate) level: u8,
    pub(crate) purpose: Of,
    pub(crate) setups: Vec<Setup>,
    pub(crate) rounds: Vec<Round>,
}

/// The purpose of the steps.
#[derive(Clone, Debug)]
pub(crate) enum Of {
    Tracer(Tracer, Vec<Part>),
    Volumes,
}

/// One run of each step, and one without tracing.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    pub(crate) without: Run,
    pub(crate) with: Vec<Run>,
}

impl Round {
    /// Additional time of a step over no tracing, per event.
    fn event_ns(&self, step: usize) -> Option<f64> {
        let run = self.with.get(step)?;
        let more = round_ns(run) - round_ns(&self.without);
        Some(more * float(run.looped.iterations) / float(run.looped.events.max(1)))
    }

    /// Additional time of a step over the previous one.
    fn part_ns(&self, step: usize) -> Option<f64> {
        let before = step.checked_sub(1).map_or(Some(0.0), |before| self.event_ns(before))?;
        Some(self.event_ns(step)? - before)
    }

    fn ratio(&self, step: usize) -> Option<f64> {
        Some(round_ns(self.with.get(step)?) / round_ns(&self.without))
    }
}

/// Time of the subject per round.
fn round_ns(run: &Run) -> f64 {
    float(run.looped.duration_ns) / float(run.looped.iterations.max(1))
}

impl Ladder {
    pub(crate) fn of_tracer(subject: Subject, level: u8, tracer: Tracer) -> Self {
        let (parts, setups) = tracer.steps().into_iter().unzip();
        Self { subject, level, purpose: Of::Tracer(tracer, parts), setups, rounds: Vec::new() }
    }

    pub(crate) fn of_volumes(subject: Subject) -> Self {
        let setups = RecordingVariant::ALL.into_iter().map(RecordingVariant::setup).collect();
        Self { subject, level: 2, purpose: Of::Volumes, setups, rounds: Vec::new() }
    }

    pub(crate) fn name(&self) -> String {
        let what = match &self.purpose {
            Of::Tracer(tracer, _) => tracer.name(),
            Of::Volumes => "recordings of the host",
        };
        format!("{what} of {} in level {}", self.subject.name(), self.level)
    }

    fn estimate(&self, value: impl Fn(&Round) -> Option<f64>) -> Option<Estimate> {
        Estimate::from_values(&self.rounds.iter().filter_map(value).collect::<Vec<_>>())
    }

    /// The row of a tracer; `below` is that of the same tracer in the guest one level below.
    pub(crate) fn row(&self, below: Option<&Self>) -> Option<Row> {
        let Of::Tracer(tracer, parts) = &self.purpose else { return None };
        let last = self.setups.len().checked_sub(1)?;
        let counted = |round: &&Round| round.with.get(last).is_some_and(|run| run.seen.is_some());
        let counted: Vec<&Run> =
            self.rounds.iter().filter(counted).filter_map(|round| round.with.get(last)).collect();
        let is_counted = !counted.is_empty();
        let sum = |count: fn(&Run) -> u64| counted.iter().map(|run| count(run)).sum::<u64>();
        Some(Row {
            subject: self.subject,
            level: self.level,
            tracer: *tracer,
            untraced_ns: self.estimate(|round| Some(round_ns(&round.without))),
            ratio: self.estimate(|round| round.ratio(last)),
            event_ns: self.estimate(|round| round.event_ns(last)),
            parts: self.parts(parts, below),
            exits_per_event: self.per_event(last, |run| run.exits),
            hypercalls_per_event: self.per_event(last, |run| run.hypercalls),
            events_made: is_counted.then(|| sum(|run| run.looped.all_events)),
            events_seen: is_counted.then(|| sum(|run| run.seen.unwrap_or(0))),
            not_measured: None,
        })
    }

    fn parts(&self, parts: &[Part], below: Option<&Self>) -> Vec<PartCost> {
        let mut costs = Vec::new();
        for (step, &part) in parts.iter().enumerate() {
            let below = below.filter(|_| part == Part::Transport);
            let Some(below) = below else {
                let event_ns = self.estimate(|round| round.part_ns(step));
                costs.push(PartCost { part, event_ns });
                continue;
            };
            // Round by round, so that both parts add up to the cost of this guest's transport.
            let event_ns = below.estimate(|round| round.part_ns(step));
            let pairs = self.rounds.iter().zip(&below.rounds);
            let more = pairs
                .filter_map(|(round, below)| Some(round.part_ns(step)? - below.part_ns(step)?));
            costs.push(PartCost { part, event_ns });
            let event_ns = Estimate::from_values(&more.collect::<Vec<_>>());
            costs.push(PartCost { part: Part::Nested, event_ns });
        }
        costs
    }

    /// A count per event of a step, minus that of the untraced runs.
    fn per_event(&self, step: usize, count: impl Fn(&Run) -> u64) -> Option<f64> {
        let sum = |value: &dyn Fn(&Round) -> Option<u64>| {
            self.rounds.iter().filter_map(value).map(float).sum::<f64>()
        };
        let more = sum(&|round| round.with.get(step).map(&count))
            - sum(&|round| Some(count(&round.without)));
        let events = sum(&|round| round.with.get(step).map(|run| run.looped.all_events));
        (events > 0.0).then(|| more / events)
    }

    /// The rows of recording variants.
    pub(crate) fn volumes(&self) -> Vec<Volume> {
        let Of::Volumes = self.purpose else { return Vec::new() };
        RecordingVariant::ALL
            .into_iter()
            .enumerate()
            .map(|(step, way)| self.volume(step, way))
            .collect()
    }

    fn volume(&self, step: usize, way: RecordingVariant) -> Volume {
        let runs = || self.rounds.iter().filter_map(|round| round.with.get(step));
        let recordings = || runs().filter_map(|run| run.recording);
        Volume {
            subject: self.subject,
            recorded: way.recorded(),
            packed: way.is_packed(),
            events_made: runs().map(|run| run.looped.all_events).sum(),
            events_seen: recordings().map(|recording| recording.subject_events).sum(),
            host_events: recordings().map(|recording| recording.events).sum(),
            host_events_lost: recordings().map(|recording| recording.events_lost).sum(),
            bytes: recordings().map(|recording| recording.bytes).sum(),
            event_ns: self.estimate(|round| round.event_ns(step)),
            ratio: self.estimate(|round| round.ratio(step)),
        }
    }
}

#[cfg(test)]
mod tests {
    use labguest::wire::Looped;

    use super::*;

    fn run(duration_ns: u64, hypercalls: u64) -> Run {
        let looped = Looped { duration_ns, iterations: 100, events: 200, all_events: 220 };
        Run { looped, exits: hypercalls + 7, hypercalls, seen: Some(220), recording: None }
    }

    fn ladder(level: u8, rounds: &[[u64; 6]]) -> Ladder {
        let tracer = Tracer::Hypercall { events: 1, words: 4 };
        let mut ladder = Ladder::of_tracer(Subject::Syscalls, level, tracer);
        for [without, with @ ..] in rounds {
            let with = with.map(|duration_ns| run(duration_ns, 220)).into();
            ladder.rounds.push(Round { without: run(*without, 0), with });
        }
        ladder
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        let upper = ladder(
            3,
            &[[1000, 1200, 1600, 9000, 9500, 9900], [1100, 1250, 1700, 8000, 9000, 9100]],
        );
        let below =
            ladder(2, &[[1000, 1200, 1600, 3000, 3500, 3900], [900, 1150, 1700, 2800, 3000, 3100]]);
        for below in [None, Some(&below)] {
            let row = upper.row(below).unwrap();
            let sum: f64 = row.parts.iter().map(|part| part.event_ns.unwrap().mean).sum();
            assert!((sum - row.event_ns.unwrap().mean).abs() < 1e-9, "{row:#?}");
            assert_eq!(row.parts.len(), if below.is_some() { 6 } else { 5 });
        }
    }

    #[test]
    fn what_untraced_runs_have_is_none_of_the_tracers() {
        let row = ladder(2, &[[1000, 1200, 1600, 3000, 3500, 5000]]).row(None).unwrap();
        // 4000 ns more for 200 events, of which 220 hypercalls are for 220.
        assert!((row.event_ns.unwrap().mean - 20.0).abs() < 1e-9);
        assert_eq!(row.event_ns.unwrap().low, None);
        assert!((row.ratio.unwrap().mean - 5.0).abs() < 1e-9);
        assert_eq!((row.exits_per_event, row.hypercalls_per_event), (Some(1.0), Some(1.0)));
        assert_eq!((row.events_made, row.events_seen), (Some(220), Some(220)));
    }
}
