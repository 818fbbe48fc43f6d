//! Random histories of vCPU threads: what is found is what happened, losses or not.

use std::collections::BTreeMap;

use proptest::prelude::*;
use timeline::Outcome;
use tracedat::{Compression, Version};

use super::history::{Life, Off, RecordedEvent, Round, STEP_NS, Segment, TrueExit};
use super::host::{Host, Seen, Shape};

const CPUS: u32 = 3;
const FIRST_THREAD: i32 = 100;

fn steps() -> impl Strategy<Value = u64> {
    1_u64..60
}

fn preempted() -> impl Strategy<Value = Off> {
    (steps(), 0..CPUS).prop_map(|(steps, to)| Off::Preempted { steps, to })
}

fn blocked() -> impl Strategy<Value = Off> {
    (steps(), steps(), 0..CPUS, 0..CPUS).prop_map(|(asleep, woken, waker, to)| Off::Blocked {
        asleep,
        woken,
        waker,
        to,
    })
}

fn off() -> impl Strategy<Value = Off> {
    prop_oneof![preempted(), blocked()]
}

fn segment() -> impl Strategy<Value = Segment> {
    let stays = prop::collection::vec((steps(), prop::option::of(off())), 0..3);
    prop_oneof![
        steps().prop_map(Segment::Kernel),
        off().prop_map(Segment::Off),
        stays.prop_map(Segment::User),
        (steps(), prop::option::of(preempted()), steps())
            .prop_map(|(steps, off, more)| Segment::Poll { steps, off, more }),
        (steps(), blocked(), steps()).prop_map(|(poll, wait, after)| Segment::Wait {
            poll,
            wait,
            after
        }),
    ]
}

fn round() -> impl Strategy<Value = Round> {
    let handling = prop::collection::vec(segment(), 0..4);
    let (interrupt, off) = (prop::option::of(steps()), prop::option::weighted(0.1, off()));
    let fast_path = prop::bool::weighted(0.05);
    (steps(), interrupt, off, handling, fast_path).prop_map(
        |(guest, interrupt, off, handling, fast_path)| Round {
            guest,
            interrupt,
            off,
            handling,
            fast_path,
        },
    )
}

/// Rounds of one to three threads, the CPUs they begin on, and when.
pub(crate) fn lives() -> impl Strategy<Value = Vec<(u32, u64, Vec<Round>)>> {
    let life = (0..CPUS, 1_u64..200, prop::collection::vec(round(), 1..12));
    prop::collection::vec(life, 1..4)
}

/// Losses: CPU, where it begins and how many events it takes, both per mille of the CPU's events.
pub(crate) fn losses() -> impl Strategy<Value = Vec<(u32, usize, usize)>> {
    prop::collection::vec((0..CPUS, 0_usize..1000, 1_usize..200), 0..4)
}

/// What happened, and the events that are left of it.
pub(crate) struct Case {
    truth: BTreeMap<(u32, u64), TrueExit>,
    cpus: BTreeMap<u32, Vec<Option<RecordedEvent>>>,
}

impl Case {
    pub(crate) fn new(lives: &[(u32, u64, Vec<Round>)], scheduler: bool) -> Self {
        let mut truth = BTreeMap::new();
        let mut all = Vec::new();
        for (at, (cpu, start, rounds)) in lives.iter().enumerate() {
            let thread = FIRST_THREAD + at as i32;
            let life = Life::new(thread, *cpu, start * STEP_NS + at as u64, rounds);
            let exits = life.exits.into_iter();
            truth.extend(exits.map(|exit| ((thread as u32, exit.start_ns), exit)));
            all.extend(life.events);
        }
        all.retain(|event| scheduler || !event.name.starts_with("sched"));
        all.sort_by_key(|event| event.ns);
        let mut cpus: BTreeMap<u32, Vec<Option<RecordedEvent>>> = BTreeMap::new();
        for event in all {
            cpus.entry(event.cpu).or_default().push(Some(event));
        }
        Self { truth, cpus }
    }

    /// Takes events out; never a CPU's last one, after which nothing could show the loss.
    pub(crate) fn lose(&mut self, losses: &[(u32, usize, usize)]) {
        for &(cpu, from, count) in losses {
            let Some(events) = self.cpus.get_mut(&cpu) else { continue };
            let max = events.len() - 1;
            let from = from * max / 1000;
            let to = (from + 1 + count * max / 1000).min(max);
            events[from.min(to)..to].fill(None);
        }
    }

    pub(crate) fn host(&self) -> Host {
        let mut host = Host::x86();
        self.record(&mut host, "", 0);
        host
    }

    /// Only the events that `wanted` names: what one buffer of several holds.
    pub(crate) fn only(mut self, wanted: impl Fn(&str) -> bool) -> Self {
        for events in self.cpus.values_mut() {
            events.retain(|event| event.as_ref().is_none_or(|event| wanted(event.name)));
        }
        self.cpus.retain(|_, events| !events.is_empty());
        self
    }

    /// Puts the events into a buffer, each so much later than it happened.
    pub(crate) fn record(&self, host: &mut Host, buffer: &'static str, later_ns: u64) {
        for (&cpu, events) in &self.cpus {
            for (at, event) in events.iter().enumerate() {
                match event {
                    Some(event) => {
                        let ns = event.ns + later_ns;
                        host.event_in(buffer, cpu, ns, event.ran, event.name, &event.fields);
                    }
                    None if at == 0 || events[at - 1].is_some() => {
                        host.lose_in(buffer, cpu);
                    }
                    None => {}
                }
            }
        }
    }

    /// All that was found is as it was, and all that was is found.
    pub(crate) fn check_all(mut self, found: &[Seen]) -> Result<(), TestCaseError> {
        let as_it_was = |seen: &Seen| TrueExit {
            start_ns: seen.span.start_ns,
            end_ns: seen.window().1,
            parts: seen.span.parts,
            guest_ns: seen.span.guest_ns,
            before_exit_ns: seen.span.before_exit_ns,
        };
        let key = |seen: &Seen| (seen.thread, seen.span.start_ns);
        let exits: BTreeMap<_, _> = found.iter().map(|seen| (key(seen), as_it_was(seen))).collect();
        prop_assert_eq!(exits.len(), found.len(), "an exit is there twice");
        for (key, exit) in self.truth.iter_mut().filter(|(_, exit)| exit.end_ns.is_none()) {
            // Parts of an exit without an end are not accounted to its last moment.
            exit.parts = exits.get(key).map_or(exit.parts, |seen| seen.parts);
        }
        prop_assert_eq!(exits, self.truth);
        Ok(())
    }

    /// From the last moment before each loss to the first after it.
    fn gaps(&self) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        for events in self.cpus.values() {
            let (mut last_ns, mut lost) = (0, false);
            for event in events {
                if let Some(event) = event {
                    if lost {
                        gaps.push((last_ns, event.ns));
                    }
                    (last_ns, lost) = (event.ns, false);
                } else {
                    lost = true;
                }
            }
        }
        gaps
    }

    /// Every exit that was found with a time is true.
    pub(crate) fn check_found(
        &self,
        found: &[Seen],
        with_parts: bool,
    ) -> Result<(), TestCaseError> {
        for seen in found.iter().filter(|seen| seen.is_paired()) {
            let exit = &self.truth[&(seen.thread, seen.span.start_ns)];
            prop_assert_eq!(Some(seen.span.end_ns), exit.end_ns, "{:?}", seen);
            prop_assert_eq!(seen.span.parts.total_ns(), seen.span.duration_ns());
            if with_parts {
                prop_assert_eq!(seen.span.parts, exit.parts, "{:?}", seen);
            }
            let guest = (seen.span.guest_ns, seen.span.before_exit_ns);
            if with_parts && guest != (0, 0) {
                prop_assert_eq!(guest, (exit.guest_ns, exit.before_exit_ns), "{:?}", seen);
            }
        }
        Ok(())
    }

    /// Those that were found are true, and those far from any loss were found.
    fn check(&self, found: &[Seen], with_parts: bool) -> Result<(), TestCaseError> {
        self.check_found(found, with_parts)?;
        let gaps = self.gaps();
        let paired = |thread: u32, start_ns: u64| {
            let mut same = found.iter().filter(|seen| seen.thread == thread);
            same.any(|seen| seen.span.start_ns == start_ns && seen.is_paired())
        };
        for ((thread, start_ns), exit) in &self.truth {
            let Some(end_ns) = exit.end_ns else { continue };
            let near = gaps.iter().any(|&(from, to)| from < end_ns && to > *start_ns);
            prop_assert!(near || paired(*thread, *start_ns), "{:?} is missing", exit);
        }
        Ok(())
    }
}

pub(crate) fn exit_lines(exits: &[Seen]) -> Vec<String> {
    exits.iter().map(|exit| format!("{} {:?}", exit.thread, exit.span)).collect()
}

pub(crate) fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn without_losses_all_is_as_it_was(lives in lives()) {
        let case = Case::new(&lives, true);
        let found = case.host().exits();
        case.check_all(&found)?;
    }

    #[test]
    fn with_losses_what_is_paired_is_true(lives in lives(), losses in losses()) {
        let mut case = Case::new(&lives, true);
        case.lose(&losses);
        case.check(&case.host().exits(), true)?;
    }

    #[test]
    fn without_scheduler_events_what_is_paired_is_true(lives in lives(), losses in losses()) {
        let mut case = Case::new(&lives, false);
        case.lose(&losses);
        case.check(&case.host().exits(), false)?;
    }
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn pages_and_blocks_change_nothing(lives in lives(), losses in losses()) {
        let mut case = Case::new(&lives, true);
        case.lose(&losses);
        let mut host = case.host();
        let expected = exit_lines(&host.exits());
        let shapes = [
            (Version::V6, Compression::None, 4096, 1),
            (Version::V7, Compression::Zstd, 4096, 2),
            // Blocks of eight pages, an event on each: several rounds.
            (Version::V7, Compression::None, 32_768, 1),
        ];
        for (version, compression, page_size, events_per_page) in shapes {
            host.shape = Shape { version, compression, page_size, events_per_page };
            let found = host.exits();
            prop_assert_eq!(exit_lines(&found), expected.clone(), "{:?}", host.shape);
            let lost = found.iter().filter(|seen| seen.span.outcome == Outcome::LostIn).count();
            prop_assert!(lost == 0 || !case.gaps().is_empty());
        }
    }
}
