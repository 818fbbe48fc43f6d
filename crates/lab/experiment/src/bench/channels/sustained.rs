//! Searches the highest rate of events without a loss.

use crate::bench::channels::outcome::Sustained;
use crate::bench::channels::run::{Run, RunOptions, float};
use crate::bench::error::Result;

/// Max steps; each doubles the rate.
const STEPS: u32 = 8;

/// Doubles the rate until events are lost, or the load can't produce more.
pub(crate) fn search(
    options: RunOptions,
    run: &mut dyn FnMut(RunOptions) -> Result<Run>,
) -> Result<Sustained> {
    let mut found = Sustained { events_per_s: None, lost_at: None };
    for step in 0..STEPS {
        let switches = options.switches << step;
        if !found.take_in(&run(RunOptions { switches, ..options })?) {
            break;
        }
    }
    Ok(found)
}

impl Sustained {
    /// Adds a step; returns whether another one makes sense.
    fn take_in(&mut self, run: &Run) -> bool {
        if !run.is_whole() {
            // Lost events count as produced.
            let made = run.arrived.events + run.arrived.events_lost.max(run.missing());
            self.lost_at = Some(float(made) / run.seconds);
            return false;
        }
        let rate = float(run.arrived.events) / run.seconds;
        // On a busy system, a load that falls behind may still produce more if more is requested.
        let grew = self.events_per_s.is_none_or(|best| rate > best * 1.2);
        self.events_per_s = Some(self.events_per_s.map_or(rate, |best| best.max(rate)));
        grew || run.kept_up()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::channels::arrived::Arrived;

    /// A run in which the load produces the requested rate, up to a limit, and the channel keeps what it can.
    fn run(options: RunOptions, most_switches: u64, channel: u64) -> Run {
        let switches = options.switches.min(most_switches);
        let events = 2 * switches;
        let events_kept = events.min(channel);
        Run {
            seconds: 1.0,
            score: 0.0,
            wall_score: 0.0,
            guest_score: 0.0,
            passes: 0,
            counts_instructions: false,
            switches,
            switches_asked: options.switches,
            arrived: Arrived {
                events: events_kept,
                load_switches: Some(events_kept / 2),
                events_lost: events - events_kept,
                ..Arrived::default()
            },
            agent_cpu_ns: 0,
            agent_wakeups: 0,
            host_cpu_ns_per_s: 0.0,
            exits_per_s: 0.0,
            interrupts: Vec::new(),
            exits_by_device: Vec::new(),
        }
    }

    fn found(most_switches: u64, channel: u64) -> Sustained {
        let options = RunOptions {
            time: std::time::Duration::from_secs(1),
            switches: 5000,
            with_score: false,
            with_exits: false,
            buffer_kib: 64,
            counts_instructions: false,
        };
        search(options, &mut |options| Ok(run(options, most_switches, channel))).unwrap()
    }

    #[test]
    fn the_rate_doubles_until_something_is_lost() {
        let found = found(u64::MAX, 50_000);
        assert_eq!((found.events_per_s, found.lost_at), (Some(40_000.0), Some(80_000.0)));
    }

    #[test]
    fn a_load_that_can_make_no_more_ends_the_search() {
        let found = found(30_000, u64::MAX);
        assert_eq!((found.events_per_s, found.lost_at), (Some(60_000.0), None));
    }

    #[test]
    fn a_channel_may_be_too_slow_for_the_lowest_rate() {
        let found = found(u64::MAX, 9_000);
        assert_eq!((found.events_per_s, found.lost_at), (None, Some(10_000.0)));
    }
}
