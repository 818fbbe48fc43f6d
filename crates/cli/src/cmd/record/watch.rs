//! Watches live figures during a flight recording: recent history, and conditions.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use live::{Accounting, By, Changes, Condition, Held, History, Interval, Limits};
use parking_lot::{Mutex, MutexGuard};
use recorder::flight::{Ask, FlightEvent, Trigger, TriggerKind, trigger_now};

use command::notice::say;

/// Length of an interval of figures.
const INTERVAL: Duration = Duration::from_secs(1);
/// Number of intervals for the figures at a trigger: its own, and the one after.
const AT: usize = 2;

/// The figures of the latest intervals; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch(Arc<Mutex<History>>);

impl Watch {
    /// Starts to watch, and requests a session whenever one of these conditions begins to hold, but not
    /// again within `rest`: that session would have the same content.
    pub(super) fn begin(
        conditions: Vec<Condition>,
        rest: Duration,
        request_sender: Sender<FlightEvent>,
    ) -> anyhow::Result<Self> {
        let mut accounting = Accounting::begin(Limits::default())
            .context("cannot get the live figures that --when and --alerts need")?;
        let watch = Self::default();
        let history = watch.clone();
        thread::Builder::new().name("watch".to_owned()).spawn(move || {
            let mut triggers = Triggers::new(conditions, rest);
            loop {
                thread::sleep(INTERVAL);
                let interval = match accounting.interval(By::Vm) {
                    Ok(interval) => interval,
                    Err(error) => {
                        say(&format!("live figures are no longer available: {error}"));
                        return;
                    }
                };
                let held = triggers.update(&interval, Instant::now());
                history.lock().remember(interval);
                for held in held {
                    let text = Some(held.to_string());
                    let trigger =
                        Trigger { vm: Some(held.vm), ..trigger_now(TriggerKind::Condition, text) };
                    if request_sender.send(FlightEvent::Dump(Ask { trigger, reply: None })).is_err()
                    {
                        return;
                    }
                }
            }
        })?;
        Ok(watch)
    }

    /// The changes in the latest intervals.
    pub(super) fn changes(&self) -> Option<Changes> {
        self.lock().changes(AT)
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        self.0.lock()
    }
}

/// Conditions, and the time of each one's last request.
struct Triggers {
    conditions: Vec<(Condition, bool, Option<Instant>)>,
    rest: Duration,
}

impl Triggers {
    fn new(conditions: Vec<Condition>, rest: Duration) -> Self {
        let conditions = conditions.into_iter().map(|condition| (condition, false, None)).collect();
        Self { conditions, rest }
    }

    /// The conditions that begin to hold in an interval.
    fn update(&mut self, interval: &Interval, now: Instant) -> Vec<Held> {
        let mut onsets = Vec::new();
        for (condition, held_before, asked_at) in &mut self.conditions {
            let held = condition.holds(interval);
            let rests = asked_at.is_some_and(|at| now.duration_since(at) < self.rest);
            let holds = held.is_some();
            if let Some(held) = held.filter(|_| !*held_before && !rests) {
                *asked_at = Some(now);
                onsets.push(held);
            }
            // A condition that began during the rest and still holds is reported after it.
            *held_before = holds && (*held_before || !rests);
        }
        onsets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interval of a second without exits.
    fn quiet() -> Interval {
        Interval { begin_ns: 0, end_ns: 1_000_000_000, ..Interval::default() }
    }

    /// The same with a vCPU that waits half of the time.
    fn crowded() -> Interval {
        let mut times = [0; live::ACTIVITIES.len()];
        for (at, (_, name)) in live::ACTIVITIES.iter().enumerate() {
            if matches!(*name, "guest" | "waiting") {
                times[at] = 500;
            }
        }
        let vcpu = live::Vcpu {
            vm: "web".to_owned(),
            process: 1,
            vcpu: Some(0),
            thread: 2,
            states: live::States::new(times),
            ..live::Vcpu::default()
        };
        Interval { vcpus: vec![vcpu], ..quiet() }
    }

    #[test]
    fn a_condition_asks_when_it_begins_to_hold_and_then_rests() {
        let condition = "run_queue > 10%".parse().unwrap();
        let mut triggers = Triggers::new(vec![condition], Duration::from_secs(60));
        let begin = Instant::now();
        let mut at = |second: u64, interval: &Interval| {
            triggers.update(interval, begin + Duration::from_secs(second)).len()
        };
        assert_eq!((at(0, &quiet()), at(1, &crowded())), (0, 1));
        assert_eq!((at(2, &crowded()), at(3, &quiet()), at(4, &crowded())), (0, 0, 0));
        assert_eq!(at(62, &crowded()), 1, "it still holds, and has rested");
        assert_eq!(at(200, &crowded()), 0, "it holds all the time");
        assert_eq!((at(201, &quiet()), at(202, &crowded())), (0, 1));
    }
}
